// What each ServicePort loses when nodes and zones are dead: analyzer/failure/loss.py once more,
// from the incidence that the page carries. Bounds are [lower, upper].
import { ALWAYS, NEVER, cappedSum, compare, equal, isZero, least, most, not, times, toFloat } from "./numbers.js";

const NONE = [NEVER, NEVER];
const ANY = [NEVER, ALWAYS];
/** The greatest harm first: as the command line has it, and where nothing is lost in no order. */
const ORDER = { silenced: 0, degraded: 1, unknown: 2, "no-endpoints": 3, untouched: 3 };
const HARM = { silenced: 0, degraded: 1, unknown: 2, "no-endpoints": 3, untouched: 4 };
export const WORDS = {
  untouched: "untouched",
  degraded: "partial loss",
  silenced: "total loss",
  unknown: "unknown",
  "no-endpoints": "without endpoints",
};

const dyadic = ([hex, e]) => ({ n: BigInt(hex), e });
const bounds = (told) => (told.length === 4 ? [dyadic(told), dyadic(told.slice(2))] : [dyadic(told), dyadic(told)]);

/** Return [lower shares, upper shares, least sum, greatest sum] of an embedded distribution. */
function distribution(told) {
  let lower = [];
  if (told.draws) {
    // Draws one after the other, each a threshold out of 2**31; the last may take what is left.
    let rest = 1n;
    let e = 0;
    const found = [];
    for (const threshold of told.draws) {
      e += 31;
      found.push({ n: rest * BigInt(threshold), e });
      rest *= (1n << 31n) - BigInt(threshold);
    }
    if (found.length < told.size) found.push({ n: rest, e });
    found.forEach((share, at) => (lower[told.order ? told.order[at] : at] = share));
  } else {
    const every = told.shares.map(bounds);
    lower = every.map((each) => each[0]);
    const upper = every.map((each) => each[1]);
    return { lower, upper };
  }
  return { lower, upper: lower };
}

/** What is dead: indexes of nodes and zones, and endpoints given by name. */
export class Dead {
  constructor(model, nodes, zones, isNamed) {
    this.nodes = new Set(nodes);
    this.zones = new Set(zones);
    this.isNamed = isNamed;
    this.named = isNamed ? model.named : new Set();
    this.model = model;
    this.isAnything = this.nodes.size > 0 || this.zones.size > 0 || isNamed;
  }

  with(node) {
    return new Dead(this.model, [...this.nodes, node], this.zones, this.isNamed);
  }

  /** Return 1 for a dead endpoint, 0 for a living one, -1 if it is not known. */
  fate(service, at) {
    const [node, zone] = this.model.places[service.places[at]];
    if (this.nodes.has(node) || this.zones.has(zone) || this.named.has(service.endpoints[at])) return 1;
    return (this.nodes.size && node < 0) || (this.zones.size && zone < 0) ? -1 : 0;
  }

  takes(node) {
    return this.nodes.has(node) || this.zones.has(this.model.nodeZones[node]);
  }
}

export class Model {
  constructor(data) {
    this.nodes = data.nodes;
    this.zones = data.zones;
    this.nodeZones = data.node_zones;
    this.places = data.places;
    this.named = new Set(data.dead.endpoints);
    this.sources = data.sources;
    this.groups = data.groups;
    this.countsAll = data.count === "all";
    this.isTogether = data.together;
    this.isWhole = data.whole;
    this.own = data.own;
    this.told = data.distributions;
    this.made = [];
    this.services = data.services.map(([name, protocol, endpoints, places, frontends, variants], at) => ({
      at, name, protocol, endpoints, places, frontends, variants,
    }));
    this.isAnonymous = this.services.some((service) => service.variants.some(([group]) => group === null));
    // What a node alone can change: services with an endpoint there, or rules of its own.
    this.touched = this.services.map((service) => new Set(service.places.map((place) => this.places[place][0])));
    this.isOpen = this.services.map(
      (service) =>
        service.places.some((place) => this.places[place][0] < 0) ||
        service.variants.some(([group, , routes]) => group !== null || routes.some((route) => route[4] || route[5])),
    );
  }

  /** The nodes whose rules are known, if each ServicePort is told node by node. */
  get everywhere() {
    if (this.isAnonymous) return [];
    return (this.vantages ??= [...new Set(this.groups.flat())].sort((a, b) => a - b));
  }

  /** Return whether any node with known rules is alive; if none is, those of dead ones are used. */
  isAnybody(dead) {
    this.everybody ??= new Set(this.groups.flat());
    dead.isAnybody ??= this.isAnonymous || [...this.everybody].some((node) => !dead.takes(node));
    return dead.isAnybody;
  }

  distribution(number) {
    this.made[number] ??= distribution(this.told[number]);
    return this.made[number];
  }

  dead(told) {
    return new Dead(this, told.nodes, told.zones, told.named.length > 0);
  }

  /** Return the loss of one ServicePort; null if no living node has it in its rules. */
  loss(service, dead) {
    const fates = service.endpoints.map((_, at) => dead.fate(service, at));
    let worst = null;
    let [lower, upper] = NONE;
    const isAnybody = this.isAnybody(dead);
    const at = [];
    for (const [group, draws, routes, endpoints] of service.variants) {
      if (isAnybody && group !== null && this.groups[group].every((node) => dead.takes(node))) continue;
      const found = this.variant(service, draws, routes, endpoints, dead, fates);
      at.push({ group, state: found.state, worst: found.worst });
      lower = most(lower, found.worst[0]);
      upper = most(upper, found.worst[1]);
      if (worst === null || harm(found, worst) < 0) worst = found;
    }
    if (worst && this.isTogether) worst.worst = [lower, upper];
    if (worst) worst.dead = fates.filter((fate) => fate === 1).length;
    if (worst) worst.at = at;
    return worst;
  }

  variant(service, draws, routes, endpoints, dead, fates) {
    const lots = draws.map(() => new Map());
    const found = [];
    for (const route of routes) {
      const [frontend, source, network, draw, unresolved, unfilled, astray, hairpin, spared] = route;
      if (hairpin) {
        const lost = this.countsAll && this.hairpins(route, draws, routes, dead, fates);
        if (lost) found.push({ ...lost, frontend, source, network });
        continue;
      }
      const key = `${unresolved || ""}|${unfilled}|${astray || ""}|${spared || ""}`;
      if (!lots[draw].has(key)) lots[draw].set(key, this.route(draws[draw], route, dead, fates));
      found.push({ ...lots[draw].get(key), frontend, source, network });
    }
    let top = null;
    for (const each of found) if (top === null || isMore(each.loss, top.loss)) top = each;
    return { state: state(endpoints, found), worst: top ? top.loss : NONE, top, routes: found };
  }

  /** Return the highest loss of a living endpoint's own flows, some of which return to it. */
  hairpins(hairpin, draws, routes, dead, fates) {
    const alike = new Map();
    hairpin[7].forEach((told, place) => {
      const endpoint = draws[hairpin[3]][1]?.[place] ?? place;
      if (!told || fates[endpoint] === 1) return;
      const route = routes[told[1]] ?? hairpin;
      const [number, indexes, gone] = draws[route[3]];
      const at = indexes ? indexes.indexOf(endpoint) : endpoint;
      const key = JSON.stringify([told, gone?.[at] ?? 0, fates[endpoint], at < 0]);
      if (!alike.has(key)) alike.set(key, []);
      const of = this.distribution(at < 0 ? draws[hairpin[3]][0] : number);
      const share = { lower: of.lower[at < 0 ? place : at], upper: of.upper[at < 0 ? place : at] };
      alike.get(key).push({ endpoint, route, lost: told[0], at, ...share });
    });
    let top = null;
    let least = NEVER;
    for (const held of alike.values()) {
      for (const { endpoint, route, lost, at, lower } of extremes(held)) {
        if (at < 0) {
          // Where its other flows go is not known.
          const low = times(lower, bounds(lost)[0]);
          const found = { loss: [low, ALWAYS], nowhere: ANY, survives: [NEVER, not(low)], leads: true };
          if (fates[endpoint] === 0) least = most(least, low);
          if (top === null || isMore(found.loss, top.loss)) top = found;
          continue;
        }
        const [number, indexes, gone] = draws[route[3]];
        const ends = gone ? [...gone] : this.distribution(number).lower.map(() => null);
        ends[at] = lost;
        const known = fates.map((fate, each) => (each === endpoint ? 0 : fate)); // it sends them, so it is alive
        const found = this.route([number, indexes, ends], route, dead, known);
        if (fates[endpoint] === 0) least = most(least, found.loss[0]);
        if (top === null || isMore(found.loss, top.loss)) top = found;
      }
    }
    // Who may be dead may send nothing: only what the living lose is certain.
    return top && { ...top, loss: [least, top.loss[1]], survives: [top.survives[0], most(top.survives[0], not(least))] };
  }

  route([number, indexes, gone], [, , , , open, unfilled, astray, , spare], dead, fates) {
    if (unfilled) {
      return { loss: dead.isAnything ? ANY : NONE, nowhere: ANY, survives: ANY, leads: true };
    }
    const { lower, upper } = this.distribution(number);
    const unresolved = open ? dyadic(open) : NEVER;
    const hidden = dead.isAnything ? unresolved : NEVER;
    const fate = indexes ? indexes.map((at) => fates[at]) : fates;
    const pick = (list, wanted) => list.filter((_, at) => wanted(fate[at]));
    const nowhere = [not(cappedSum([...upper, unresolved])), not(cappedSum(lower))];
    const lostLower = cappedSum(pick(lower, (f) => f === 1));
    const lostUpper = cappedSum([...pick(upper, (f) => f !== 0), hidden]);
    const keptLower = cappedSum(pick(lower, (f) => f === 0));
    const keptUpper = cappedSum([...pick(upper, (f) => f !== 1), unresolved]);
    let loss = [lostLower, least(lostUpper, not(keptLower))];
    let survives = [keptLower, least(keptUpper, not(lostLower))];
    let others = false;
    if (this.countsAll && (gone || astray)) {
      const away = astray ? bounds(astray) : NONE;
      const spared = spare ? dyadic(spare) : NEVER;
      // Whatever ends them, what can neither survive nor end uncounted is lost.
      const sure = (kept) => not(cappedSum([kept, spared]));
      others = Boolean(astray);
      if (!gone) {
        const low = cappedSum([loss[0], away[0]]);
        const high = most(low, least(cappedSum([loss[1], away[1]]), not(survives[0])));
        loss = [most(low, least(sure(survives[1]), high)), high];
      } else {
        const lows = [away[0]];
        const highs = [away[1], hidden];
        const keptLows = [];
        const keptHighs = [unresolved];
        lower.forEach((share, at) => {
          if (fate[at] === 1) {
            lows.push(share);
            highs.push(upper[at]);
            return;
          }
          const part = gone[at] ? bounds(gone[at]) : NONE;
          others ||= Boolean(gone[at]);
          lows.push(times(share, part[0]));
          keptHighs.push(times(upper[at], not(part[0])));
          if (fate[at] === -1) {
            highs.push(upper[at]);
          } else {
            highs.push(times(upper[at], part[1]));
            keptLows.push(times(share, not(part[1])));
          }
        });
        const high = cappedSum(highs);
        const kept = [cappedSum(keptLows), cappedSum(keptHighs)];
        const low = most(cappedSum(lows), least(high, sure(kept[1])));
        loss = [low, most(low, least(high, not(kept[0])))];
        survives = [kept[0], most(kept[0], least(kept[1], not(low)))];
      }
    }
    return { loss, nowhere, survives, leads: compare(nowhere[0], ALWAYS) !== 0 || others };
  }

  /** Return about how much the worst node costs a ServicePort: to sort by, and nothing else. */
  fragility(service) {
    this.fragile ??= [];
    return (this.fragile[service.at] ??= Math.max(
      0,
      ...service.variants.flatMap(([group, draws]) =>
        draws.map(([number, indexes]) => {
          const floats = this.floats(number);
          const carried = new Map();
          let worst = 0;
          floats.forEach((share, at) => {
            const node = this.places[service.places[indexes ? indexes[at] : at]][0];
            // A dead node takes rules with it that only it has.
            if (group !== null && this.groups[group].every((each) => each === node)) return;
            const sum = (carried.get(node) ?? 0) + share;
            carried.set(node, sum);
            if (sum > worst) worst = sum;
          });
          return Math.round(worst * 2 ** 26);
        }),
      ),
    ));
  }

  floats(number) {
    this.rough ??= [];
    return (this.rough[number] ??= this.distribution(number).upper.map(toFloat));
  }

  /** Return every loss, the greatest harm first, then who is nearest to it, then by name. */
  losses(dead) {
    const found = [];
    for (const service of this.services) {
      const loss = this.loss(service, dead);
      if (loss) found.push({ service, ...loss, floats: loss.worst.map(toFloat), fragile: this.fragility(service) });
    }
    return found.sort(
      (a, b) => ORDER[a.state] - ORDER[b.state] || b.floats[1] - a.floats[1] || b.floats[0] - a.floats[0] || b.fragile - a.fragile || byName(a, b),
    );
  }

  /** Return the ServicePorts of which it is open where flows end, and the greatest such share. */
  unresolved(losses) {
    const found = losses.flatMap(({ service }) => {
      const routes = service.variants.flatMap(([, , each]) => each);
      const share = routes.map((route) => (route[5] ? ALWAYS : route[4] ? dyadic(route[4]) : NEVER)).reduce(most, NEVER);
      return isZero(share) ? [] : [{ service, share }];
    });
    return { services: found.map((each) => each.service), share: found.map((each) => each.share).reduce(most, NEVER) };
  }

  /** Return which routes lose what the worst loses, in words. */
  worstRoutes(service, loss) {
    if (isZero(loss.worst[1])) return "";
    const leading = loss.routes.filter((each) => each.leads);
    let worst = leading.filter((each) => equal(each.loss[0], loss.worst[0]) && equal(each.loss[1], loss.worst[1]));
    if (worst.length === leading.length) return "every route";
    // Bounds of several nodes together need be those of no route: then the one that may lose most.
    if (!worst.length) worst = [loss.top];
    const first = worst[0].frontend;
    const here = (routes) => routes.filter((each) => each.frontend === first);
    const told = this.sourcesOf(here(worst), here(leading));
    const others = new Set(worst.map((each) => each.frontend)).size - 1;
    const more = others ? ` and ${others.toLocaleString("en")} more frontend${others > 1 ? "s" : ""}` : "";
    return `${told} to ${service.frontends[first]}${more}`;
  }

  /** Return the sources of some routes: a kind by its name if all its networks are of them. */
  sourcesOf(some, among) {
    const found = [];
    for (const source of new Set(some.map((each) => each.source))) {
      const name = this.sources[source];
      const networksOf = (routes) => new Set(routes.filter((each) => each.source === source).map((each) => each.network));
      const mine = networksOf(some);
      const isWhole = [...networksOf(among)].every((each) => mine.has(each));
      if (isWhole || mine.has(null)) found.push(name);
      if (isWhole) continue;
      const networks = [...mine].filter((each) => each !== null).map((each) => `${name} ${each}`);
      found.push(...networks.slice(0, MOST_NETWORKS));
      const others = networks.length - MOST_NETWORKS;
      if (others > 0) found.push(`${others.toLocaleString("en")} more network${others > 1 ? "s" : ""} of ${name}`);
    }
    return found.join(", ");
  }
}

// Networks of one kind of source that are listed one by one.
const MOST_NETWORKS = 3;

const byName = (a, b) => cmp(a.service.name, b.service.name) || cmp(a.service.protocol, b.service.protocol);
const cmp = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const isMore = (a, b) => (compare(a[1], b[1]) || compare(a[0], b[0])) > 0;
function harm(a, b) {
  return HARM[a.state] - HARM[b.state] || compare(b.worst[1], a.worst[1]) || compare(b.worst[0], a.worst[0]);
}

/**
 * Return senders of which one has the highest loss. What one may lose grows with both bounds of its
 * share, or falls with both.
 */
function extremes(senders) {
  if (senders.length === 1) return senders;
  const order = [...senders].sort((a, b) => compare(a.upper, b.upper) || compare(a.lower, b.lower));
  const found = new Set();
  for (const [sign, every] of [[-1, order], [1, [...order].reverse()]]) {
    let last = every[0];
    found.add(last);
    for (const each of every) if (sign * compare(each.lower, last.lower) > 0) found.add((last = each));
  }
  return found;
}

function state(endpoints, routes) {
  const leading = routes.filter((each) => each.leads);
  if (!leading.length) return "no-endpoints";
  if (leading.some((each) => !isZero(each.loss[0]))) {
    return leading.some((each) => !isZero(each.survives[1])) ? "degraded" : "silenced";
  }
  if (!endpoints || leading.some((each) => !isZero(each.loss[1]))) return "unknown";
  return "untouched";
}
