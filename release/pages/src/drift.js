// Differences by node: a matrix to click, and a filtered list of all differences.
import { count, data, h } from "./dom.js";
import { Order } from "./order.js";
import { copyButton } from "./tsv.js";

const STEP = 100;
/** Nodes of a difference that are listed before all are requested. */
const NAMED = 3;
const HEADINGS = ["Drift", "Service port", "Proto", "What", "Nodes", "At"];
const RIGHT = new Set([4]);
const SORTS = [
  (each) => each.code,
  (each) => each.service,
  (each) => each.protocol,
  (each) => each.what,
  (each) => each.nodes.length,
  (each) => each.nodes[0],
];

export function drift() {
  const told = data("drift");
  const root = document.getElementById("drift");
  return told && root ? new Drift(told, root) : null;
}

class Drift {
  constructor(told, root) {
    this.kinds = told.kinds;
    this.every = told.differences.map(([kind, service, protocol, what, nodes], at) => ({
      at, kind, code: told.kinds[kind][0], service, protocol, what, nodes: nodes.map((node) => told.nodes[node]),
    }));
    this.opened = new Set();
    this.shown = STEP;
    this.rows = STEP;
    this.status = h("p", { class: "verdict", role: "status" });
    this.body = h("tbody");
    this.more = h("button", { type: "button", click: () => ((this.shown += STEP), this.list()) }, "");
    this.count();
    root.append(h("h2", {}, "Differences by node"), ...this.matrix(), h("h2", { id: "each-title", tabindex: "-1" }, "Each difference"), this.controls(), this.status, this.table(), h("p", { class: "bar" }, this.more));
    root.hidden = false;
    document.querySelectorAll(".replaced").forEach((each) => (each.hidden = true));
    this.list();
  }

  /** Count the differences of each node, by kinds. */
  count() {
    this.counts = new Map();
    for (const each of this.every) {
      for (const node of each.nodes) {
        if (!this.counts.has(node)) this.counts.set(node, this.kinds.map(() => 0));
        this.counts.get(node)[each.kind] += 1;
      }
    }
    const sum = (of) => of.reduce((a, b) => a + b, 0);
    this.nodes = [...this.counts].map(([node, of]) => [node, of, sum(of)]);
    this.nodes.sort((a, b) => b[2] - a[2] || (a[0] < b[0] ? -1 : 1));
    this.most = Math.max(1, ...this.nodes.flatMap(([, of]) => of));
  }

  // --- the matrix ---------------------------------------------------------------

  matrix() {
    const heads = this.kinds.map(([code, words]) => h("th", { scope: "col", title: words }, h("span", { class: "upright" }, code)));
    this.grid = h("tbody");
    this.further = h("button", { type: "button", click: () => ((this.rows += STEP), this.fill()) }, "");
    const table = h("table", { id: "matrix", class: "matrix" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Node"), ...heads)), this.grid);
    this.fill();
    return [
      h("p", {}, "The number of differences of each kind at each node. Click a number to list them below."),
      h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Nodes by kinds of difference" }, table),
      h("p", { class: "bar" }, this.further),
    ];
  }

  fill() {
    this.grid.replaceChildren(
      ...this.nodes.slice(0, this.rows).map(([node, of]) =>
        h("tr", { "data-node": node }, h("th", { scope: "row" }, h("bdi", {}, node)), ...of.map((number, kind) => this.cell(node, kind, number))),
      ),
    );
    const rest = this.nodes.length - this.rows;
    this.further.hidden = rest <= 0;
    this.further.textContent = `Show ${Math.min(STEP, rest)} more of ${count(rest, "node")}`;
  }

  cell(node, kind, number) {
    if (!number) return h("td", {}, "");
    const code = this.kinds[kind][0];
    const much = number > 1 ? (number > this.most / 2 ? "heat-3" : "heat-2") : "heat-1";
    const label = `${number.toLocaleString("en")} ${code} at ${node}: show`;
    return h("td", { class: much }, h("button", { type: "button", "aria-label": label, click: () => this.ask(node, code) }, number.toLocaleString("en")));
  }

  /** Show the differences of one cell. */
  ask(node, code) {
    this.node.value = node;
    this.kind.value = code;
    this.service.value = "";
    this.changed();
    document.getElementById("each-title").focus();
  }

  // --- the table ----------------------------------------------------------------

  controls() {
    const change = () => this.changed();
    this.node = h("input", { type: "search", id: "of-node", input: change });
    this.service = h("input", { type: "search", id: "of-service", input: change });
    this.kind = h("select", { id: "of-kind", change }, h("option", { value: "" }, "every kind"), ...this.kinds.map(([code]) => h("option", { value: code }, code)));
    const all = () => {
      for (const each of [this.node, this.service, this.kind]) each.value = "";
      this.changed();
    };
    // As `-o tsv` has them: a row for each difference at each node.
    const rows = () => [
      ["node", "drift", "service_port", "protocol", "what"],
      ...this.wanted().flatMap((each) => this.at(each).map((node) => [node, each.code, each.service, each.protocol, each.what])),
    ];
    return h(
      "div",
      { class: "bar filters" },
      h("label", {}, "Node ", this.node),
      h("label", {}, "Kind ", this.kind),
      h("label", {}, "Service ", this.service),
      h("button", { type: "button", click: all }, "Show all"),
      copyButton(rows),
    );
  }

  changed() {
    this.shown = STEP;
    this.list();
  }

  table() {
    this.order = new Order(HEADINGS, RIGHT, SORTS, () => this.list());
    return h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Each difference" }, h("table", { id: "differences" }, h("thead", {}, h("tr", {}, ...this.order.heads)), this.body));
  }

  /** Return the nodes of a difference that pass the filter; a whole name is that node alone. */
  at(each) {
    const wanted = this.node.value.trim().toLowerCase();
    if (!wanted) return each.nodes;
    if (this.counts.has(this.node.value.trim())) return each.nodes.filter((node) => node === this.node.value.trim());
    return each.nodes.filter((node) => node.toLowerCase().includes(wanted));
  }

  wanted() {
    const service = this.service.value.trim().toLowerCase();
    const kind = this.kind.value;
    const found = this.every.filter(
      (each) => (!kind || each.code === kind) && each.service.toLowerCase().includes(service) && this.at(each).length > 0,
    );
    return this.order.sort(found);
  }

  list() {
    const found = this.wanted();
    const nodes = new Set(found.flatMap((each) => this.at(each)));
    this.status.textContent = `${found.length.toLocaleString("en")} of ${count(this.every.length, "difference")}, at ${nodes.size.toLocaleString("en")} of ${count(this.nodes.length, "node")} that differ${this.nodes.length === 1 ? "s" : ""}.`;
    this.body.replaceChildren(...found.slice(0, this.shown).map((each) => this.row(each)));
    const rest = found.length - this.shown;
    this.more.hidden = rest <= 0;
    this.more.textContent = `Show ${Math.min(STEP, rest)} more of ${count(rest, "difference")}`;
  }

  row(each) {
    const nodes = this.at(each);
    const isOpen = this.opened.has(each.at);
    const named = isOpen ? nodes : nodes.slice(0, NAMED);
    const toggle = () => {
      if (!this.opened.delete(each.at)) this.opened.add(each.at);
      const focused = this.row(each);
      made.replaceWith(focused);
      focused.querySelector("button.open").focus();
    };
    const label = isOpen ? "show fewer" : `and ${(nodes.length - NAMED).toLocaleString("en")} more`;
    const more = nodes.length > NAMED ? [" ", h("button", { type: "button", class: "open", "aria-expanded": String(isOpen), click: toggle }, label)] : [];
    const names = named.flatMap((node, at) => [at ? ", " : "", h("bdi", {}, node)]);
    const cells = [[each.code], [h("bdi", {}, each.service)], [each.protocol], [h("bdi", {}, each.what)], [nodes.length.toLocaleString("en")], [...names, ...more]];
    const made = h("tr", { "data-kind": each.code }, ...cells.map((cell, at) => h("td", { class: RIGHT.has(at) ? "right" : at ? null : "bad", title: at ? null : this.kinds[each.kind][1] }, ...cell)));
    return made;
  }
}
