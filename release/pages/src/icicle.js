// A probability tree from the hook to the endpoints: the height of a cell is its share. A click, or
// Enter, zooms to a cell and what follows it; the wheel and dragging move the view.
import { hierarchy, partition } from "d3-hierarchy";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { count, data, h } from "./dom.js";

const LEAST_COLUMN = 150;
/** On a phone the hook and the ends are closer to each other. */
const LEAST_NARROW = 112;
const NARROW = 640;
const ROW = 34;
const SVG = "http://www.w3.org/2000/svg";

export function icicles() {
  const told = data("trees");
  if (!told) return;
  for (const root of document.querySelectorAll(".icicle")) new Icicle(root, told[Number(root.dataset.tree)]);
  document.querySelectorAll(".tree .replaced").forEach((each) => (each.hidden = true));
}

const words = (d) => [d.data.t, d.data.r, d.data.p, d.data.s && `${d.data.s} of new flows`].filter(Boolean).join("; ");

class Icicle {
  constructor(root, told) {
    this.tree = hierarchy(told, (each) => each.c);
    this.tree.each((each) => (each.value = each.data.v));
    this.cells = this.tree.descendants();
    this.cells.forEach((each, at) => (each.id = at));
    this.leaves = this.tree.leaves().length;
    this.at = this.tree;
    this.found = null;
    this.height = Math.max(240, Math.min(640, this.leaves * ROW));
    partition().size([1, 1])(this.tree);
    this.whole = scaleLinear().domain([0, 1]).range([0, this.height]);
    this.y = this.whole;
    this.status = h("p", { class: "cell", role: "status" }, "Click a cell to zoom, or move with the arrow keys; Escape shows all.");
    const field = h("input", { type: "search", input: () => this.search(field.value.toLowerCase()) });
    this.hits = h("span", { role: "status" });
    this.box = h("div", { class: "wide tree-box" });
    this.svg = select(document.createElementNS(SVG, "svg")).attr("role", "group").attr("aria-label", "Probability tree");
    this.buttons = this.svg.append("g");
    this.labels = this.svg.append("g").attr("aria-hidden", "true");
    this.box.append(this.svg.node());
    root.append(
      h("div", { class: "bar" }, h("label", {}, "Find ", field), this.hits, h("button", { type: "button", click: () => this.show(this.tree) }, "Show all")),
      this.box,
      this.status,
    );
    root.hidden = false;
    this.zoom = zoom()
      .scaleExtent([1, Math.max(8, this.leaves)])
      .translateExtent([[0, 0], [1e6, this.height]])
      .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.shiftKey || this.k > 1 : !event.button))
      .on("zoom", ({ transform }) => {
        this.k = transform.k;
        this.y = transform.rescaleY(this.whole);
        this.paint();
      });
    this.k = 1;
    this.svg.call(this.zoom).on("dblclick.zoom", null);
    new ResizeObserver(() => this.resize()).observe(root);
    this.resize();
  }

  resize() {
    const depth = this.tree.height + 1;
    const least = this.box.clientWidth < NARROW ? LEAST_NARROW : LEAST_COLUMN;
    const width = Math.max(this.box.clientWidth - 2, depth * least);
    if (this.column === width / depth) return;
    this.column = width / depth;
    this.svg.attr("width", width).attr("height", this.height).attr("viewBox", `0 0 ${width} ${this.height}`);
    this.zoom.extent([[0, 0], [width, this.height]]);
    // Readers look for the ends; the rules on the path are one swipe to the left.
    if (this.box.clientWidth < NARROW) this.box.scrollLeft = width;
    this.paint();
  }

  /** Zoom one cell to the full height. */
  show(cell) {
    const k = Math.min(1 / Math.max(cell.x1 - cell.x0, 1e-9), Math.max(8, this.leaves));
    this.svg.call(this.zoom.transform, zoomIdentity.scale(k).translate(0, -cell.x0 * this.height));
    this.choose(cell);
  }

  choose(cell) {
    this.at = cell;
    this.status.textContent = words(cell);
    this.reveal(cell);
    this.paint();
    this.svg.selectAll("g.node").filter((d) => d === cell).node()?.focus({ preventScroll: true });
  }

  /** Scroll to the column of a cell, where the window is too narrow for all of them. */
  reveal(cell) {
    const [left, room] = [cell.depth * this.column, this.box.clientWidth];
    if (left < this.box.scrollLeft) this.box.scrollLeft = left;
    else if (left + this.column > this.box.scrollLeft + room) this.box.scrollLeft = left + this.column - room;
  }

  search(wanted) {
    this.found = wanted ? new Set(this.cells.filter((each) => words(each).toLowerCase().includes(wanted))) : null;
    this.hits.textContent = this.found ? `${count(this.found.size, "cell")} found` : "";
    this.paint();
  }

  paint() {
    const seen = this.cells.filter((d) => {
      const [top, end] = [this.y(d.x0), this.y(d.x1)];
      return end > 0 && top < this.height && (end - top > 0.5 || this.found?.has(d));
    });
    const nodes = this.buttons.selectAll("g.node").data(seen, (d) => d.id);
    nodes.exit().remove();
    const entered = nodes
      .enter()
      .append("g")
      .attr("role", "button")
      .on("click", (_, d) => this.show(d))
      .on("keydown", (event, d) => this.key(event, d));
    entered.append("rect");
    const all = entered.merge(nodes).order();
    all
      .attr("class", (d) => `node ${d.data.k}${this.found ? (this.found.has(d) ? " hit" : " miss") : ""}`)
      .attr("tabindex", (d) => (d === this.at ? 0 : -1))
      .attr("aria-label", words)
      .attr("transform", (d) => `translate(${d.depth * this.column},${Math.max(0, this.y(d.x0))})`);
    const height = (d) => Math.max(0.5, Math.min(this.height, this.y(d.x1)) - Math.max(0, this.y(d.x0)) - 1);
    all.select("rect").attr("width", this.column - 1).attr("height", height);
    this.words(seen, height);
  }

  /** Label the visible cells as far as there is room; screen readers get all of it from the buttons. */
  words(seen, height) {
    const labels = this.labels.selectAll("g").data(seen.filter((d) => height(d) >= 15), (d) => d.id);
    labels.exit().remove();
    const entered = labels.enter().append("g");
    for (const kind of ["strong", "small", "small"]) entered.append("text").attr("class", kind);
    const all = entered.merge(labels);
    all
      .attr("class", (d) => `label ${d.data.k}`)
      .attr("transform", (d) => `translate(${d.depth * this.column},${Math.max(0, this.y(d.x0))})`);
    const lines = [
      [15, (d) => d.data.t],
      [30, (d) => d.data.r || d.data.s],
      [44, (d) => (d.data.r ? [d.data.s, d.data.p].filter(Boolean).join(", ") : "")],
    ];
    const room = this.column - 12;
    const fonts = ["600 12px", "10px", "10px"].map((size) => `${size} system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`);
    lines.forEach(([at, told], number) => {
      all.selectAll("text").filter((_, each) => each === number).attr("x", 6).attr("y", at);
      all.each(function (d) {
        const text = this.querySelectorAll("text")[number];
        text.textContent = height(d) > at + 3 - (number ? 0 : 2) ? fitting(told(d) ?? "", room, fonts[number]) : "";
      });
    });
  }

  key(event, d) {
    const siblings = d.parent ? d.parent.children : [d];
    const at = siblings.indexOf(d);
    const next = {
      ArrowRight: d.children?.[0],
      ArrowLeft: d.parent,
      ArrowDown: siblings[at + 1],
      ArrowUp: siblings[at - 1],
    };
    if (event.key === "Escape") this.show(this.tree);
    else if (event.key === "Enter" || event.key === " ") this.show(d);
    else if (event.key in next) next[event.key] && this.move(next[event.key]);
    else return;
    event.preventDefault();
  }

  /** Go to a cell, and into what is seen where it is not. */
  move(cell) {
    const [top, end] = [this.y(cell.x0), this.y(cell.x1)];
    if (top < 0 || end > this.height || end - top < 1) this.show(cell.parent ?? cell);
    this.choose(cell);
  }
}

const pen = document.createElement("canvas").getContext("2d");

/** Return a text shortened in the middle to a width in a font. */
function fitting(text, room, font) {
  pen.font = font;
  if (pen.measureText(text).width <= room) return text;
  const cut = (size) => `${text.slice(0, Math.ceil(size / 2))}\u2026${text.slice(text.length - Math.floor(size / 2))}`;
  let [low, high] = [0, text.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(cut(middle)).width <= room) low = middle;
    else high = middle - 1;
  }
  return low ? cut(low) : "";
}
