// Makes what pages carry, into analyzer/data/pages: `make pages`. The same sources give the same
// bytes: versions are locked, and nothing of this machine gets in.
import { build } from "esbuild";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../../analyzer/data/pages");
mkdirSync(target, { recursive: true });

const common = { absWorkingDir: here, bundle: true, minify: true, write: false, charset: "ascii", legalComments: "none", metafile: true };
const script = await build({ ...common, entryPoints: ["src/main.js"], format: "iife", target: ["es2022"] });
const style = await build({ ...common, entryPoints: ["src/page.css"] });
const text = script.outputFiles[0].text.trim();
// What would end the element of a script ends it within a string too.
if (/<\/script|<!--/i.test(text)) throw new Error("the script holds what ends a script");
writeFileSync(join(target, "page.js"), text);
writeFileSync(join(target, "page.css"), style.outputFiles[0].text.trim());

const packages = new Set();
for (const path of Object.keys(script.metafile.inputs)) {
  const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
  if (found) packages.add(found[1]);
}
const licences = [...packages].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
});
writeFileSync(join(target, "LICENSES.txt"), `What page.js is made of besides kubeodds itself.\n\n${licences.join("\n----\n\n")}`);
