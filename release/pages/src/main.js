import { drift } from "./drift.js";
import { explorer } from "./explorer.js";
import { icicles } from "./icicle.js";
import { tables } from "./tables.js";
import { tsv } from "./tsv.js";

tables();
explorer();
drift();
icicles();
// What tests ask of the page.
globalThis.kubeodds = { tsv };
document.documentElement.dataset.ready = "1";
