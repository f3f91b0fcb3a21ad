"""What the routes of a dump's plain Services depend on besides their own rows.

If nothing but the mark of KUBE-MARK-MASQ decides what happens to a flow after its DNAT, and no rule
comes before KUBE-SERVICES, two plain Services with the same rows have the same results at two
nodes if these grounds are alike. `cluster.reference` uses that to read a second dump of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from analyzer.kubeproxy.fastpath.masquerade import PlainMasquerade
from analyzer.kubeproxy.fastpath.quiet import Quiet
from analyzer.kubeproxy.routes.pod_networks import PodNetworks
from analyzer.kubeproxy.rows.endpoints import EndpointRows
from analyzer.kubeproxy.rows.plain_shares import PlainService, Unmarked
from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address, Network, smallest_with
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: A source, a network of it, and whether flows from there are masqueraded.
    SourceMasquerade: TypeAlias = tuple[Source, Network | None, bool | None]


@value(kw_only=True)
class PlainGrounds:
    """The grounds of one dump whose routes follow from plain rows.

    Attributes:
        mark: the one that KUBE-MARK-MASQ sets.
        unmarked: the network whose flows are not marked, the same for all plain Services.
        written: the network of pods as the rules write it.
        ways: the sources of flows, and whether flows are masqueraded that go to an endpoint which
            is neither at one of the node's addresses nor their source.
        own: the node's addresses.
        stand_ins: addresses that represent sources.
        services: by the row of KUBE-SERVICES, from 0.
        has_port: returns whether an endpoint of a plain Service has a port.
    """

    ruleset: Ruleset
    mark: int
    unmarked: Unmarked
    written: Network | None
    pods: PodNetworks
    ways: tuple[SourceMasquerade, ...]
    own: tuple[Address, ...]
    stand_ins: frozenset[Address]
    services: tuple[tuple[int, PlainService], ...]
    endpoints: EndpointRows
    has_port: Callable[[int], bool]

    def is_as(self, other: PlainGrounds) -> bool:
        """Return whether a Service of the same plain rows has the same routes there.

        Except for endpoints with an address of either node's own, or of one that represents
        sources.
        """
        return (self.mark, self.unmarked, self.written, self.ways) == (
            other.mark,
            other.unmarked,
            other.written,
            other.ways,
        )

    def lets_pass(self, other: PlainGrounds) -> bool:
        """Return whether this dump's rules let flows to the endpoints of another pass too."""
        return Quiet(
            self.ruleset,
            self.mark,
            lambda host: self.endpoints.has_address(host) or other.endpoints.has_address(host),
            lambda port: self.has_port(port) or other.has_port(port),
        ).holds()


def usual_ways(
    parts: Mapping[Source, Sequence[tuple[Network | None, Address | None]]],
    masquerade: PlainMasquerade,
    unmarked: Unmarked,
) -> Iterator[SourceMasquerade]:
    """Yield the parts of each source with other results than those around them.

    As `plain_shares.differing_parts` does for a Service whose endpoints have other addresses.
    """
    for source, of in parts.items():
        known: dict[Network | None, bool | None] = {}
        for network, address in of:
            masks = masquerade.usual(source, address, unmarked).masquerade
            if len(of) > 1 and address is not None:
                within = smallest_with(known, address)
                around = known.get(within)
                is_alike = within in known and masks is around
                known[network] = masks
                if is_alike:
                    continue
            yield source, network, masks
