"""What happens after DNAT to flows to plain endpoints of nft, where it is the same for all.

Few rules after nat match on the endpoint. So one traversal for the endpoints of all Services tells
most often what happens to flows from a source, and no endpoint is evaluated by itself; but for
those that are addresses of the node, to which other hooks apply. Hairpin flows are masqueraded for
pods of this node, and for others not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

from analyzer.kubeproxy.fastpath.nft_hairpins import masquerade_and_loss
from analyzer.kubeproxy.fastpath.nft_hosts import PlainHosts
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.rows.plain_shares import MasqueradeAndLoss, MasqueradeAndLossOf
from analyzer.kubeproxy.view import Endpoint, Source
from analyzer.model.addresses import Address
from analyzer.model.endings import any_of
from analyzer.model.intervals import Intervals, is_one, meet
from analyzer.model.packet import Mark
from analyzer.model.ternary import Ternary
from analyzer.semantics.onward import Onward, OnwardBySource, one_of
from analyzer.semantics.parts import MatchedSources, at, common


class SameForAll:
    """Evaluates flows to the endpoints of all Services so far, which `hosts` has."""

    def __init__(self, walks: FlowWalks, hosts: PlainHosts) -> None:
        self._walks = walks
        self._hosts = hosts
        #: By what was asked, and of how many Services.
        self._others: dict[Hashable, OnwardBySource | None] = {}
        self._asked: dict[Hashable, MatchedSources | None] = {}
        self._own: dict[Hashable, MasqueradeAndLoss | None] = {}

    def to(
        self,
        source: Source,
        protocol: str,
        marks: Iterable[Mark],
        port: int | None,
        address: Address | None,
    ) -> MasqueradeAndLoss | None:
        """Return what happens to flows from `address`, with one of some marks, to any other one.

        To a port, or if that is None to any; of the endpoints that are not the node's own. None:
        it is not the same for all.
        """
        found = _told([self._to_others(source, protocol, mark, port) for mark in marks], address)
        return None if found is None else masquerade_and_loss(found)

    def from_any(
        self, source: Source, protocol: str, marks: frozenset[Mark], endpoint: Endpoint
    ) -> MasqueradeAndLoss | None:
        """Return what happens to flows to an endpoint if any address may be their source.

        The endpoint's own too. None: it is not the same for all endpoints like it.
        """
        port, is_here = endpoint.port, self._is_here(endpoint)
        key = source, protocol, marks, is_here, port, self._hosts.number
        if key not in self._own:
            every = [self._to_others(source, protocol, mark, port) for mark in marks]
            back = self._back(source, protocol, marks, port, is_here=is_here)
            found = _told([*every, *back], None)
            self._own[key] = None if found is None else masquerade_and_loss(found)
        return self._own[key]

    def asked(
        self, source: Source, protocol: str, mark: Mark, port: int | None
    ) -> MatchedSources | None:
        """Return the matches on sources of such flows; None: they are not the same for all.

        Also None where an endpoint's own flows may be lost otherwise: then it is a source of its
        own.
        """
        key = source, protocol, mark, port, self._hosts.number
        if key not in self._asked:
            self._asked[key] = self._asked_of_all(source, protocol, mark, port)
        return self._asked[key]

    def _asked_of_all(
        self, source: Source, protocol: str, mark: Mark, port: int | None
    ) -> MatchedSources | None:
        found = self._to_others(source, protocol, mark, port)
        if found is None or any(map(self._is_host, found[1])):
            return None
        for is_here in (False, True):
            like = partial(self._like, protocol, port, is_here=is_here)
            if any(like()):
                (back,) = self._back(source, protocol, (mark,), port, is_here=is_here)
                if back is None or not _are_lost_alike(found, back, like):
                    return None
        return found[1]

    def _is_host(self, asked: Intervals) -> bool:
        """Return whether a match is for one address, which an endpoint has."""
        return is_one(asked) and meet(asked, self._hosts.addresses)

    def to_itself(
        self, protocol: str, marks: frozenset[Mark], endpoint: Endpoint
    ) -> MasqueradeAndLoss | None:
        """Return what happens to hairpin flows of an endpoint; None: not the same for all like it.

        Those like it are all that are not of this node, or all that may be.
        """
        is_here = self._is_here(endpoint)
        key = Source.HAIRPIN, protocol, marks, is_here, endpoint.port, self._hosts.number
        if key not in self._own:
            self._own[key] = self._told_of_itself(protocol, marks, endpoint.port, is_here=is_here)
        return self._own[key]

    def _told_of_itself(
        self, protocol: str, marks: Iterable[Mark], port: int | None, *, is_here: bool
    ) -> MasqueradeAndLoss | None:
        if self._walks.after_dnat.has_sides:
            return None
        found = _told(self._back(Source.HAIRPIN, protocol, marks, port, is_here=is_here), None)
        # Whether one of this node that is not masqueraded is lost depends on what is known of it.
        if found is None or (is_here and found.masquerade is not Ternary.TRUE):
            return None
        return masquerade_and_loss(found)

    def _back(
        self,
        source: Source,
        protocol: str,
        marks: Iterable[Mark],
        port: int | None,
        *,
        is_here: bool,
    ) -> list[OnwardBySource | None]:
        """Return what happens to flows of endpoints to themselves, for each mark."""
        found = []
        for mark in marks:
            key = source, protocol, mark, port, is_here, self._hosts.number
            if key not in self._others:
                tell = partial(self._walks.spared.to_itself, source, protocol, mark)
                like = self._like(protocol, port, is_here=is_here)
                self._others[key] = _first(tell, port, like)
            found.append(self._others[key])
        return found

    def _like(self, protocol: str, port: int | None, *, is_here: bool) -> Iterable[Intervals]:
        hosts = self._hosts
        return (hosts.at_port(protocol, port),) if is_here else hosts.elsewhere()

    def _is_here(self, endpoint: Endpoint) -> bool:
        return int(endpoint.address) in self._hosts.numbers_here

    def _to_others(
        self, source: Source, protocol: str, mark: Mark, port: int | None
    ) -> OnwardBySource | None:
        key = source, protocol, mark, port, self._hosts.number
        if key not in self._others:
            tell = partial(self._walks.spared.to_others, source, protocol, mark)
            self._others[key] = _first(tell, port, self._hosts.not_own())
        return self._others[key]


def _are_lost_alike(
    others: OnwardBySource, back: OnwardBySource, like: Callable[[], Iterable[Intervals]]
) -> bool:
    """Return whether flows of endpoints are lost back to themselves as to other endpoints.

    The last intervals of `like` are the endpoints and nothing else.
    """
    pairs = ((common(w, v), a.lost == b.lost) for w, a in others[0] for v, b in back[0])
    unlike = [where for where, is_same in pairs if not is_same and where != ()]
    if not unlike:
        return True
    *_, endpoints = like()
    return all(common(where, endpoints) == () for where in unlike)


def _told(every: Sequence[OnwardBySource | None], address: Address | None) -> Onward | None:
    """Return what happens to flows from an address, with any of some marks; None: not known."""
    told = [each for each in every if each is not None]
    if not told or len(told) < len(every):
        return None
    return one_of(onward for parts, _ in told for onward in at(parts, address))


def _first(
    tell: Callable[[int | None, Intervals], OnwardBySource | None],
    port: int | None,
    every: Iterable[Intervals],
) -> OnwardBySource | None:
    """Return what is told of the first intervals of which it is."""
    found = (tell(port, where) for where in every if where)
    return next((each for each in found if each is not None), None)


def any_of_them(given: Sequence[MasqueradeAndLossOf]) -> MasqueradeAndLossOf:
    """Return what happens to flows if one of several results applies, and it is not known which."""

    def either(every: Iterable[MasqueradeAndLoss]) -> MasqueradeAndLoss:
        found = list(dict.fromkeys(every))
        if len(found) == 1:
            return found[0]
        masquerades = {each.masquerade for each in found}
        masquerade = masquerades.pop() if len(masquerades) == 1 else None
        return MasqueradeAndLoss(masquerade, any_of(each.lost for each in found))

    same = [each for each in given if isinstance(each, MasqueradeAndLoss)]
    others = [each for each in given if not isinstance(each, MasqueradeAndLoss)]
    if not others:
        return either(same)
    return lambda protocol, endpoint: either(
        [*same, *(each(protocol, endpoint) for each in others)]
    )
