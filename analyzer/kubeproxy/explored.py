"""What one walk for many sources tells of each of them.

Theory of operation
===================

A flow is walked from a whole region of sources, and its tree tells apart those that rules tell
apart. The shares of endpoints seldom depend on the source. Whether flows are masqueraded does: the
chain of an endpoint asks whether the endpoint itself is the source, and marks its flows if so; as
these come back to it, they are a kind of source of their own (hairpin). Where they may leave that
chain for another endpoint, the endpoint is a source that fares otherwise than the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from analyzer.kubeproxy.view import Endpoint, Frontend, Route, Share, Source
from analyzer.model.addresses import Address, Network
from analyzer.model.packet import Mark, Packet
from analyzer.model.probability import Bounds, Dyadic, capped_sum
from analyzer.model.region import Intervals, Region, networks_of
from analyzer.model.targets import Dnat, NatRange
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.parts import Asked, Parts, at
from analyzer.semantics.tree import Leaf, Shares, Tree, shares_by_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: Sources of which flows come to an endpoint, None: any; which of these are masqueraded, and
    #: what of them makes that difference.
    Arrival: TypeAlias = tuple[Region | None, Parts[Ternary], Asked]


class _Part:
    """The shares of flows from sources that fare alike but for the masquerade."""

    def __init__(self, shares: Shares[Endpoint | NatRange | None]) -> None:
        self.shares = shares
        #: Of a range of addresses the kernel chooses one.
        self.ranges = {key: b.upper for key, b in shares.items() if isinstance(key, NatRange)}
        self.unresolved = capped_sum([shares.unresolved, *self.ranges.values()])


class Explored:
    """The ways of flows to one frontend, from all sources of one kind that were walked.

    `version` is the IP version; `leaving` tells of which sources a packet is masqueraded that was
    sent to an endpoint.
    """

    def __init__(
        self, tree: Tree, version: int, leaving: Callable[[Packet], tuple[Parts[Ternary], Asked]]
    ) -> None:
        self._version = version
        self._leaving = leaving
        #: The packets that come to each endpoint.
        self.packets: dict[Endpoint, dict[Packet, None]] = {}
        self._arrivals: dict[Endpoint, list[Arrival]] = {}
        self._shares, self._asked = shares_by_source(tree, self._endpoint)
        self._parts: dict[int, _Part] = {}

    def _endpoint(self, leaf: Leaf) -> Endpoint | NatRange | None:
        if not isinstance(leaf.outcome, Dnat):
            return None
        packet = leaf.packet
        if packet.destination is None:
            return leaf.outcome.to  # one of a range; which, the kernel chooses
        found = Endpoint(packet.destination, packet.destination_port)
        self.packets.setdefault(found, {})[packet] = None
        return found

    def _arriving(self, endpoint: Endpoint) -> list[Arrival]:
        found = self._arrivals.get(endpoint)
        if found is None:
            packets = self.packets[endpoint]
            found = [(packet.sources, *self._leaving(packet)) for packet in packets]
            self._arrivals[endpoint] = found
        return found

    def _part(self, address: Address | None) -> _Part:
        """Return what holds of flows from an address; None: of all, which fare alike."""
        found = at(self._shares, address)
        if len(found) != 1:
            raise ValueError(f"{len(found)} parts hold {address}")
        shares = found[0]
        if id(shares) not in self._parts:
            self._parts[id(shares)] = _Part(shares)
        return self._parts[id(shares)]

    def exact(self) -> Iterator[list[tuple[Endpoint, Bounds]] | None]:
        """Give the endpoints and shares of each part; None: something else may become of flows."""
        for _, shares in self._shares:
            ends = [(key, b) for key, b in shares.items() if isinstance(key, Endpoint)]
            yield ends if shares.is_exact and len(ends) == len(shares) else None

    def marks(self, endpoint: Endpoint, address: Address | None) -> frozenset[Mark]:
        """Return the marks of flows from an address that come to an endpoint."""
        return frozenset(
            packet.mark
            for packet in self.packets.get(endpoint, ())
            if packet.sources is None or address is None or address in packet.sources
        )

    def route(
        self,
        frontend: Frontend,
        source: Source,
        address: Address | None,
        network: Network | None = None,
    ) -> Route:
        """Return the route of the flows from an address, which stands for all in `network`."""
        found = self._part(address)
        shares = [
            self._share(key, bounds, found, address)
            for key, bounds in found.shares.items()
            if isinstance(key, Endpoint)
        ]
        return Route(frontend, source, tuple(shares), found.unresolved, network)

    def share(self, endpoint: Endpoint, address: Address) -> tuple[Share | None, Dyadic]:
        """Return the share of flows from an address, and what of all its flows is not resolved."""
        found = self._part(address)
        bounds = found.shares.get(endpoint)
        share = None if bounds is None else self._share(endpoint, bounds, found, address)
        return share, found.unresolved

    def _share(
        self, endpoint: Endpoint, bounds: Bounds, part: _Part, address: Address | None
    ) -> Share:
        widened = _widened(endpoint, bounds, part.ranges)
        # What is not resolved may come to the endpoint too, marked or not.
        masquerade = None if part.shares.unresolved else self.masquerade(endpoint, address)
        if widened != bounds:
            masquerade = None
        return Share(endpoint, widened, masquerade)

    def masquerade(self, endpoint: Endpoint, address: Address | None) -> bool | None:
        """Tell whether flows from an address that come to an endpoint are masqueraded."""
        answers = {
            answer
            for region, parts, _ in self._arriving(endpoint)
            if region is None or address is None or address in region
            for answer in at(parts, address)
        }
        return agreed(answers)

    def networks(self) -> frozenset[Network]:
        """Return the networks of sources that fare otherwise than others.

        Those of an endpoint whose flows are told apart on their way to it alone are left out.
        """
        asked = set(self._asked)
        for endpoint in self.packets:
            asked |= self._asked_towards(endpoint)
        return self._networks(asked)

    def networks_of_shares(self) -> frozenset[Network]:
        """Return those of sources that have other shares than others, masquerade left aside."""
        return self._networks(self._asked)

    def _networks(self, asked: Iterable[Intervals]) -> frozenset[Network]:
        return frozenset(n for each in asked for n in networks_of(self._version, each))

    def networks_before(self) -> frozenset[Network]:
        """Return those of sources that come to endpoints otherwise than others do."""
        asked = set(self._asked)
        for endpoint, packets in self.packets.items():
            if len({replace(packet, sources=None) for packet in packets}) > 1:
                cuts = set(_cuts([packet.sources for packet in packets]))
                asked |= cuts - {_alone(endpoint)}
        return self._networks(asked)

    def _asked_towards(self, endpoint: Endpoint) -> set[Intervals]:
        """Return what parts sources of which flows to an endpoint are masqueraded, or not."""
        arriving = self._arriving(endpoint)
        asked = {where for _, _, behind in arriving for where in behind}
        if len({parts for _, parts, _ in arriving}) > 1:
            asked.update(_cuts([region for region, _, _ in arriving]))
        return asked - {_alone(endpoint)}


def _alone(endpoint: Endpoint) -> Intervals:
    """Return what is asked of sources where an endpoint itself is meant."""
    number = int(endpoint.address)
    return ((number, number),)


def _cuts(regions: Iterable[Region | None]) -> Iterator[Intervals]:
    """Give what was asked of sources that parts these regions, None: all, and maybe some more."""
    every = [[] if region is None else list(region.cuts()) for region in regions]
    seen = [{id(whole) for _, whole in cuts} for cuts in every]
    for cuts in every:
        for asked, whole in cuts:
            yield asked
            if all(id(whole) in each for each in seen):
                break  # all of them are of this one


def agreed(answers: set[Ternary]) -> bool | None:
    """Return the one answer that all give; None where they differ or do not know."""
    if len(answers) == 1:
        return {Ternary.TRUE: True, Ternary.FALSE: False}.get(next(iter(answers)))
    return None


def _widened(endpoint: Endpoint, bounds: Bounds, ranges: Mapping[NatRange, Dyadic]) -> Bounds:
    """Return the bounds, with what goes to a range that holds the endpoint's address too."""
    upper = [bounds.upper]
    for to, share in ranges.items():
        first, last = to.first_address, to.last_address or to.first_address
        same_port = (
            to.first_port is None
            or endpoint.port is None
            or (to.first_port <= endpoint.port <= (to.last_port or to.first_port))
        )
        if first is None or last is None or not same_port:
            continue
        if int(first) <= int(endpoint.address) <= int(last):
            upper.append(share)
    return Bounds(bounds.lower, capped_sum(upper))
