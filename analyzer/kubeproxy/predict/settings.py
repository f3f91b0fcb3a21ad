"""The settings, given or assumed, of all kube-proxies of a cluster, and of each of them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.objects import node_address_of, pod_networks_of, service_cidrs
from analyzer.kubeproxy.predict.versions import NEWEST, Version
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.model.addresses import Network
from analyzer.model.value import value
from analyzer.parsers.api_objects import Object, at, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ZONE: Final = "topology.kubernetes.io/zone"
#: Modes whose rules can be generated.
GENERATED: Final = (ProxyMode.IPTABLES, ProxyMode.NFTABLES)


@enum.unique
class LocalMode(enum.Enum):
    """``--detect-local-mode``: the network by which a kube-proxy recognises flows of pods.

    Source: cmd/kube-proxy/app/server_linux.go, ``getLocalDetectors``. There are no captures of
    BridgeInterface and InterfaceNamePrefix.
    """

    CLUSTER_CIDR = "ClusterCIDR"
    NODE_CIDR = "NodeCIDR"


@value(kw_only=True)
class ClusterSettings:
    """The settings of all kube-proxies.

    Attributes:
        cluster_cidrs: ``--cluster-cidr``, of either IP version or of both; empty: without it.
        kubelet: whether each node's kubelet has put its rules in place, which drop flows up to
            1.24.
    """

    version: Version = NEWEST
    mode: ProxyMode = ProxyMode.IPTABLES
    local_mode: LocalMode = LocalMode.CLUSTER_CIDR
    cluster_cidrs: tuple[Network, ...] = ()
    masquerade_all: bool = False
    kubelet: bool = True


def names_of_nodes(objects: Iterable[Object]) -> list[str]:
    """Return the names of the Node objects, in their order."""
    named = (text(at(o, "metadata", "name")) for o in objects if o.get("kind") == "Node")
    return list(dict.fromkeys(name for name in named if name))


def proxies(
    objects: Sequence[Object], settings: ClusterSettings, family: int
) -> dict[str, ProxyConfig]:
    """Return the kube-proxy of one family at every node, by the node's name."""
    cidrs = [n for n in settings.cluster_cidrs if n.version == family]
    ranges = service_cidrs(objects, family)
    found = {}
    layout = settings.version.layout
    for item in objects:
        name = text(at(item, "metadata", "name")) if item.get("kind") == "Node" else None
        if name is None:
            continue
        mine = cidrs
        if settings.local_mode is LocalMode.NODE_CIDR:
            mine = [*pod_networks_of(item, family)]
        found[name] = ProxyConfig(
            layout=layout,
            family=family,
            node=name,
            node_address=node_address_of(item, family) if layout.knows_node_address else None,
            zone=text(at(item, "metadata", "labels", _ZONE)),
            cluster_cidr=mine[0] if mine else None,
            service_cidrs=ranges,
            masquerade_all=settings.masquerade_all,
            kubelet=settings.kubelet,
        )
    return found
