// Tables of the page: sorted by a click on a heading, filtered, copied.
import { h } from "./dom.js";
import { copyButton } from "./tsv.js";

/** Return what a cell is sorted by: a number where it begins with one, else its text. */
function key(text) {
  const found = /^[<>~]?\s*(-?[\d,]+(?:\.\d+)?)/.exec(text);
  return found ? [0, Number(found[1].replaceAll(",", "")), text] : [1, 0, text.toLowerCase()];
}

const order = (a, b) => a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : a[2] > b[2] ? 1 : 0);
const texts = (row) => [...row.cells].map((cell) => cell.textContent);

/** Make every table that may be sorted and filtered so. */
export function tables() {
  for (const table of document.querySelectorAll("table")) {
    if (table.closest("#explorer, #drift")) continue;
    const bar = h("div", { class: "bar" }, copyButton(() => shown(table)));
    // Rows that go on with the one above have an empty first cell: in another order they would lie.
    const isGrouped = [...table.tBodies[0].rows].some((row) => row.cells[0]?.textContent.trim() === "");
    if (table.classList.contains("sorts") && !isGrouped) {
      sortable(table);
      if (table.tBodies[0].rows.length > 5) bar.prepend(filter(table));
    }
    table.parentElement.before(bar);
  }
}

const shown = (table) => [...table.rows].filter((row) => !row.hidden).map(texts);

function filter(table) {
  const field = h("input", { type: "search" });
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  return h("label", {}, "Filter ", field);
}

function sortable(table) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, at) => {
    const button = h("button", { type: "button", class: "sort" }, ...heading.childNodes);
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [key(row.cells[at].textContent.trim()), row]);
      rows.sort((a, b) => (down ? order(b[0], a[0]) : order(a[0], b[0])));
      body.append(...rows.map((row) => row[1]));
    });
  });
}
