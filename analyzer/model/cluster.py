"""What the Kubernetes API says about nodes, and the node of each address."""

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
class Owners:
    """Which node's a network is; of networks that lie in each other, the narrowest."""

    by_length: Mapping[tuple[int, int], Mapping[int, str | None]] = MappingProxyType({})

    @classmethod
    def of(cls, networks: Iterable[tuple[Network, str]]) -> Owners:
        """Return them by version and length; a network of two nodes is nobody's."""
        found: dict[tuple[int, int], dict[int, str | None]] = {}
        for network, name in networks:
            owners = found.setdefault((network.version, network.prefixlen), {})
            prefix = int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
            owners[prefix] = name if owners.get(prefix, name) == name else None
        return cls({key: found[key] for key in sorted(found, reverse=True)})

    def owner(self, address: Address) -> str | None:
        """Return the node in whose network `address` is."""
        for (version, length), owners in self.by_length.items():
            if version == address.version:
                prefix = int(address) >> (address.max_prefixlen - length)
                if prefix in owners:
                    return owners[prefix]
        return None


@value
class PodNames:
    """Which pod an endpoint is, as ``namespace/name``; None where two are named.

    Attributes:
        by_port: of addresses with the port that a Service sends flows to.
        by_address: of pods with a network of their own, so that all ports are theirs.
    """

    by_port: Mapping[tuple[Address, int], str | None] = MappingProxyType({})
    by_address: Mapping[Address, str | None] = MappingProxyType({})

    def of(self, address: Address, port: int | None) -> str | None:
        """Return the pod at a place; None: not known."""
        whole = self.by_address.get(address)
        if port is None or (address, port) not in self.by_port:
            return whole
        named = self.by_port[address, port]
        # The objects may have been read one after the other: an address can change hands between.
        return named if address not in self.by_address or named == whole else None


class Pods:
    """The names of pods, looked for when one is first asked for: few reports tell them."""

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[], PodNames] = PodNames) -> None:
        self._find = find
        self._found: PodNames | None = None

    def of(self, address: Address, port: int | None) -> str | None:
        """Return the pod at a place; None: not known."""
        if self._found is None:
            self._found = self._find()
        return self._found.of(address, port)


_NOWHERE: Final = Placement(None, None)


@value
class Cluster:
    """Nodes by name, and the placement of each endpoint's address.

    Attributes:
        networks: which node's a network is, where somebody said so.
        pod_networks: the nodes' podCIDRs, as far as nothing else says that they are not used.
        pods: whose address it is.
    """

    nodes: Mapping[str, Node] = MappingProxyType({})
    placements: Mapping[Address, Placement] = MappingProxyType({})
    networks: Owners = Owners()
    pod_networks: Owners = Owners()
    pods: Pods = Pods()

    def placement(self, address: Address) -> Placement:
        """Return where `address` lives; both parts None when nothing says.

        What objects say of an address goes before what was said of its network, and that before
        the nodes' podCIDRs.
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
        """Tell whether nothing but a podCIDR says on which node `address` is."""
        if self.placements.get(address, _NOWHERE).node or self.networks.owner(address):
            return False
        return self.pod_networks.owner(address) is not None

    @property
    def places(self) -> bool:
        """Whether it says of anything where it lives."""
        known = self.networks.by_length or self.pod_networks.by_length
        return bool(self.placements or known)

    def with_networks(self, said: Iterable[tuple[Network, str]]) -> Cluster:
        """Return it with networks of nodes besides, of nodes that it need not know."""
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
        """All nodes, and those of which only an endpoint tells."""
        return frozenset([*self.nodes, *(p.node for p in self.placements.values() if p.node)])

    @property
    def zones(self) -> frozenset[str]:
        """All zones of nodes and of endpoints."""
        of_nodes = {n.zone for n in self.nodes.values()}
        of_endpoints = {p.zone for p in self.placements.values()}
        return frozenset(z for z in of_nodes | of_endpoints if z)
