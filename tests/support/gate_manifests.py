"""Manifests as people have them, the nodes they are judged on, and what comes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "fixtures" / "manifests"
#: Two zones of three nodes, one of them with a disk, beside a node with a GPU and a master.
NODES: Final = (
    "2xzone=a+cpu=4+memory=16Gi,1xzone=a+cpu=4+memory=16Gi+disk=ssd,3xzone=b+cpu=4+memory=16Gi,"
    "1xzone=b+accelerator=t4+taint=nvidia.com/gpu=present:NoSchedule+cpu=8+memory=32Gi,"
    "1xcontrol-plane+zone=a+cpu=2+memory=8Gi"
)
THRESHOLDS: Final = ("--max-loss", "50%", "--min-survives", "1")


@dataclass(frozen=True)
class Expected:
    """What is lost at most, as fractions of all pods; reasoned out by hand.

    Attributes:
        pending: how many pods find no node.
    """

    service: str
    node: tuple[int, int]
    zone: tuple[int, int]
    survives: int
    control_plane: tuple[int, int] = (0, 1)
    pending: int = 0

    @property
    def passes(self) -> bool:
        losses = (self.node, self.zone, self.control_plane)
        return not self.pending and self.survives >= 1 and all(2 * k <= n for k, n in losses)


_ALL, _HALF, _NONE = (1, 1), (1, 2), (0, 1)
EXPECTED: Final = {
    # Both may stand on one node, since anti-affinity is only preferred; and that node be a master.
    "coredns": Expected("kube-system/kube-dns", _ALL, _ALL, 0, _ALL),
    "web-plain": Expected("shop/web", _ALL, _ALL, 0),
    # Three nodes are in one zone.
    "web-anti-affinity": Expected("shop/web", (1, 3), _ALL, 2),
    "redis-ha": Expected("shop/redis", (1, 3), _ALL, 2),
    # Two in each zone, which may share a node.
    "web-zone-spread": Expected("shop/web", _HALF, _HALF, 1),
    "web-zone-and-host-spread": Expected("shop/web", (1, 4), _HALF, 3),
    # The one node with a disk.
    "postgres": Expected("shop/postgres", _ALL, _ALL, 0),
    # One on each of six workers.
    "ingress-nginx": Expected("ingress-nginx/ingress-nginx", (1, 6), _HALF, 5),
    # Each node uses its own.
    "log-agent": Expected("logging/log-agent", _NONE, _NONE, 7),
    "rabbitmq": Expected("shop/rabbitmq", _ALL, _ALL, 0),
    "gpu-inference": Expected("shop/inference", _ALL, _ALL, 0),
    "webhook": Expected("cert-manager/webhook", _ALL, _ALL, 0, _ALL),
    "canary": Expected("shop/checkout", _ALL, _ALL, 0),
    # From two to twelve: with three of them two are in one zone, and may share a node.
    "payments-hpa": Expected("shop/payments", (2, 3), (2, 3), 1),
    # Both pods of a zone on one node are all that the zone has; a zone that is gone asks nobody.
    "prefer-close": Expected("shop/catalog", _ALL, _NONE, 0),
    "beside-cache": Expected("shop/session", _ALL, _ALL, 0),
    # Nodes with taints count as empty domains, so that no other may have two.
    "host-spread-tainted": Expected("shop/search", (1, 6), _HALF, 5, pending=4),
    # Two of 1.5 CPUs fit on a node of 4.
    "large-requests": Expected("shop/render", (1, 3), _ALL, 2),
    # With two domains of the three that are wanted, one pod may be in each.
    "kafka-min-domains": Expected("shop/kafka", _HALF, _HALF, 1, pending=1),
    "zone-anti-affinity": Expected("shop/gateway", _HALF, _HALF, 1),
}
#: Of which the lab measures the worst placement.
MEASURED: Final = (
    "coredns",
    "redis-ha",
    "web-zone-and-host-spread",
    "large-requests",
    "zone-anti-affinity",
)
