"""Whether flows are lost after DNAT, decided for many of them at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from analyzer.kubeproxy.routes.leaving import (
    Leaving,
    are_masqueraded,
    from_any_side,
    of_any_side,
)
from analyzer.kubeproxy.routes.packets import FlowPackets
from analyzer.kubeproxy.view import Source
from analyzer.model.intervals import Intervals
from analyzer.model.packet import Mark, Packet
from analyzer.model.value import replace
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.onward import OnwardBySource
from analyzer.semantics.situation import PORT, PROTOCOL, SIDE

T = TypeVar("T")
#: What a traversal tells for certain, and the fields that rules matched on in it.
_Surely: TypeAlias = Callable[[Callable[[], T]], tuple[T | None, frozenset[str]]]
#: The fields that are left open for many flows, unless rules match on them.
_OPEN: Final = frozenset({PORT, PROTOCOL, SIDE})


class _Told(Generic[T]):
    """What one traversal each tells of packets to some addresses, by `tell`.

    `is_enough` returns whether to know more fields of a packet would change nothing.
    """

    def __init__(
        self,
        tell: Callable[[Packet, Intervals], T],
        surely: _Surely[T],
        is_enough: Callable[[T], bool],
    ) -> None:
        self._tell = tell
        self._surely = surely
        self._is_enough = is_enough
        self._known: dict[tuple[Packet, Intervals], tuple[T | None, frozenset[str]]] = {}

    def of(self, packet: Packet, addresses: Intervals) -> T | None:
        """Return what is told of a packet; None: nothing for certain.

        Most often rules match neither on ports, nor on protocols, nor on where flows come from: one
        traversal tells it for all of these. Otherwise they are given, as far as rules match.
        """
        given: frozenset[str] = frozenset()
        while True:
            sent = _with_fields(packet, given)
            known = self._known.get((sent, addresses))
            if known is None:
                known = self._surely(partial(self._tell, sent, addresses))
                self._known[sent, addresses] = known
            found, asked = known
            missing = (asked & _OPEN) - given
            if not missing or (found is not None and self._is_enough(found)):
                return found
            given |= missing


_ToldOfFlows: TypeAlias = _Told[OnwardBySource | None]


class Spared:
    """The flows that leave through `hooks` and are certainly not lost."""

    def __init__(
        self, hooks: Hooks, leaving: Leaving, packets: FlowPackets, assumed: Assumed
    ) -> None:
        self._hooks = hooks
        self._leaving = leaving
        self._packets = packets
        self._assumed = assumed
        self._spares: _Told[bool] = _Told(leaving.spares, self._surely, bool)
        self._masquerades: _Told[bool] = _Told(leaving.masquerades, self._surely, bool)
        self._to_others: _ToldOfFlows = _Told(leaving.to_others, self._surely, _is_certain)
        self._to_itself: _ToldOfFlows = _Told(leaving.to_itself, self._surely, _is_certain)

    def all_plain(self, mark: Mark, most: int) -> bool:
        """Return whether no plain flow is lost that nat sends on with a mark.

        Also False if rules distinguish more than `most` destinations; with `most` 0, also if one
        traversal for all that come in, or for all that the node makes, does not decide.
        """
        within = self._leaving.within
        ways = [self._packets.translated(source, None, mark) for source in Source]
        if not most:
            every = dict.fromkeys(map(from_any_side, ways))
            return all(self._spares.of(each, within) for each in every)
        if all(self.are(source, None, mark, within) for source in Source):
            return True
        return all(self._leaving.spares_all(each, most) for each in ways)

    def at_once(self, source: Source, mark: Mark) -> bool | None:
        """Return whether no flow of a source with a mark is lost, to destinations of plain flows.

        None: that was not evaluated together with what rules match on of their sources.
        """
        return self._leaving.spares_at_once(self._packets.translated(source, None, mark))

    def are(self, source: Source, protocol: str | None, mark: Mark, addresses: Intervals) -> bool:
        """Return whether no flow is lost that nat sends on to one of some addresses.

        Also False if a few traversals do not decide, or if something has to be assumed.
        """
        sent = self._packets.translated(source, protocol, mark)
        return self._spares.of(sent, addresses) or False

    def are_hairpins(
        self, protocol: str | None, mark: Mark, port: int | None, addresses: Intervals
    ) -> bool:
        """Return the same of hairpin flows, which have to be masqueraded.

        Without a port, that of flows to any port.
        """
        found = self.to_itself(Source.HAIRPIN, protocol, mark, port, addresses)
        if found is not None:
            return are_masqueraded(onward for _, onward in found[0])
        sent = self._packets.translated(Source.HAIRPIN, protocol, mark)
        return self._masquerades.of(sent, addresses) or False

    def to_others(
        self, source: Source, protocol: str, mark: Mark, port: int | None, addresses: Intervals
    ) -> OnwardBySource | None:
        """Return what happens to flows to any of some addresses, but to those that return.

        By source. None: one traversal does not tell, or something has to be assumed. Without a
        port, that of flows to any port.
        """
        sent = self._packets.translated(source, protocol, mark)
        return self._to_others.of(replace(sent, destination_port=port), addresses)

    def to_itself(
        self,
        source: Source,
        protocol: str | None,
        mark: Mark,
        port: int | None,
        addresses: Intervals,
    ) -> OnwardBySource | None:
        """Return the same of flows of any of some addresses to itself, whatever its side."""
        sent = self._packets.translated(source, protocol, mark)
        return self._to_itself.of(replace(sent, destination_port=port), addresses)

    def _surely(self, told: Callable[[], T]) -> tuple[T | None, frozenset[str]]:
        """Return what a traversal tells, and the fields that rules matched on.

        None: it rests on an assumption, or is incomplete.
        """
        assumed = self._assumed
        before = assumed.used.copy(), assumed.wanted.copy()
        exceeded = self._hooks.exceeded
        found = told()
        is_sure = assumed.used == before[0] and exceeded == self._hooks.exceeded
        # No result rests on the assumptions met here yet.
        assumed.used, assumed.wanted = before
        self._hooks.forget(exceeded)
        return found if is_sure else None, frozenset(self._hooks.asked_fields)


def _with_fields(packet: Packet, given: frozenset[str]) -> Packet:
    """Return a packet of which no fields of `_OPEN` are known but the given ones."""
    if given == _OPEN:
        return packet
    port = packet.destination_port if PORT in given else None
    protocol = packet.protocol if PROTOCOL in given else None
    sent = replace(packet, destination_port=port, protocol=protocol)
    return sent if SIDE in given else of_any_side(sent)


def _is_certain(found: OnwardBySource | None) -> bool:
    return found is not None and all(onward.is_certain for _, onward in found[0])
