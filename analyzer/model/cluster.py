"""What the Kubernetes API says of nodes, and of where addresses live."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from analyzer.model.packet import Address, Network
from analyzer.model.value import value


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
    """Nodes by name, and the placement of each endpoint's address."""

    nodes: Mapping[str, Node] = MappingProxyType({})
    placements: Mapping[Address, Placement] = MappingProxyType({})

    def placement(self, address: Address) -> Placement:
        """Return where `address` lives; both parts None when nothing says."""
        return self.placements.get(address, Placement(None, None))

    @property
    def zones(self) -> frozenset[str]:
        """All zones of nodes and of endpoints."""
        of_nodes = {n.zone for n in self.nodes.values()}
        of_endpoints = {p.zone for p in self.placements.values()}
        return frozenset(z for z in of_nodes | of_endpoints if z)
