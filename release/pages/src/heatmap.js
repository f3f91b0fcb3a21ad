// ServicePorts by nodes: the loss of each if that node dies too. Only the visible part is drawn, on
// a canvas, since there may be ten million cells.
import { rgb } from "d3-color";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { colour, count, h, onColours } from "./dom.js";
import { domain } from "./names.js";
import { boundsPercent, equal, isOne, isZero, toFloat } from "./numbers.js";

const ROW = 20;
const HEAD = 96;
const FONT = "12px system-ui, sans-serif";

const DIES = {
  name: "heat",
  label: "Heat map of losses, ServicePorts by nodes. Arrow keys move, Enter marks the node.",
  caption: "Loss of each ServicePort if a node dies in addition to the marked ones: a stronger colour is a higher loss, \u00d7 in a narrow column is all flows, stripes are a range. The greatest harm first.",
};

export class HeatMap {
  /** `toggle` is called with the chosen node; `says` has the texts of the map. */
  constructor(model, toggle, says = DIES) {
    this.model = model;
    this.toggle = toggle;
    this.domain = domain(model.nodes);
    this.losses = [];
    this.dead = null;
    this.at = [0, 0];
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "heat map",
      "aria-label": says.label,
      "aria-describedby": `${says.name}-cell`,
    });
    this.sizer = h("div", { class: "sizer" }, this.canvas);
    this.scroller = h("div", { class: "heat" }, this.sizer);
    this.told = h("p", { id: `${says.name}-cell`, class: "cell", role: "status" }, "Point at a cell, or move with the arrow keys.");
    this.element = h(
      "figure",
      { class: "heat-map" },
      h("figcaption", {}, says.caption),
      this.scroller,
      this.told,
    );
    const paint = () => this.paint();
    this.scroller.addEventListener("scroll", paint, { passive: true });
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    onColours(() => this.resize());
    select(this.canvas)
      .on("pointermove", (event) => this.point(event))
      .on("click", (event) => this.point(event) && this.toggle(this.node(this.at[1])))
      .on("keydown", (event) => this.key(event));
  }

  /** Show other losses, those with `dead`. */
  show(losses, dead) {
    this.losses = losses;
    this.dead = dead;
    this.cells = new Map();
    this.idle = new Map();
    this.columns ??= this.inOrder();
    this.at = [Math.min(this.at[0], Math.max(0, losses.length - 1)), this.at[1]];
    this.resize();
  }

  /** Return nodes, those with most flows first. */
  inOrder() {
    const carried = this.model.nodes.map(() => 0);
    for (const service of this.model.services) {
      for (const place of service.places) {
        const [node] = this.model.places[place];
        if (node >= 0) carried[node] += 1 / service.places.length;
      }
    }
    return carried.map((_, at) => at).sort((a, b) => carried[b] - carried[a] || a - b);
  }

  node(column) {
    return this.columns[column];
  }

  /** Return what a ServicePort loses with a node dead too. */
  loss(row, column) {
    const { service, worst } = this.losses[row];
    const node = this.node(column);
    if (this.dead.nodes.has(node)) return worst;
    const touched = this.model.touched[service.at].has(node);
    if (!touched && !this.model.isOpen[service.at]) return worst;
    const key = service.at * this.model.nodes.length + node;
    if (!this.cells.has(key)) this.cells.set(key, this.model.loss(service, this.dead.with(node))?.worst ?? null);
    return this.cells.get(key);
  }

  resize() {
    const width = this.scroller.clientWidth;
    if (!width || !this.dead) return;
    const nodes = this.columns.length;
    this.gutter = Math.round(Math.min(260, width * 0.4));
    const room = width - this.gutter - 8;
    this.column = Math.max(14, Math.min(90, Math.floor(room / nodes)));
    const height = Math.min(HEAD + ROW * this.losses.length + 4, 520);
    this.scroller.style.height = `${height + 16}px`;
    this.sizer.style.width = `${this.gutter + this.column * nodes + 40}px`;
    this.sizer.style.height = `${HEAD + ROW * this.losses.length + 4}px`;
    const ratio = devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.inks = ["heat-ink", "heat-ink-much"].map(colour);
    this.inkOf = new Map();
    this.colours = scaleLinear()
      .domain([0, 0.25, 0.5, 1])
      .range(["heat-0", "heat-1", "heat-2", "heat-3"].map(colour))
      .clamp(true);
    this.paint();
  }

  paint() {
    if (!this.dead || !this.width) return;
    const context = this.canvas.getContext("2d");
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colour("paper");
    context.fillRect(0, 0, this.width, this.height);
    const { scrollLeft, scrollTop } = this.scroller;
    const rows = [Math.floor(scrollTop / ROW), Math.ceil((scrollTop + this.height - HEAD) / ROW)];
    const columns = [Math.floor(scrollLeft / this.column), Math.ceil((scrollLeft + this.width - this.gutter) / this.column)];
    rows[1] = Math.min(rows[1], this.losses.length);
    columns[1] = Math.min(columns[1], this.columns.length);
    context.font = FONT;
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(this.gutter, HEAD, this.width - this.gutter, this.height - HEAD);
    context.clip();
    for (let row = rows[0]; row < rows[1]; row += 1) {
      for (let column = columns[0]; column < columns[1]; column += 1) {
        this.cell(context, row, column, this.gutter + column * this.column - scrollLeft, HEAD + row * ROW - scrollTop);
      }
    }
    context.restore();
    this.heads(context, rows, columns, scrollLeft, scrollTop);
  }

  cell(context, row, column, x, y) {
    const loss = this.loss(row, column);
    const [w, hh] = [this.column - 1, ROW - 1];
    if (loss === null) return;
    const share = toFloat(loss[1]);
    context.fillStyle = this.colours(share);
    context.fillRect(x, y, w, hh);
    const ink = this.ink(share);
    if (!equal(loss[0], loss[1])) stripes(context, x, y, w, hh, ink);
    if (!isZero(loss[1])) {
      context.fillStyle = ink;
      context.textAlign = "center";
      const text = this.column >= 64 ? boundsPercent(loss) : isOne(loss[0]) ? "\u00d7" : "";
      if (text) context.fillText(text, x + w / 2, y + hh / 2 + 1, w);
    }
    if (document.activeElement === this.canvas && row === this.at[0] && column === this.at[1]) {
      context.strokeStyle = colour("focus");
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, w - 2, hh - 2);
    }
  }

  /** Return the text colour with the best contrast on the colour of a share. */
  ink(share) {
    const paper = this.colours(share);
    if (!this.inkOf.has(paper)) {
      const contrast = (ink) => (Math.max(bright(ink), bright(paper)) + 0.05) / (Math.min(bright(ink), bright(paper)) + 0.05);
      this.inkOf.set(paper, this.inks.reduce((a, b) => (contrast(a) >= contrast(b) ? a : b)));
    }
    return this.inkOf.get(paper);
  }

  heads(context, rows, columns, left, top) {
    context.fillStyle = colour("ink");
    context.textAlign = "right";
    context.save();
    context.beginPath();
    context.rect(0, HEAD, this.gutter, this.height - HEAD);
    context.clip();
    for (let row = rows[0]; row < rows[1]; row += 1) {
      const name = shortened(context, this.losses[row].service.name, this.gutter - 14);
      context.fillText(name, this.gutter - 8, HEAD + row * ROW - top + ROW / 2);
    }
    context.restore();
    context.save();
    context.beginPath();
    context.rect(this.gutter - 20, 0, this.width, HEAD);
    context.clip();
    context.textAlign = "left";
    for (let column = columns[0]; column < columns[1]; column += 1) {
      const node = this.node(column);
      context.save();
      context.translate(this.gutter + (column + 0.5) * this.column - left, HEAD - 6);
      context.rotate(-Math.PI / 3);
      context.font = this.dead.nodes.has(node) ? `bold ${FONT}` : FONT;
      const name = (this.dead.nodes.has(node) ? "\u2717 " : "") + this.model.nodes[node];
      context.fillText(shortened(context, name, HEAD - 4, this.domain), 0, 0);
      context.restore();
    }
    context.restore();
  }

  /** Move to the cell of an event; return false if there is none. */
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.gutter + this.scroller.scrollLeft) / this.column);
    const row = Math.floor((event.clientY - box.top - HEAD + this.scroller.scrollTop) / ROW);
    const inside = event.clientX - box.left > this.gutter && event.clientY - box.top > HEAD;
    if (!inside || row < 0 || row >= this.losses.length || column < 0 || column >= this.columns.length) return false;
    this.at = [row, column];
    this.tell();
    return true;
  }

  key(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.toggle(this.node(this.at[1]));
      this.tell();
      return;
    }
    const step = steps[event.key];
    if (!step || !this.losses.length) return;
    event.preventDefault();
    const row = Math.max(0, Math.min(this.losses.length - 1, this.at[0] + step[0]));
    const column = Math.max(0, Math.min(this.columns.length - 1, this.at[1] + step[1]));
    this.at = [row, column];
    const seen = this.scroller;
    const [x, y] = [column * this.column, row * ROW];
    if (y < seen.scrollTop) seen.scrollTop = y;
    if (y + ROW > seen.scrollTop + this.height - HEAD) seen.scrollTop = y + ROW - this.height + HEAD;
    if (x < seen.scrollLeft) seen.scrollLeft = x;
    const room = this.width - this.gutter;
    if (x + this.column > seen.scrollLeft + room) seen.scrollLeft = x + this.column - room;
    this.tell();
    this.paint();
  }

  /** Say what the cell shows. */
  tell() {
    const [row, column] = this.at;
    this.told.textContent = this.words(row, column);
    this.element.dispatchEvent(new CustomEvent("cell", { detail: { service: this.losses[row].service.name, node: this.node(column) } }));
  }

  /** Return the description of a cell. */
  words(row, column) {
    const { service } = this.losses[row];
    const node = this.node(column);
    const loss = this.loss(row, column);
    const name = `${service.name} (${service.protocol})`;
    const also = this.dead.isAnything ? " dead too" : " dead";
    const whose = this.dead.nodes.has(node) ? `${this.model.nodes[node]} is marked dead` : `with ${this.model.nodes[node]}${also}`;
    const here = service.places.filter((place) => this.model.places[place][0] === node).length;
    const share = loss === null ? "no living node has it" : `loses ${boundsPercent(loss)} of new flows`;
    return `${name}: ${whose}, ${share}; ${here} of ${count(service.places.length, "endpoint")} there.`;
  }
}

/** Return the relative luminance of a colour, as WCAG 2 defines it. */
function bright(text) {
  const found = rgb(text);
  const linear = (each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(found.r) + 0.7152 * linear(found.g) + 0.0722 * linear(found.b);
}

function stripes(context, x, y, w, hh, ink) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, hh);
  context.clip();
  context.strokeStyle = ink;
  context.globalAlpha = 0.45;
  context.lineWidth = 1;
  for (let at = -hh; at < w; at += 5) {
    context.beginPath();
    context.moveTo(x + at, y + hh);
    context.lineTo(x + at + hh, y);
    context.stroke();
  }
  context.restore();
}

/** Return a name that fits: without its domain, which all have, or without its middle. */
function shortened(context, whole, width, domain = "") {
  if (context.measureText(whole).width <= width) return whole;
  const text = domain ? whole.slice(0, -domain.length) : whole;
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [1, text.length];
  const cut = (size) => `${text.slice(0, Math.ceil(size / 2))}\u2026${text.slice(text.length - Math.floor(size / 2))}`;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(cut(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return cut(low);
}
