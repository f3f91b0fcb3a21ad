"""The sources of each kind that rules tell apart, and an address that stands for each part.

Rules ask for sources in a Service's own chains (``loadBalancerSourceRanges``, local policies), and
in whatever stands before kube-proxy's chains. Only what rules ask for can make a difference, so one
address for each set of sources that meet the same answers is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from analyzer.kubeproxy.sources import Asked, PodNetworks, ends_of, node_address, parts, told_apart
from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address, Network
from analyzer.model.value import value


@value(kw_only=True)
class Known:
    """What is known of addresses.

    Attributes:
        addresses: one of each kind of source, None where none is known.
        written: the network of pods as rules name it.
        own: the node's addresses.
        frontends: addresses of Services.
        is_taken: tells whether an address is an endpoint's, a node's or a Service's.
    """

    addresses: Mapping[Source, Address | None]
    pods: PodNetworks
    written: Network | None
    own: tuple[Address, ...]
    frontends: Collection[Address | None]
    is_taken: Callable[[Address], bool]


class SourceParts:
    """Parts each kind of source by the networks that rules ask for."""

    def __init__(self, known: Known) -> None:
        self._known = known
        pods = (*known.pods.here, *known.pods.elsewhere, known.written)
        self._pods = [network for network in pods if network is not None]

    def of(self, source: Source, asked: Asked) -> Sequence[tuple[Network | None, Address | None]]:
        """Return the network and an address of each part; None: where they are is not known."""
        known, usual = self._known, self._known.addresses[source]
        if asked.otherwise:
            return [(None, None)]
        networks = asked.networks
        if source is Source.NODE:
            return [(None, node_address(known.own, networks))]
        if usual is None:
            return [(None, None)]
        if source is Source.EXTERNAL:
            return self._external(usual, networks)
        theirs = known.pods.here if source is Source.POD else known.pods.elsewhere
        usuals = [usual, *ends_of(theirs)]

        def is_pod(address: Address) -> bool:
            return not self._is_nodes(address) and any(address in each for each in theirs)

        def is_free(address: Address) -> bool:
            return is_pod(address) and not known.is_taken(address)

        # Where a network holds endpoints only, these are its pods.
        return _each_first(parts(networks, theirs), usuals, (is_free, is_pod))

    def _external(
        self, usual: Address, asked: Iterable[Network]
    ) -> list[tuple[Network | None, Address]]:
        # No client outside has a loopback address.
        asked = [n for n in asked if not n.is_loopback and not self._is_of_pods(n)]
        # Other nodes are clients too, where a network holds nobody else.
        return _each_first(asked, [usual], (self._is_nobodys, self._is_client))

    def _is_of_pods(self, network: Network) -> bool:
        """Tell whether a network holds nothing but pods."""
        return any(
            n.version == network.version and network[0] in n and network[-1] in n
            for n in self._pods
        )

    def _is_nobodys(self, address: Address) -> bool:
        return not self._known.is_taken(address) and not any(address in n for n in self._pods)

    def _is_client(self, address: Address) -> bool:
        """Tell whether an address can be that of a client outside, or of another node."""
        return not self._is_nodes(address) and not any(address in n for n in self._pods)

    def _is_nodes(self, address: Address) -> bool:
        """Tell whether packets from an address are the node's own, or nobody's."""
        # A balancer's own address is that of the node, where the balancer gives it to the node.
        return address in self._known.own or address in self._known.frontends


def _each_first(
    asked: Iterable[Network],
    usual: Sequence[Address],
    tests: Sequence[Callable[[Address], bool]],
) -> list[tuple[Network | None, Address]]:
    """Return an address for each set of sources, one that the first of `tests` lets through."""
    asked = set(asked)
    found: dict[Network | None, Address] = {}
    for test in tests:
        if len(found) <= len(asked):
            for network, address in told_apart(asked, usual, test):
                found.setdefault(network, address)
    return list(found.items())
