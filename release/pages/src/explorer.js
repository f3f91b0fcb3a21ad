// Nodes and zones to mark as dead, and what every ServicePort then loses.
import { count, data, h } from "./dom.js";
import { HeatMap } from "./heatmap.js";
import { Dead, Model, WORDS } from "./incidence.js";
import { boundsFraction, boundsPercent, isOne, isZero, percent, toFloat } from "./numbers.js";
import { Order } from "./order.js";
import { copyButton } from "./tsv.js";
import { VantageMap } from "./vantagemap.js";
import { Vantages } from "./vantages.js";

const STEP = 100;
const HEADINGS = ["Service port", "Proto", "Dead", "Exact", "Lost", "State", "Worst route"];
/** For the rules of several nodes. */
const HEADINGS_AT = ["At", "Nodes hit", "Mean over nodes"];
const RIGHT = new Set([2, 3, 4, 8, 9]);
const CLASSES = { silenced: "bad", degraded: "warning", unknown: "warning", untouched: "good", "no-endpoints": "faint" };
const SORTS = [
  (each) => each.service.name,
  (each) => each.service.protocol,
  (each) => each.dead,
  (each) => toFloat(each.worst[1]),
  (each) => toFloat(each.worst[1]),
  (each) => each.state,
  (each) => each.route,
  (each) => each.where.texts[0],
  (each) => each.where.hit,
  (each) => toFloat(each.where.mean[1]),
];

export function explorer() {
  const told = data("incidence");
  const root = document.getElementById("explorer");
  if (!told || !root) return null;
  return new Explorer(new Model(told), told.dead, root);
}

class Explorer {
  constructor(model, dead, root) {
    this.model = model;
    this.first = dead;
    this.filter = "";
    this.shown = STEP;
    this.opened = new Set();
    this.status = h("p", { class: "verdict", role: "status" });
    this.boxes = { nodes: [], zones: [] };
    this.map = new HeatMap(model, (node) => {
      this.boxes.nodes[node].checked = !this.boxes.nodes[node].checked;
      this.changed();
    });
    if (model.everywhere.length > 1) this.vantages = new Vantages(model);
    this.at = this.vantages && new VantageMap(model, this.vantages);
    this.headings = this.vantages ? [...HEADINGS, ...HEADINGS_AT] : HEADINGS;
    this.body = h("tbody");
    this.more = h("button", { type: "button", click: () => this.next() }, "");
    root.append(this.controls(), this.status, ...(model.nodes.length ? [this.map.element] : []), ...(this.at ? [this.at.element] : []), this.table());
    root.hidden = false;
    document.querySelectorAll(".replaced").forEach((each) => (each.hidden = true));
    this.mark(dead);
  }

  controls() {
    const field = h("input", { type: "search" });
    const nodes = this.list("nodes", "node");
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      this.boxes.nodes.forEach((box) => (box.parentElement.hidden = !box.parentElement.textContent.toLowerCase().includes(wanted)));
    });
    const named = this.first.named;
    return h(
      "div",
      { class: "controls" },
      h(
        "fieldset",
        {},
        h("legend", {}, "Dead nodes"),
        ...(this.model.nodes.length > 12 ? [h("label", {}, "Find ", field)] : []),
        nodes,
      ),
      ...(this.model.zones.length ? [h("fieldset", {}, h("legend", {}, "Dead zones"), this.list("zones", "zone"))] : []),
      ...(named.length
        ? [h("fieldset", {}, h("legend", {}, "Dead endpoints"), (this.named = this.box("named", 0, named.join(", "))))]
        : []),
      h("p", { class: "bar" }, ...(this.isAsked() ? [h("button", { type: "button", click: () => this.mark(this.first) }, "As given")] : []), h("button", { type: "button", click: () => this.mark({ nodes: [], zones: [], named: [] }) }, "Nothing dead")),
    );
  }

  isAsked() {
    const { nodes, zones, named } = this.first;
    return nodes.length + zones.length + named.length > 0;
  }

  list(kind, noun) {
    const names = this.model[kind];
    const made = names.map((name, at) => this.box(noun, at, name));
    this.boxes[kind] = made.map((each) => each.querySelector("input"));
    return h("div", { class: "boxes", role: "group", tabindex: "0", "aria-label": count(names.length, noun) }, ...made);
  }

  box(noun, at, name) {
    const input = h("input", { type: "checkbox", "data-kind": noun, value: String(at), change: () => this.changed() });
    return h("label", {}, input, h("bdi", {}, name));
  }

  /** Mark exactly these as dead. */
  mark(dead) {
    for (const kind of ["nodes", "zones"]) {
      const wanted = new Set(dead[kind]);
      this.boxes[kind].forEach((box, at) => (box.checked = wanted.has(at)));
    }
    if (this.named) this.named.querySelector("input").checked = dead.named.length > 0;
    this.changed();
  }

  dead() {
    const marked = (kind) => this.boxes[kind].flatMap((box, at) => (box.checked ? [at] : []));
    const isNamed = this.named ? this.named.querySelector("input").checked : false;
    return new Dead(this.model, marked("nodes"), marked("zones"), isNamed);
  }

  changed() {
    this.died = this.dead();
    this.losses = this.model.losses(this.died);
    for (const each of this.losses) each.route = null;
    this.status.replaceChildren(...this.verdict());
    this.rows();
  }

  verdict() {
    const { model, died, losses } = this;
    const names = [...[...died.nodes].map((at) => `node ${model.nodes[at]}`), ...[...died.zones].map((at) => `zone ${model.zones[at]}`)];
    if (died.isNamed) names.push(...this.first.named.map((name) => `endpoint ${name}`));
    const listed = names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
    const states = Object.entries(WORDS).flatMap(([state, words]) => {
      const number = losses.filter((each) => each.state === state).length;
      return number ? [`${number.toLocaleString("en")} ${words}`] : [];
    });
    const said = [`${listed ? `Dead: ${listed}` : "Nothing marked dead"}. ${count(losses.length, "ServicePort")}: ${states.join(", ")}.`];
    const first = losses[0];
    if (first && !isZero(first.worst[1])) {
      said.push(h("strong", {}, ` Worst: ${first.service.name} loses ${boundsPercent(first.worst)} of new flows.`));
    }
    if (!died.isAnything) said.push(...this.unresolved());
    if (!model.isWhole) said.push(" Some ServicePorts are not judged, see above and below.");
    if (model.own !== null && died.takes(model.own)) {
      said.push(` This dump is from ${model.nodes[model.own]}, which is marked dead: it sends no flows, and the numbers are what its rules would do.`);
    }
    return said;
  }

  /** What flows may be lost although nothing is dead, as `loss` says it. */
  unresolved() {
    const { services, share } = this.model.unresolved(this.losses);
    if (!services.length) return [];
    const named = services.slice(0, 5).map(({ name, protocol }) => (protocol.endsWith("6") ? `${name} (IPv6)` : name));
    const more = services.length > 5 ? ` and ${(services.length - 5).toLocaleString("en")} more` : "";
    const upto = percent(share, isOne(share) ? null : true);
    return [` Not known where up to ${upto} of new flows end, with nothing dead: ${named.join(", ")}${more}. They may be lost; see kubeodds services.`];
  }

  table() {
    const field = h("input", { type: "search", input: () => ((this.filter = field.value.toLowerCase()), (this.shown = STEP), this.rows()) });
    this.order = new Order(this.headings, RIGHT, SORTS, () => this.rows());
    const all = () => [this.headings, ...this.wanted().map((each) => this.texts(each))];
    return h(
      "div",
      {},
      h("div", { class: "bar" }, h("label", {}, "Filter ", field), copyButton(all)),
      h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "What each ServicePort loses" }, h("table", { id: "losses" }, h("thead", {}, h("tr", {}, ...this.order.heads)), this.body)),
      h("p", { class: "bar" }, this.more),
    );
  }

  /** Return the losses that pass the filter, in the chosen order. */
  wanted() {
    const found = this.losses.filter((each) => each.service.name.toLowerCase().includes(this.filter));
    if (this.order.at === 6) found.forEach((each) => this.routeOf(each));
    if (this.order.at > 6) found.forEach((each) => this.whereOf(each));
    return this.order.sort(found);
  }

  routeOf(each) {
    each.route ??= this.model.worstRoutes(each.service, each);
    return each.route;
  }

  whereOf(each) {
    if (!each.where) {
      each.where = this.vantages.of(each, this.died);
      each.where.texts = this.vantages.texts(each.where, each, this.died);
    }
    return each.where;
  }

  texts(each) {
    const { service } = each;
    const dead = service.endpoints.length ? `${each.dead.toLocaleString("en")} of ${service.endpoints.length.toLocaleString("en")}` : "";
    return [service.name, service.protocol, dead, boundsFraction(each.worst), boundsPercent(each.worst), WORDS[each.state], this.routeOf(each), ...(this.vantages ? this.whereOf(each).texts : [])];
  }

  rows() {
    const wanted = this.wanted();
    this.map.show(wanted, this.died);
    this.at?.show(wanted, this.died);
    this.listed = wanted;
    this.body.replaceChildren(...wanted.slice(0, this.shown).flatMap((each) => this.row(each)));
    this.tellRest();
  }

  /** Append some more rows. */
  next() {
    this.body.append(...this.listed.slice(this.shown, this.shown + STEP).flatMap((each) => this.row(each)));
    this.shown += STEP;
    this.tellRest();
  }

  tellRest() {
    const wanted = this.listed;
    const rest = wanted.length - this.shown;
    this.more.hidden = rest <= 0;
    this.more.textContent = `Show ${Math.min(STEP, rest)} more of ${count(rest, "ServicePort")}`;
  }

  row(each) {
    const { service } = each;
    const isOpen = this.opened.has(service.at);
    const toggle = () => {
      if (!this.opened.delete(service.at)) this.opened.add(service.at);
      this.rows();
    };
    const cells = this.texts(each).map((text, at) => {
      const kind = [RIGHT.has(at) ? "right" : "", at === 4 || at === 5 ? CLASSES[each.state] : ""].join(" ").trim();
      const shown = at ? text : h("button", { type: "button", class: "open", "aria-expanded": String(isOpen), click: toggle }, h("bdi", {}, text));
      return h("td", { class: kind || null }, shown);
    });
    const made = [h("tr", { "data-service": service.name, "data-protocol": service.protocol, "data-state": each.state }, ...cells)];
    if (isOpen) made.push(h("tr", { class: "detail" }, h("td", { colspan: String(this.headings.length) }, this.endpoints(each))));
    return made;
  }

  /** Return the endpoints of a ServicePort, each with its share on the route that loses most. */
  endpoints({ service, top }) {
    const shares = new Map();
    const variant = service.variants[0];
    const route = variant[2].find((each) => top && each[0] === top.frontend && each[1] === top.source && !each[7]) ?? variant[2][0];
    if (route) {
      const [number, indexes] = variant[1][route[3]];
      const { lower, upper } = this.model.distribution(number);
      lower.forEach((share, at) => shares.set(indexes ? indexes[at] : at, [share, upper[at]]));
    }
    const fates = { 1: "DEAD", 0: "", "-1": "node unknown" };
    const heads = ["Endpoint", "Node", "Exact", "Share", "State"].map((text) => h("th", { scope: "col" }, text));
    const rows = service.endpoints.slice(0, 200).map((endpoint, at) => {
      const share = shares.get(at);
      const node = this.model.nodes[this.model.places[service.places[at]][0]] ?? "";
      const fate = fates[this.died.fate(service, at)];
      const texts = [endpoint, node, share ? boundsFraction(share) : "", share ? boundsPercent(share) : "", fate];
      return h("tr", { class: fate === "DEAD" ? "bad" : null }, ...texts.map((text) => h("td", {}, h("bdi", {}, text))));
    });
    return h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
  }
}
