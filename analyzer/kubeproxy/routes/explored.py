"""The result of one traversal for many sources, split by source.

Theory of operation
===================

A flow is evaluated for a whole region of sources, and its tree splits them where rules distinguish
them. The shares of endpoints seldom depend on the source. Whether flows are masqueraded does: the
chain of an endpoint matches the endpoint's own address as the source, and marks such flows; as
these return to the endpoint, they are a kind of source of their own (hairpin). If they may leave
that chain for another endpoint, the endpoint is a source with other results than the rest.

Flows that nat sends to no endpoint go astray (`astray`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property

from analyzer.kubeproxy.routes.astray import Astray
from analyzer.kubeproxy.routes.leaving import Towards
from analyzer.kubeproxy.routes.sent import SentPackets
from analyzer.kubeproxy.routes.up_to_nat import NatTree
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, Share, Source
from analyzer.model.addresses import Address, Network
from analyzer.model.intervals import Intervals, common_of, is_one
from analyzer.model.iptables.targets import Dnat, NatRange
from analyzer.model.packet import Mark, Packet
from analyzer.model.probability import Bounds, Dyadic, capped_sum
from analyzer.model.region import Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.conditions import Label, leaves_by_source, questions, telling
from analyzer.semantics.onward import UNKNOWN, Onward, asked_of_others, one_of
from analyzer.semantics.parts import Lookup, Parts, holds
from analyzer.semantics.shares import Shares, any_of, shares_by_source
from analyzer.semantics.tree import Leaf, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    T = TypeVar("T")

    #: Where nat sends a flow; None: it goes astray.
    SentTo: TypeAlias = Endpoint | NatRange | None


class _Part:
    """The shares of flows from sources that have the same results except for masquerade."""

    def __init__(self, shares: Shares[SentTo]) -> None:
        self.shares = shares
        #: The kernel chooses one of a range of addresses.
        self.ranges = {key: b.upper for key, b in shares.items() if isinstance(key, NatRange)}
        self.unresolved = capped_sum([shares.unresolved, *self.ranges.values()])


class Explored:
    """The ways of flows to one frontend, from all sources of one kind that were evaluated.

    `version` is the IP version; `leaving` returns what tells by source what happens to packets like
    one that was sent to an endpoint, and `passing` what happens to one that was not.

    Attributes:
        asks_own_sources: whether a rule depends on whether they come from the node itself.
    """

    asks_own_sources = False

    def __init__(
        self,
        found: NatTree,
        version: int,
        leaving: Callable[[Packet], Towards],
        passing: Callable[[Packet], Tree],
    ) -> None:
        tree = found.tree
        self._version = version
        self._astray = Astray(tree, passing)
        self._sent = SentPackets(found, leaving)
        self._tree = tree
        self._joined_on = found.joined_on
        self._within = found.within
        self._lookups: dict[int, tuple[object, Lookup[Any]]] = {}
        self._shares = self._sent.restricted(shares_by_source(tree, _end_of))
        self._parts: dict[tuple[int, ...], _Part] = {}
        reached = ((where, leaf) for leaf, where in leaves_by_source(tree))
        for where, leaf in self._sent.restricted(reached):
            end = _end_of(leaf)
            if isinstance(end, Endpoint):
                self._sent.add(end, where, leaf.packet)

    @property
    def endpoints(self) -> Collection[Endpoint]:
        """The endpoints that flows may reach."""
        return self._sent.endpoints

    def packets(self, endpoint: Endpoint) -> dict[Packet, Intervals | None]:
        """Return the packets that reach an endpoint, and from which sources; None: from any."""
        return self._sent.to(endpoint)

    @cached_property
    def _questions(self) -> set[Intervals]:
        asked = questions(self._tree) | self._joined_on
        within = self._within
        return (
            asked
            if within is None
            else {each for each in asked if is_one(each) or _splits(each, within)}
        )

    def leaving_as(self, leaving: Callable[[Packet], Towards]) -> Explored:
        """Return the same ways, with another result after nat."""
        return self._with(self._sent.leaving_as(leaving))

    def like(self, found: NatTree, leaving: Callable[[Packet], Towards]) -> Explored | None:
        """Return the ways of another kind of source, if it has the same tree; None: it has not."""
        mine, theirs = self._tree, found.tree
        if isinstance(mine, Leaf) or isinstance(theirs, Leaf) or found.like is None:
            return None
        is_for_all = self._sent.are_from_all and all(where is None for where, _ in self._shares)
        if mine.branches is not theirs.branches or not is_for_all:
            return None
        other = self._with(self._sent.leaving_as(leaving, found))
        other.__dict__.update(_joined_on=found.joined_on, _within=found.within)
        return other

    def _with(self, sent: SentPackets) -> Explored:
        other = object.__new__(Explored)
        other.__dict__.update(vars(self), _sent=sent)
        for kept in ("_by_arrival", "_questions"):
            other.__dict__.pop(kept, None)
        return other

    def _part(self, address: Address | None, region: Region | None = None) -> _Part:
        """Return what holds for flows from an address; None: from any of a region, not known which.

        Without a region, from any source that was evaluated.
        """
        if address is not None:
            found = [*self._lookup(self._shares).at(int(address))]
        else:
            found = [
                shares
                for where, shares in self._shares
                if where is None or region is None or region.common(where)
            ]
        key = tuple(map(id, found))
        if key not in self._parts:
            self._parts[key] = _Part(found[0] if len(found) == 1 else any_of(found))
        return self._parts[key]

    def exact(self) -> Iterator[list[tuple[Endpoint, Bounds]] | None]:
        """Yield the endpoints and shares of each part; None: flows may have other ends too."""
        for _, shares in self._shares:
            ends = [(key, b) for key, b in shares.items() if isinstance(key, Endpoint)]
            yield ends if shares.is_exact and len(ends) == len(shares) else None

    def marks(self, endpoint: Endpoint, address: Address | None) -> frozenset[Mark]:
        """Return the marks of flows from an address that reach an endpoint."""
        return frozenset(
            packet.mark
            for packet, where in self.packets(endpoint).items()
            if holds(where, None if address is None else int(address))
        )

    def route(
        self,
        frontend: Frontend,
        source: Source,
        address: Address | None,
        network: Network | None = None,
        region: Region | None = None,
    ) -> Route:
        """Return the route of the flows from an address, which represents all in `network`.

        If the address is not known, it holds for all in a region.
        """
        found = self._part(address, region)
        told = [
            self._share(key, bounds, found, address, region)
            for key, bounds in found.shares.items()
            if isinstance(key, Endpoint)
        ]
        shares = tuple([share for share in told if share is not None])
        left = found.shares.get(None)
        astray = () if left is None else self._astray.of(address, region, left)
        return Route(frontend, source, shares, found.unresolved, network, astray)

    def share(self, endpoint: Endpoint, address: Address) -> tuple[Share | None, Dyadic]:
        """Return the share of flows from an address, and the unresolved share of all its flows."""
        found = self._part(address)
        bounds = found.shares.get(endpoint)
        share = None if bounds is None else self._share(endpoint, bounds, found, address, None)
        return share, found.unresolved

    def _share(
        self,
        endpoint: Endpoint,
        bounds: Bounds,
        part: _Part,
        address: Address | None,
        region: Region | None,
    ) -> Share | None:
        """Return the share of an endpoint; None: no way leads there, as far as ways are known."""
        answers = self._answers(endpoint, address, region)
        if not answers:
            return None
        widened = _widened(endpoint, bounds, part.ranges)
        same = widened is bounds or widened == bounds
        onward = one_of(answers if same else (*answers, UNKNOWN))
        # Unresolved flows may reach the endpoint too, marked or not.
        sure = not part.shares.unresolved
        return Share(endpoint, widened, known(onward.masquerade) if sure else None, onward.lost)

    def onward(self, endpoint: Endpoint, address: Address) -> Onward:
        """Return what happens after nat to flows from an address that reach an endpoint."""
        return one_of(self._answers(endpoint, address, None) or [UNKNOWN])

    def _answers(
        self, endpoint: Endpoint, address: Address | None, region: Region | None
    ) -> Sequence[Onward]:
        """Return what happens to flows after nat, for each way that may lead to an endpoint.

        If the address is not known, it is one of a region.
        """
        number = None if address is None else int(address)
        found: list[Onward] = []
        for where, parts, _ in self._sent.arriving(endpoint):
            if where is not None and not _is_from(where, number, region):
                continue
            (among, answer), *others = parts
            if among is None and not others:
                found.append(answer)
            elif number is not None:
                found += self._lookup(parts).at(number)
            else:
                found += [told for of, told in parts if of is None or _is_from(of, None, region)]
        return found

    def _lookup(self, parts: Parts[T]) -> Lookup[T]:
        """Return the lookup by address in some parts, made once for each."""
        known = self._lookups.get(id(parts))
        if known is None:  # with the parts, so that no others get their identity
            known = self._lookups[id(parts)] = parts, Lookup(parts)
        found: Lookup[T] = known[1]
        return found

    def asked(self, region: Region | None) -> set[Intervals]:
        """Return the matches on sources in a region that make a difference to their flows.

        Flows of an endpoint to itself are left aside, unless they are lost where others' are not.
        If `region` is None, the addresses of the sources are not known.
        """
        labels, behind = self._by_arrival
        return self._asked(region, labels) | behind

    @cached_property
    def _by_arrival(self) -> tuple[list[Label], set[Intervals]]:
        """What tells apart sources whose flows to some endpoint have other results.

        And what rules after nat match on of sources.
        """
        labels, behind = list(self._by_shares), set[Intervals]()
        for endpoint in self.endpoints:
            arriving = self._sent.arriving(endpoint)
            number = int(endpoint.address)
            for _, parts, asked in arriving:
                if asked:
                    behind |= asked_of_others((parts, asked), number)
            (_, first, _), *others = arriving
            if any(parts is not first and parts != first for _, parts, _ in others):
                labels += [(where, number) for where, _, _ in arriving if where is not None]
        return labels, behind

    def asked_before(self, region: Region | None) -> set[Intervals]:
        """Return the matches on sources whose flows reach endpoints in ways of their own."""
        labels = list(self._by_shares)
        for endpoint in self.endpoints:
            packets = self.packets(endpoint)
            if len(packets) > 1:
                number = int(endpoint.address)
                labels += [(where, number) for where in packets.values() if where is not None]
        return self._asked(region, labels)

    def asked_of_shares(self, region: Region | None) -> set[Intervals]:
        """Return the matches on sources that have shares of their own; masquerade aside."""
        return self._asked(region, self._by_shares)

    @property
    def _goes_astray(self) -> bool:
        return any(None in shares for _, shares in self._shares)

    @property
    def _by_shares(self) -> list[Label]:
        parts = dict.fromkeys(where for where, _ in self._shares if where is not None)
        if self._goes_astray:
            parts |= dict.fromkeys(self._astray.parts)
        return [(where, None) for where in parts]

    def _asked(self, region: Region | None, labels: Sequence[Label]) -> set[Intervals]:
        if region is None or not labels:
            return set()
        asked = self._questions | (self._astray.questions if self._goes_astray else set())
        return telling(asked, region.intervals, labels)


def _end_of(leaf: Leaf) -> SentTo:
    """Return the endpoint that DNAT sends a flow to, or the range of which the kernel chooses."""
    if not isinstance(leaf.outcome, Dnat):
        return None
    packet = leaf.packet
    if packet.destination is None:
        return leaf.outcome.to
    return Endpoint(packet.destination, packet.destination_port)


def _splits(asked: Intervals, within: Intervals) -> bool:
    inside = common_of(asked, within)
    return bool(inside) and inside != within


def _is_from(where: Intervals, number: int | None, region: Region | None) -> bool:
    """Return whether an address, or one of a region, may be in a part."""
    if number is None and region is not None:
        return bool(region.common(where))
    return holds(where, number)


def known(answer: Ternary) -> bool | None:
    """Return a Ternary as a bool; None: not known."""
    return None if answer is Ternary.UNKNOWN else answer is Ternary.TRUE


def _widened(endpoint: Endpoint, bounds: Bounds, ranges: Mapping[NatRange, Dyadic]) -> Bounds:
    """Return the bounds, with the share of ranges that include the endpoint's address too."""
    if not ranges:
        return bounds
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
