// Headings of a table that scripts fill: a click sorts by that column, another one the other way.
import { h } from "./dom.js";

export class Order {
  /** `keys` are what rows are compared by, a function for each column; `changed` is told. */
  constructor(headings, right, keys, changed) {
    this.keys = keys;
    this.changed = changed;
    this.at = null;
    this.down = false;
    this.heads = headings.map((heading, at) =>
      h("th", { scope: "col", class: right.has(at) ? "right" : null }, h("button", { type: "button", class: "sort", click: () => this.by(at) }, heading)),
    );
  }

  by(at) {
    this.down = this.at === at && !this.down;
    this.at = at;
    const told = this.down ? "descending" : "ascending";
    this.heads.forEach((head, each) => (each === at ? head.setAttribute("aria-sort", told) : head.removeAttribute("aria-sort")));
    this.changed();
  }

  /** Sort rows, in place, if a column was chosen. */
  sort(rows) {
    if (this.at === null) return rows;
    const key = this.keys[this.at];
    return rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (this.down ? -1 : 1);
    });
  }
}
