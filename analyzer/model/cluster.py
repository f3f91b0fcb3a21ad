"""Nodes, and the node of each address, as the Kubernetes API has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from analyzer.model.addresses import Address, Network
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@value(kw_only=True)
class Node:
    """One node.

    Attributes:
        addresses: of the node itself, InternalIP first.
        pod_networks: its podCIDRs; empty if the CNI plugin assigns addresses by itself.
        zone: ``topology.kubernetes.io/zone``.
        is_control_plane: whether it has the control plane's role label.
    """

    name: str
    addresses: tuple[Address, ...] = ()
    pod_networks: tuple[Network, ...] = ()
    zone: str | None = None
    is_control_plane: bool = False


@value
class Placement:
    """The node and zone of an endpoint's address."""

    node: str | None
    zone: str | None


@value
class Owners:
    """The nodes that own networks; of nested networks, the narrowest counts."""

    by_length: Mapping[tuple[int, int], Mapping[int, str | None]] = MappingProxyType({})

    @classmethod
    def of(cls, networks: Iterable[tuple[Network, str]]) -> Owners:
        """Return owners by version and prefix length; a network of two nodes has no owner."""
        found: dict[tuple[int, int], dict[int, str | None]] = {}
        for network, name in networks:
            owners = found.setdefault((network.version, network.prefixlen), {})
            prefix = int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
            owners[prefix] = name if owners.get(prefix, name) == name else None
        return cls({key: found[key] for key in sorted(found, reverse=True)})

    def owner(self, address: Address) -> str | None:
        """Return the node whose network contains `address`."""
        for (version, length), owners in self.by_length.items():
            if version == address.version:
                prefix = int(address) >> (address.max_prefixlen - length)
                if prefix in owners:
                    return owners[prefix]
        return None


@value
class PodNames:
    """The pods of endpoints, as ``namespace/name``; None if two pods are named.

    Attributes:
        by_port: of addresses with the port that a Service sends flows to.
        by_address: of pods with a network of their own, so that all ports are theirs.
    """

    by_port: Mapping[tuple[Address, int], str | None] = MappingProxyType({})
    by_address: Mapping[Address, str | None] = MappingProxyType({})

    def of(self, address: Address, port: int | None) -> str | None:
        """Return the pod at an address and port; None if not known."""
        whole = self.by_address.get(address)
        if port is None or (address, port) not in self.by_port:
            return whole
        named = self.by_port[address, port]
        # The objects may not be from the same moment: the address may have changed hands.
        return named if address not in self.by_address or named == whole else None


class Pods:
    """The names of pods, looked up on first access, since few reports show them."""

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[], PodNames] = PodNames) -> None:
        self._find = find
        self._found: PodNames | None = None

    def of(self, address: Address, port: int | None) -> str | None:
        """Return the pod at an address and port; None if not known."""
        if self._found is None:
            self._found = self._find()
        return self._found.of(address, port)


_NOWHERE: Final = Placement(None, None)


@value
class Cluster:
    """Nodes by name, and the placement of each endpoint's address.

    Attributes:
        networks: the owners of networks given by the user.
        pod_networks: the nodes' podCIDRs, unless the objects show that they are not used.
        pods: the pods that addresses belong to.
    """

    nodes: Mapping[str, Node] = MappingProxyType({})
    placements: Mapping[Address, Placement] = MappingProxyType({})
    networks: Owners = Owners()
    pod_networks: Owners = Owners()
    pods: Pods = Pods()

    def placement(self, address: Address) -> Placement:
        """Return node and zone of `address`, each None if not known.

        Objects that name the address take precedence over networks given by the user, and these
        over the nodes' podCIDRs.
        """
        found = self.placements.get(address, _NOWHERE)
        if found.node is not None:
            return found
        name = self.networks.owner(address) or self.pod_networks.owner(address)
        if name is None:
            return found
        node = self.nodes.get(name)
        return Placement(name, found.zone or (node.zone if node is not None else None))

    def is_placed_by_pod_network(self, address: Address) -> bool:
        """Return whether only a podCIDR says on which node `address` is."""
        if self.placements.get(address, _NOWHERE).node or self.networks.owner(address):
            return False
        return self.pod_networks.owner(address) is not None

    @property
    def places(self) -> bool:
        """Whether any address or network has a known node or zone."""
        known = self.networks.by_length or self.pod_networks.by_length
        return bool(self.placements or known)

    @property
    def has_objects(self) -> bool:
        """Whether any of this is from API objects: networks given by the user have no address."""
        return bool(self.placements or any(each.addresses for each in self.nodes.values()))

    def with_networks(self, said: Iterable[tuple[Network, str]]) -> Cluster:
        """Return a copy with networks of nodes added; the nodes need not be known."""
        networks = list(said)
        nodes = dict(self.nodes)
        for network, name in networks:
            node = nodes.get(name, Node(name=name))
            nodes[name] = replace(node, pod_networks=(*node.pod_networks, network))
        return replace(self, nodes=nodes, networks=Owners.of(networks))

    def zone_of(self, name: str) -> str | None:
        """Return the zone of a node: its own, or that of the endpoints on it."""
        node = self.nodes.get(name)
        if node is not None and node.zone is not None:
            return node.zone
        zones = {p.zone for p in self.placements.values() if p.node == name and p.zone}
        return zones.pop() if len(zones) == 1 else None

    @property
    def node_names(self) -> frozenset[str]:
        """All nodes, including those known only from an endpoint."""
        return frozenset([*self.nodes, *(p.node for p in self.placements.values() if p.node)])

    @property
    def zones(self) -> frozenset[str]:
        """All zones of nodes and of endpoints."""
        of_nodes = {n.zone for n in self.nodes.values()}
        of_endpoints = {p.zone for p in self.placements.values()}
        return frozenset(z for z in of_nodes | of_endpoints if z)
