"""Whether flows are lost after DNAT, decided for many of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from analyzer.kubeproxy.routes.leaving import Leaving, from_any_side
from analyzer.kubeproxy.routes.packets import FlowPackets
from analyzer.kubeproxy.view import Source
from analyzer.model.packet import Mark, Packet
from analyzer.model.region import Intervals
from analyzer.model.value import replace
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.onward import OnwardBySource

T = TypeVar("T")


class Spared:
    """The flows that leave through `hooks` and are certainly not lost."""

    def __init__(
        self, hooks: Hooks, leaving: Leaving, packets: FlowPackets, assumed: Assumed
    ) -> None:
        self._hooks = hooks
        self._leaving = leaving
        self._packets = packets
        self._assumed = assumed
        self._known: dict[tuple[Packet, Intervals, bool], bool] = {}
        self._told: dict[tuple[str, Packet, Intervals], OnwardBySource | None] = {}

    def all_plain(self, mark: Mark, most: int) -> bool:
        """Return whether no plain flow is lost that nat sends on with a mark.

        Also False if rules distinguish more than `most` destinations; with `most` 0, also if one
        traversal for all that come in, or for all that the node makes, does not decide.
        """
        within = self._leaving.within
        ways = [self._packets.translated(source, None, mark) for source in Source]
        if not most:
            return all(self._spares(each, within) for each in map(from_any_side, ways))
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

        Also False if one or two traversals do not decide, or if something has to be assumed.
        """
        ways = self._ways(source, protocol, mark)
        return any(self._spares(each, addresses) for each in ways)

    def are_hairpins(
        self, protocol: str | None, mark: Mark, port: int | None, addresses: Intervals
    ) -> bool:
        """Return the same of hairpin flows, which have to be masqueraded.

        Without a port, that of flows to any port.
        """
        ways = self._ways(Source.HAIRPIN, protocol, mark)
        to = (replace(each, destination_port=port) for each in ways)
        return any(self._spares(each, addresses, returns=True) for each in to)

    def to_others(
        self, source: Source, protocol: str, mark: Mark, port: int | None, addresses: Intervals
    ) -> OnwardBySource | None:
        """Return what happens to flows to any of some addresses, but to those that return.

        By source. None: one traversal does not tell, or something has to be assumed. Without a
        port, that of flows to any port.
        """
        sent = self._packets.translated(source, protocol, mark)
        to = replace(sent, destination_port=port)
        return self._told_once(self._leaving.to_others, to, addresses)

    def to_itself(
        self, source: Source, protocol: str, mark: Mark, port: int | None, addresses: Intervals
    ) -> OnwardBySource | None:
        """Return the same of flows of any of some addresses to itself, whatever its side."""
        sent = self._packets.translated(source, protocol, mark)
        to = replace(sent, destination_port=port)
        return self._told_once(self._leaving.to_itself, to, addresses)

    def _told_once(
        self,
        tell: Callable[[Packet, Intervals], OnwardBySource | None],
        packet: Packet,
        addresses: Intervals,
    ) -> OnwardBySource | None:
        # Services of other kinds, and other sources, ask the same.
        key = tell.__name__, packet, addresses
        if key not in self._told:
            self._told[key] = self._surely(lambda: tell(packet, addresses))
        return self._told[key]

    def _ways(self, source: Source, protocol: str | None, mark: Mark) -> Iterable[Packet]:
        # Most often one traversal decides for all flows that come in, from whatever side.
        sent = self._packets.translated(source, protocol, mark)
        return dict.fromkeys((from_any_side(sent), sent))

    def _spares(self, packet: Packet, addresses: Intervals, *, returns: bool = False) -> bool:
        key = packet, addresses, returns
        if key not in self._known:
            told = self._leaving.masquerades if returns else self._leaving.spares
            self._known[key] = self._surely(lambda: told(packet, addresses)) or False
        return self._known[key]

    def _surely(self, told: Callable[[], T]) -> T | None:
        """Return what some traversals tell; None: it rests on an assumption, or is incomplete."""
        assumed = self._assumed
        before = assumed.used.copy(), assumed.wanted.copy()
        exceeded = self._hooks.exceeded
        found = told()
        is_sure = assumed.used == before[0] and exceeded == self._hooks.exceeded
        # No result rests on the assumptions met here yet.
        assumed.used, assumed.wanted = before
        self._hooks.forget(exceeded)
        return found if is_sure else None
