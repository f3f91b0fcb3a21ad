"""How a node's addresses and networks affect a ServicePort's rules, and which sources it has.

Addresses of Services are usually in no network of nodes or pods: then nodes differ only in
in what is known of them at all. If a node's addresses or networks overlap with a frontend or a
source range, nodes differ by how they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.model.addresses import Address, Network
from analyzer.model.cluster import Cluster
from analyzer.model.value import value


@value(kw_only=True)
class Related:
    """How nodes are related to one ServicePort.

    Attributes:
        relation: that of all nodes if it is the same.
        by_node: otherwise that of each.
    """

    relation: object = None
    by_node: Mapping[str, object] | None = None

    @property
    def is_same_everywhere(self) -> bool:
        """Whether all nodes have the same relation."""
        return self.by_node is None

    def at(self, node: str) -> object:
        """Return the relation of one node."""
        return self.relation if self.by_node is None else self.by_node[node]


class NodeRelations:
    """The addresses and networks of all nodes, as far as they matter to ServicePorts."""

    def __init__(self, proxies: Mapping[str, ProxyConfig], cluster: Cluster) -> None:
        self._proxies = proxies
        #: The addresses of each node.
        self.own: dict[str, tuple[Address, ...]] = {}
        self._pods: dict[str, tuple[Network, ...]] = {}
        for name, proxy in proxies.items():
            node = cluster.nodes[name]
            family = proxy.family
            self.own[name] = tuple(a for a in node.addresses if a.version == family)
            self._pods[name] = tuple(n for n in node.pod_networks if n.version == family)
        #: The addresses of all nodes.
        self.hosts = {a for own in self.own.values() for a in own}
        cidrs = [p.cluster_cidr for p in proxies.values() if p.cluster_cidr is not None]
        networks = [*cidrs, *(n for own in self._pods.values() for n in own)]
        self._prefixes = _prefixes(networks)
        self._base = {name: self._known(name) for name in proxies}
        self._is_base_same = len(set(self._base.values())) == 1

    def of(self, service: ServicePortSpec) -> Related:
        """Return how the nodes are related to a ServicePort."""
        addresses = (service.cluster_ip, *service.external_ips, *service.load_balancer_ips)
        met = tuple(a for a in addresses if a in self.hosts or self._is_pods(a))
        ranges = service.load_balancer_source_ranges if service.load_balancer_ips else ()
        if not met and not ranges:
            if self._is_base_same:
                return Related(relation=next(iter(self._base.values())))
            return Related(by_node=self._base)
        # Addresses that a node or pod has are a shape of their own.
        found = {
            name: (base, met, self._of_addresses(name, met), self._of_ranges(name, ranges))
            for name, base in self._base.items()
        }
        if len(set(found.values())) == 1:
            return Related(relation=next(iter(found.values())))
        return Related(by_node=found)

    def _is_pods(self, address: Address) -> bool:
        return any(int(address) >> bits in known for bits, known in self._prefixes.items())

    def _known(self, name: str) -> object:
        """Return what is known of a node at all, and how its pods' networks relate to the CIDR."""
        cidr, pods = self._proxies[name].cluster_cidr, self._pods[name]
        lies = None if cidr is None else tuple(_meets(cidr, each) for each in pods)
        return cidr is None, lies, bool(self.own[name]), bool(pods)

    def _of_addresses(self, name: str, met: tuple[Address, ...]) -> object:
        return tuple(
            (a in self.own[name], any(a in network for network in self._pods[name])) for a in met
        )

    def _of_ranges(self, name: str, ranges: tuple[Network, ...]) -> object:
        own, node = self.own[name], self._proxies[name].node_address
        return tuple(
            (
                node is not None and node in each,
                tuple(address in each for address in own),
                tuple(_meets(each, network) for network in self._pods[name]),
            )
            for each in ranges
        )


def _prefixes(networks: Iterable[Network]) -> dict[int, set[int]]:
    """Return networks of one family by their number of host bits: the bits before those."""
    found: dict[int, set[int]] = {}
    for each in networks:
        bits = each.max_prefixlen - each.prefixlen
        found.setdefault(bits, set()).add(int(each.network_address) >> bits)
    return found


def _meets(one: Network, other: Network) -> str:
    """Return how one network relates to another."""
    if one.version != other.version:
        return "apart"
    if one == other:
        return "is"
    if other.prefixlen >= one.prefixlen and other.network_address in one:
        return "holds"
    return "within" if one.network_address in other else "apart"
