"""Packets that nat has sent to endpoints, and what happens to them after it.

Packets to the endpoints of one Service differ in little besides these and their marks, which may
depend on the source. So what happens after nat is asked for one packet of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter
from typing import Final, TypeAlias, TypeVar

from analyzer.kubeproxy.routes.leaving import ENDS, Towards
from analyzer.kubeproxy.routes.up_to_nat import NatTree
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.intervals import Intervals, meet
from analyzer.model.packet import Mark, Packet
from analyzer.model.value import fields_of, replace
from analyzer.semantics.iptables.unseen import come_like
from analyzer.semantics.onward import Onward
from analyzer.semantics.parts import MatchedSources, Parts, common, union

T = TypeVar("T")

#: The sources of flows that reach an endpoint, None: any; what happens to them after nat, and the
#: sources that rules match on there.
EndpointFlows: TypeAlias = tuple[Intervals | None, Parts[Onward], MatchedSources]
#: A kind of packets, and the bits of their mark that are set and that are not known.
_Key: TypeAlias = tuple[int, int, int]

#: What distinguishes packets to endpoints besides these, their sources and their marks.
_KIND: Final = attrgetter(
    *(name for name in fields_of(Packet) if name not in {*ENDS, "mark", "marks"})
)


class SentPackets:
    """The packets of one tree that reach endpoints.

    `leaving` returns what tells by source what happens after nat to packets like one.
    """

    def __init__(self, found: NatTree, leaving: Callable[[Packet], Towards]) -> None:
        self._within = found.within
        self._like = found.like
        self._leaving = leaving
        self._sent: dict[Endpoint, list[tuple[Intervals | None, Packet]]] = {}
        self._kinds: dict[tuple[object, ...], int] = {}
        self._last: tuple[tuple[object, ...], int] = (), 0
        self._towards: dict[_Key, Towards] = {}
        self._arrivals: dict[Endpoint, list[EndpointFlows]] = {}

    def add(self, endpoint: Endpoint, where: Intervals | None, packet: Packet) -> None:
        """Add a packet from some sources; None: from any."""
        self._sent.setdefault(endpoint, []).append((where, packet))

    def leaving_as(
        self, leaving: Callable[[Packet], Towards], found: NatTree | None = None
    ) -> SentPackets:
        """Return the same packets, with another result after nat, or of another kind of source."""
        other = object.__new__(SentPackets)
        other.__dict__.update(vars(self), _leaving=leaving, _arrivals={}, _towards={})
        if found is not None:
            other.__dict__.update(_within=found.within, _like=found.like)
        return other

    @property
    def endpoints(self) -> Collection[Endpoint]:
        """The endpoints that flows may reach."""
        return self._sent.keys()

    @property
    def are_from_all(self) -> bool:
        """Whether no rule has split the sources."""
        return all(where is None for sent in self._sent.values() for where, _ in sent)

    def to(self, endpoint: Endpoint) -> dict[Packet, Intervals | None]:
        """Return the packets that reach an endpoint, and from which sources; None: from any."""
        found: dict[Packet, Intervals | None] = {}
        for where, sent in self._sent.get(endpoint, ()):
            for there, mark in self.restricted(_by_mark(sent, where)):
                packet = self._as_sent(sent, mark)
                found[packet] = union(there, found.get(packet, ()))
        return found

    def arriving(self, endpoint: Endpoint) -> list[EndpointFlows]:
        """Return what happens after nat to packets to an endpoint, by their sources."""
        found = self._arrivals.get(endpoint)
        if found is None:
            sources: dict[_Key, Intervals | None] = {}
            towards = self._towards
            for where, packet in self._sent.get(endpoint, ()):
                kind = self._kind(packet)
                for there, mark in self.restricted(_by_mark(packet, where)):
                    key = kind, mark.value, mark.unknown
                    if key not in towards:
                        towards[key] = self._leaving(self._as_sent(packet, mark))
                    sources[key] = union(there, sources[key]) if key in sources else there
            address, port = int(endpoint.address), endpoint.port
            found = [(there, *towards[key](address, port)) for key, there in sources.items()]
            self._arrivals[endpoint] = found
        return found

    def restricted(self, parts: Iterable[tuple[Intervals | None, T]]) -> Parts[T]:
        """Return the parts that hold for some sources of this kind."""
        within = self._within
        if within is None:
            return tuple(parts)
        return tuple([part for part in parts if part[0] is None or meet(part[0], within)])

    def _as_sent(self, packet: Packet, mark: Mark) -> Packet:
        packet = replace(packet.from_all(), mark=mark, marks=None)
        return packet if self._like is None else come_like(packet, self._like)

    def _kind(self, packet: Packet) -> int:
        fields = _KIND(packet)
        if fields != self._last[0]:
            self._last = fields, self._kinds.setdefault(fields, len(self._kinds))
        return self._last[1]


def _by_mark(packet: Packet, where: Intervals | None) -> Sequence[tuple[Intervals | None, Mark]]:
    """Return each mark of a packet from some sources, and those that have it."""
    marks = packet.marks
    if marks is None or len(marks.parts) == 1:
        return ((where, packet.mark),)
    parts = ((common(where, sources), mark) for sources, mark in marks.parts)
    return [part for part in parts if part[0]]
