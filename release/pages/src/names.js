// Names of nodes, where there is little room.

/** Return the end that all names have in common, from a dot on; "" if there is none. */
export function domain(names) {
  if (names.length < 2) return "";
  const labels = names.map((name) => name.split("."));
  const shortest = Math.min(...labels.map((each) => each.length));
  let number = 0;
  while (number < shortest - 1 && labels.every((each) => each.at(-1 - number) === labels[0].at(-1 - number))) number += 1;
  return number ? `.${labels[0].slice(-number).join(".")}` : "";
}
