// Tables for other programs: tab-separated cells, none of which a spreadsheet reads as a formula.
import { h } from "./dom.js";

const cell = (text) => {
  const plain = text.replace(/\s+/g, " ").trim();
  return /^[=+\-@]/.test(plain) ? `'${plain}` : plain;
};

/** Return rows as TSV. */
export const tsv = (rows) => rows.map((row) => row.map(cell).join("\t")).join("\n") + "\n";

/** Put text on the clipboard. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Return a button that copies what `rows` gives. */
export function copyButton(rows) {
  const button = h("button", { type: "button", class: "copy" }, "Copy as TSV");
  button.addEventListener("click", async () => {
    await copy(tsv(rows()));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy as TSV"), 1500);
  });
  return button;
}
