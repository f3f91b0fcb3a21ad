// What each ServicePort loses at each node, as a heat map.
import { HeatMap } from "./heatmap.js";
import { boundsPercent } from "./numbers.js";

/** ServicePorts by the nodes that are asked. */
export class VantageMap extends HeatMap {
  constructor(model, vantages) {
    super(model, () => {}, {
      name: "at",
      label: "Heat map of losses, ServicePorts by nodes. Arrow keys move.",
      caption: "Loss of each ServicePort at each node, if the marked ones are dead: a stronger colour is a higher loss, \u00d7 in a narrow column is all flows, stripes are a range. Similar nodes are next to each other; a node that is dead, or does not have the ServicePort, has no colour.",
    });
    this.vantages = vantages;
  }

  /** Return nodes, those beside each other that are in the same groups. */
  inOrder() {
    const { everywhere, groups } = this.model;
    const sign = new Map(everywhere.map((node) => [node, ""]));
    // Groups of few tell nodes apart; those of many are nearly all.
    groups.forEach((group, at) => {
      if (2 * group.length <= everywhere.length) group.forEach((node) => sign.set(node, `${sign.get(node)},${at}`));
    });
    const first = new Map();
    for (const node of everywhere) if (!first.has(sign.get(node))) first.set(sign.get(node), node);
    return [...everywhere].sort((a, b) => first.get(sign.get(a)) - first.get(sign.get(b)) || a - b);
  }

  loss(row, column) {
    return this.vantages.at(this.losses[row], this.node(column), this.dead)?.worst ?? null;
  }

  words(row, column) {
    const { service } = this.losses[row];
    const node = this.node(column);
    const name = this.model.nodes[node];
    const found = this.vantages.at(this.losses[row], node, this.dead);
    let said = found && `loses ${boundsPercent(found.worst)} of new flows`;
    if (found === null) said = this.dead.takes(node) ? "it is marked dead" : "its rules do not have it";
    else if (found.state === "no-endpoints") said = "its rules have no endpoint for it";
    return `${service.name} (${service.protocol}) at ${name}: ${said}.`;
  }
}
