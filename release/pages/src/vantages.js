// What a ServicePort loses at each node: where most, at how many, and in the mean.
import { boundsPercent, equal, isZero } from "./numbers.js";

/** Bits of a mean that is shown, as the command line has them. */
const BITS = 64;

/** Summarises the loss at each living node. */
export class Vantages {
  constructor(model) {
    this.model = model;
    this.sets = model.groups.map((group) => new Set(group));
  }

  /** Return the living nodes of a group; if no node is alive, all. */
  living(group, dead) {
    const nodes = this.model.groups[group];
    return this.model.isAnybody(dead) ? nodes.filter((node) => !dead.takes(node)) : nodes;
  }

  /** Return { worst: nodes that lose most, hit: those that lose any, all: those that have it, mean }. */
  of(loss, dead) {
    const found = { worst: [], hit: 0, all: 0 };
    const sums = [0n, 0n];
    const bits = Math.max(0, ...loss.at.flatMap((each) => each.worst.map((share) => share.e)));
    for (const { group, state, worst } of loss.at) {
      const nodes = this.living(group, dead);
      found.all += nodes.length;
      if (!isZero(worst[1])) found.hit += nodes.length;
      worst.forEach((share, end) => (sums[end] += (share.n << BigInt(bits - share.e)) * BigInt(nodes.length)));
      const isMost = this.model.isTogether
        ? equal(worst[1], loss.worst[1])
        : state === loss.state && equal(worst[0], loss.worst[0]) && equal(worst[1], loss.worst[1]);
      if (isMost) found.worst.push(...nodes);
    }
    found.worst.sort((a, b) => a - b);
    const whole = BigInt(found.all || 1) << BigInt(bits);
    found.mean = sums.map((sum) => ({ n: (sum << BigInt(BITS)) / whole, e: BITS }));
    return found;
  }

  /** Return the cells of a row: where most is lost, at how many nodes any, and the mean. */
  texts({ worst, hit, all, mean }, loss, dead) {
    const every = this.model.everywhere;
    const number = this.model.isAnybody(dead) ? every.filter((node) => !dead.takes(node)).length : every.length;
    const first = this.model.nodes[worst[0]];
    const more = worst.length > 1 ? ` and ${(worst.length - 1).toLocaleString("en")} more` : "";
    const at = isZero(loss.worst[1]) ? "" : worst.length >= number ? "every node" : `${first}${more}`;
    return [at, `${hit.toLocaleString("en")} of ${all.toLocaleString("en")}`, boundsPercent(mean)];
  }

  /** Return { state, worst } of a ServicePort at one node; null: it is dead, or does not have it. */
  at(loss, node, dead) {
    if (this.model.isAnybody(dead) && dead.takes(node)) return null;
    return loss.at.find(({ group }) => this.sets[group].has(node)) ?? null;
  }
}
