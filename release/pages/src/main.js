import { explorer } from "./explorer.js";
import { tables } from "./tables.js";

tables();
const found = explorer();
document.documentElement.dataset.ready = "1";
globalThis.kubeodds = { explorer: found };
