"""A cluster of two nodes with an endpoint on each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyzer.kubeproxy.generate import RulesLayout
from tests.support.clusters import GeneratedCluster


def cluster() -> GeneratedCluster:
    """Two nodes, and a Service with a NodePort that has an endpoint on each."""
    items: list[Any] = [
        {
            "kind": "Node",
            "metadata": {"name": f"node{at}", "labels": {}},
            "spec": {"podCIDR": f"10.244.{at}.0/24", "podCIDRs": [f"10.244.{at}.0/24"]},
            "status": {"addresses": [{"type": "InternalIP", "address": f"192.168.9.{10 + at}"}]},
        }
        for at in (0, 1)
    ]
    port = {"name": "http", "protocol": "TCP", "port": 80}
    meta = {"name": "shop", "namespace": "default"}
    spec = {
        "type": "NodePort",
        "clusterIP": "10.96.7.7",
        "clusterIPs": ["10.96.7.7"],
        "ports": [{**port, "nodePort": 30080}],
        "internalTrafficPolicy": "Cluster",
        "externalTrafficPolicy": "Cluster",
        "sessionAffinity": "None",
    }
    items.append({"kind": "Service", "metadata": meta, "spec": spec, "status": {}})
    labels = {"kubernetes.io/service-name": "shop"}
    items.append(
        {
            "kind": "EndpointSlice",
            "addressType": "IPv4",
            "metadata": {"name": "shop-0", "namespace": "default", "labels": labels},
            "endpoints": [
                {
                    "addresses": [f"10.244.{at}.3"],
                    "conditions": {"ready": True, "serving": True, "terminating": False},
                    "nodeName": f"node{at}",
                }
                for at in (0, 1)
            ],
            "ports": [port],
        }
    )
    return GeneratedCluster(items, ("--cluster-cidr=10.244.0.0/16",), RulesLayout.V1_36, 4, "node0")


@dataclass(frozen=True)
class Asked:
    """Writes what is asked about two nodes into files."""

    folder: Path

    def write(self, name: str, text: str) -> str:
        """Return the path of a file with this text."""
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def words(self, here: str, there: str, items: Sequence[Any] | None = None) -> list[str]:
        """Return what asks about node0 with the dump `here`, where node1 has the dump `there`."""
        listed = cluster().items if items is None else list(items)
        objects = json.dumps({"kind": "List", "items": listed})
        return [
            *(self.write("node0.txt", here), "--node", "node0"),
            *("--objects", self.write("objects.json", objects)),
            *("--rules", f"node1={self.write('node1.txt', there)}"),
        ]
