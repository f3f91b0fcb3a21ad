// Elements with text, which is never interpreted as markup.

/** Return an element; attributes that are functions listen to events. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Return the embedded document with a name; null if there is none. */
export function data(name) {
  const found = document.getElementById(`data-${name}`);
  return found && JSON.parse(found.textContent);
}

export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** Return the value of a colour variable of the page, light or dark. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Call back when colours change: light, dark, or on paper. */
export function onColours(callback) {
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", callback);
  }
}
