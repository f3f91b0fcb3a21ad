"""What the Kubernetes API says of nodes, and of where addresses live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from analyzer.model.addresses import Address, Network
from analyzer.model.value import replace, value


@value(kw_only=True)
class Node:
    """One node.

    Attributes:
        addresses: of the node itself, InternalIP first.
        pod_networks: its podCIDRs; empty where the CNI plugin assigns addresses by itself.
        zone: ``topology.kubernetes.io/zone``.
        is_control_plane: whether it carries the control plane's role label.
    """

    name: str
    addresses: tuple[Address, ...] = ()
    pod_networks: tuple[Network, ...] = ()
    zone: str | None = None
    is_control_plane: bool = False


@value
class Placement:
    """Where an endpoint's address lives."""

    node: str | None
    zone: str | None


@value
class Cluster:
    """Nodes by name, and the placement of each endpoint's address.

    Attributes:
        networks: which node's a network is, where somebody said so; the narrowest first.
    """

    nodes: Mapping[str, Node] = MappingProxyType({})
    placements: Mapping[Address, Placement] = MappingProxyType({})
    networks: tuple[tuple[Network, str], ...] = ()

    def placement(self, address: Address) -> Placement:
        """Return where `address` lives; both parts None when nothing says.

        What objects say of an address goes before what was said of its network.
        """
        found = self.placements.get(address, Placement(None, None))
        if found.node is None:
            for network, name in self.networks:
                if address in network:
                    node = self.nodes.get(name)
                    return Placement(name, found.zone or (node.zone if node else None))
        return found

    @property
    def places(self) -> bool:
        """Whether it says of anything where it lives."""
        return bool(self.placements or self.networks)

    def with_networks(self, said: Iterable[tuple[Network, str]]) -> Cluster:
        """Return it with networks of nodes besides, of nodes that it need not know."""
        networks = sorted([*said, *self.networks], key=lambda each: -each[0].prefixlen)
        nodes = dict(self.nodes)
        for network, name in networks:
            node = nodes.get(name, Node(name=name))
            nodes[name] = replace(node, pod_networks=(*node.pod_networks, network))
        return Cluster(nodes, self.placements, tuple(networks))

    @property
    def zones(self) -> frozenset[str]:
        """All zones of nodes and of endpoints."""
        of_nodes = {n.zone for n in self.nodes.values()}
        of_endpoints = {p.zone for p in self.placements.values()}
        return frozenset(z for z in of_nodes | of_endpoints if z)
