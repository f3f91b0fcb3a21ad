// Asks the scripts of pages, without a browser: a JSON list on stdin, answers on stdout.
import { readFileSync } from "node:fs";
import { Dead, Model } from "../../../release/pages/src/incidence.js";
import { boundsFraction, boundsPercent, compare, fraction, percent, toFloat } from "../../../release/pages/src/numbers.js";

const given = JSON.parse(readFileSync(0, "utf8"));
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
process.stdout.write(JSON.stringify(given.map(([what, asked]) => answers[what](asked))));
