// Asks the scripts of pages, without a browser: of each line, a JSON list, the answers in a line.
import { createInterface } from "node:readline";
import { Dead, Model } from "../../../release/pages/src/incidence.js";
import { boundsFraction, boundsPercent, compare, fraction, percent, toFloat } from "../../../release/pages/src/numbers.js";

const dyadic = ([hex, e]) => ({ n: BigInt(hex), e });
const told = (x) => [`0x${x.n.toString(16)}`, x.e];

const answers = {
  numbers: (list) => list.map((each) => [percent(dyadic(each)), fraction(dyadic(each)), toFloat(dyadic(each))]),
  compared: (list) => list.map(([a, b]) => Math.sign(compare(dyadic(a), dyadic(b)))),
  losses({ data, deaths }) {
    const model = new Model(data);
    return deaths.map(({ nodes, zones, named }) =>
      model.losses(new Dead(model, nodes, zones, named)).map((each) => ({
        name: each.service.name,
        protocol: each.service.protocol,
        state: each.state,
        dead: each.dead,
        worst: each.worst.map(told),
        percent: boundsPercent(each.worst),
        fraction: boundsFraction(each.worst),
        route: model.worstRoutes(each.service, each),
      })),
    );
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
