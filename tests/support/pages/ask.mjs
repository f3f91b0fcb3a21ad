// Asks the scripts of pages, without a browser: of each line, a JSON list, the answers in a line.
import { createInterface } from "node:readline";
import { Dead, Model } from "../../../release/pages/src/incidence.js";
import { domain } from "../../../release/pages/src/names.js";
import { boundsFraction, boundsPercent, compare, fraction, percent, toFloat } from "../../../release/pages/src/numbers.js";
import { Vantages } from "../../../release/pages/src/vantages.js";

const dyadic = ([hex, e]) => ({ n: BigInt(hex), e });
const told = (x) => [`0x${x.n.toString(16)}`, x.e];

/** Return where most is lost, at how many nodes any, the mean, and what is lost at each node. */
function where(vantages, model, loss, dead) {
  const { worst, hit, all, mean } = vantages.of(loss, dead);
  const nodes = Object.fromEntries(model.everywhere.map((node) => [model.nodes[node], vantages.at(loss, node, dead)?.worst.map(told) ?? null]));
  return { worst: worst.map((node) => model.nodes[node]), hit, all, mean: boundsPercent(mean), nodes };
}

const answers = {
  domain,
  bounds: (list) => list.map((pair) => boundsPercent(pair.map(dyadic))),
  numbers: (list) => list.map((each) => [percent(dyadic(each)), fraction(dyadic(each)), toFloat(dyadic(each))]),
  compared: (list) => list.map(([a, b]) => Math.sign(compare(dyadic(a), dyadic(b)))),
  unresolved(data) {
    const model = new Model(data);
    const { services, share } = model.unresolved(model.losses(new Dead(model, [], [], false)));
    return [services.map((each) => [each.name, each.protocol]), percent(share, true)];
  },
  losses({ data, deaths }) {
    const model = new Model(data);
    const vantages = model.everywhere.length ? new Vantages(model) : null;
    return deaths.map((death) => {
      const dead = new Dead(model, death.nodes, death.zones, death.named);
      return model.losses(dead).map((each) => ({
        name: each.service.name,
        protocol: each.service.protocol,
        state: each.state,
        dead: each.dead,
        worst: each.worst.map(told),
        percent: boundsPercent(each.worst),
        fraction: boundsFraction(each.worst),
        route: model.worstRoutes(each.service, each),
        ...(vantages ? { where: where(vantages, model, each, dead) } : {}),
      }));
    });
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = JSON.parse(line).map(([what, asked]) => answers[what](asked));
  } catch (error) {
    answer = String(error.stack);
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
