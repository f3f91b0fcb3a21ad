// What each ServicePort loses at each node, as a heat map.
import { HeatMap } from "./heatmap.js";
import { boundsPercent } from "./numbers.js";

/** ServicePorts by the nodes that are asked. */
export class VantageMap extends HeatMap {
  constructor(model, vantages) {
    super(model, () => {}, {
      name: "at",
      label: "Heat map of losses, ServicePorts by the nodes that are asked. Arrow keys move.",
      caption: "What each ServicePort loses at each node, with those dead that are marked: the stronger the colour, the more; \u00d7 is all, stripes are a range. Nodes that are alike stand together; a node that is dead, or does not have the ServicePort, has no colour.",
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
    if (found === null) said = this.dead.takes(node) ? "it is marked dead" : "its rules have none for it";
    else if (found.state === "no-endpoints") said = "its rules lead to no endpoint";
    return `${service.name} (${service.protocol}) at ${name}: ${said}.`;
  }
}
