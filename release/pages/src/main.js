import { drift } from "./drift.js";
import { explorer } from "./explorer.js";
import { icicles } from "./icicle.js";
import { tables } from "./tables.js";
import { tsv } from "./tsv.js";

tables();
explorer();
drift();
icicles();
// Used by tests.
globalThis.kubeodds = { tsv };
document.documentElement.dataset.ready = "1";
