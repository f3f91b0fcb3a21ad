"""The sources of each kind that rules tell apart, and an address that stands for each part.

Rules ask for sources in a Service's own chains (``loadBalancerSourceRanges``, local policies), and
in whatever stands before kube-proxy's chains. Only what rules ask for can make a difference, so one
address for each set of sources that meet the same answers is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from analyzer.kubeproxy.sources import PodNetworks, ends_of, node_address, parts, told_apart
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

    def of(
        self, source: Source, asked: Iterable[Network]
    ) -> Sequence[tuple[Network | None, Address | None]]:
        """Return the network and an address of each part; None: where they are is not known."""
        known, usual = self._known, self._known.addresses[source]
        if source is Source.NODE:
            return [(None, node_address(known.own, asked))]
        if usual is None:
            return [(None, None)]
        if source is Source.EXTERNAL:
            return self._external(usual, asked)
        theirs = known.pods.here if source is Source.POD else known.pods.elsewhere

        def is_pod(address: Address) -> bool:
            return not known.is_taken(address) and any(address in each for each in theirs)

        return told_apart(parts(asked, theirs), [usual, *ends_of(theirs)], is_pod)

    def _external(
        self, usual: Address, asked: Iterable[Network]
    ) -> list[tuple[Network | None, Address]]:
        # No client outside has a loopback address.
        asked = [n for n in asked if not n.is_loopback and not self._is_of_pods(n)]
        free = told_apart(asked, [usual], self._is_nobodys)
        if len(free) > len(set(asked)):
            return free
        # Other nodes are clients too, where a network holds nobody else.
        done = {network for network, _ in free}
        others = told_apart(asked, [usual], self._is_client)
        return [*free, *[each for each in others if each[0] not in done]]

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
        # A balancer's own address is that of the node, where the balancer gives it to the node.
        own = address in self._known.own or address in self._known.frontends
        return not own and not any(address in n for n in self._pods)
