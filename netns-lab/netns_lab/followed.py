"""Routes whose flows are sent while things change, and what happens to each flow.

All flows of one protocol share the same captures, whatever their route. Tags are unique within a
run, so that a late answer is still attributed to its flow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Source
from analyzer.model.addresses import Address
from analyzer.model.measurement import ANSWERED, Measurement
from analyzer.model.probability import Bounds, capped_sum
from netns_lab.arriving import NOTHING, Arriving, either, hull, sockaddr_of_endpoint
from netns_lab.columns import FlowResult, RawSocketAddress, raw_sockaddr, sockaddr_of, tag_of
from netns_lab.count import Answered, Captures, Landed, ReturnedPackets
from netns_lab.deaths import Death, DeathKind
from netns_lab.errors import LabError
from netns_lab.layout import PacketLayout
from netns_lab.measure import MASQUERADE_ROOM, RouteRun
from netns_lab.namespace import Namespace
from netns_lab.replay import Flows
from netns_lab.topology import Host

if TYPE_CHECKING:
    from socket import socket

    from netns_lab.experiment import Lab

_UNKNOWN = Arriving({}, {}, NOTHING)
RouteOf = tuple[ServicePort, Route]


@dataclass(slots=True)
class RouteSpan:
    """Flows of a route that were sent while nothing changed, or during a change.

    Attributes:
        first, last: numbers of the flows; `last` is the first one after them.
        in_flight: those that were not answered when the span ended.
        route: of the loaded dump; None if it has no such route.
        lost: the predicted share without an answer.
        at_event: it is a change.
    """

    begins: float
    first: int
    dead: dict[Endpoint, DeathKind]
    names: tuple[str, ...]
    rules: str
    route: Route | None
    expected: Arriving
    lost: Bounds
    at_event: bool = False
    ends: float = 0.0
    last: int = 0
    in_flight: frozenset[int] = frozenset()


class Recorder:
    """The captured packets of one protocol in one lab, for all routes."""

    def __init__(self, lab: Lab, captures: Captures) -> None:
        self._lab, self.captures = lab, captures
        self._echoes: dict[socket, None] = {}
        #: What comes back to endpoints that send.
        self._senders: dict[int, ReturnedPackets] = {}
        self.landed: dict[int, RawSocketAddress] = {}
        #: By the address and port that flows are sent to, from where alone answers can come.
        self.answered: dict[RawSocketAddress, dict[int, bool]] = {}
        self._duplicates = 0

    def add(self, sockaddr: RawSocketAddress, echoes: Sequence[socket]) -> None:
        """Record a route's answers too, and let its endpoints echo."""
        self.answered.setdefault(sockaddr, {})
        self._echoes.update(dict.fromkeys(echoes))

    def hear(self, answers: ReturnedPackets) -> None:
        """Record what comes back to an endpoint that sends, too."""
        self._senders[id(answers)] = answers

    def forget(self) -> None:
        """Pass over what was heard so far."""
        self.captures.forget()
        for each in self._senders.values():
            each.forget()

    def drain(self) -> None:
        """Record what has arrived."""
        captures, sockaddrs = self.captures, tuple(self.answered)
        for host in captures.all_hosts:
            for landed in host.take():
                self._arrived(landed)
        self._lab.echo(tuple(self._echoes))
        for at_node, answers in captures.node.take(*sockaddrs):
            self._arrived(at_node)
            for each in answers:
                self._answers(*each)
        for gate in captures.gates:
            for landed, _ in gate.take(*sockaddrs):
                self._arrived(landed)
        for client in (*captures.clients, *self._senders.values()):
            for each in client.take(*sockaddrs):
                self._answers(*each)

    def told_once(self) -> tuple[int, int]:
        """Return how many flows arrived twice, and packets dropped, since the last call."""
        duplicates, self._duplicates = self._duplicates, 0
        dropped = sum(each.dropped() for each in self._senders.values())
        return duplicates, self.captures.dropped() + dropped

    def _arrived(self, found: Landed) -> None:
        tags, sockaddrs = found
        before = len(self.landed)
        self.landed.update(zip(tags, sockaddrs, strict=True))
        self._duplicates += before + len(tags) - len(self.landed)

    def _answers(self, sockaddr: RawSocketAddress, found: Answered) -> None:
        tags, accepted = found
        self.answered[sockaddr].update(dict.fromkeys(tags, accepted))


class Followed(RouteRun):
    """One route: its flows in the order in which they are sent, and its phases.

    Args:
        places: the Service and route in the first dump, under None, and in each dump that replaces
            it, by file; None if it has no such route.
        at: number of the route in its lab. It is part of the tags, and selects the client address,
            which no other route shares while there are enough addresses.
    """

    def __init__(
        self,
        lab: Lab,
        places: Mapping[str | None, RouteOf | None],
        flows: int,
        recorders: dict[PacketLayout, Recorder],
        at: int = 0,
    ) -> None:
        self._at = at
        first = places[None]
        assert first is not None
        service, route = first
        itself = route.shares[0].endpoint if route.source is Source.HAIRPIN else None
        #: The endpoint that sends the flows; None: a client that is none.
        self.sender = itself
        super().__init__(lab, service, route, flows, None if itself is None else itself.address)
        #: Most flows that it will send.
        self.flows = flows
        if self._layout not in recorders:
            recorders[self._layout] = Recorder(lab, self._captures)
        self._recorder = recorders[self._layout]
        for each in self._hearing[len(self._captures.clients) :]:
            self._recorder.hear(each)
        for place in places.values():  # also endpoints that the first dump lacks
            self._recorder.add(self._frontend, () if place is None else lab.answering(place[0]))
        self.service, self.route = service, route
        #: Whether the rules know clients again: they have to forget each before its next flow.
        self.has_affinity = any(
            place is not None and place[0].affinity is not None for place in places.values()
        )
        self._rulings = dict(places)
        self.sent = 0
        #: Flows that were due while the endpoint that sends them was dead.
        self.skipped = 0
        #: Times at which flows were sent, and how many had been sent by then.
        self.marks: list[tuple[float, int]] = []
        self.spans: list[RouteSpan] = []
        self._kinds: dict[Endpoint, DeathKind] = {}

    def _clients(self) -> tuple[tuple[Address, ...], Host, str]:
        clients, host, gateway = super()._clients()
        # The last address is for connections that stay open.
        some = clients[:-1] or clients
        self._host = host
        return (some[self._at % len(some)],), host, gateway

    def _prepared(self, clients: int) -> int:
        del clients
        return self._count_of_flows

    def _packets(
        self, clients: Sequence[Address], macs: tuple[str, str], to: bytes | None
    ) -> Flows:
        room = self._prepared(len(clients))
        avoid = self._lab.known_ports if self.sender is not None else frozenset()
        return Flows(
            self._layout, self._to, clients, macs, room, to=to, avoid=avoid, number=self._at
        )

    @property
    def to(self) -> tuple[Address, int]:
        """The address and port that flows are sent to."""
        return self._to

    @property
    def deafness(self) -> tuple[Namespace, PacketLayout, tuple[Address, int]] | None:
        """Where and to whom a kernel has to be deaf, because an endpoint sends; None: it need not.

        Several routes have the same.
        """
        return None if self.sender is None else (self._host.namespace, self._layout, self._to)

    def deaf(self) -> AbstractContextManager[None]:
        """Let the kernel of the endpoint that sends not reset the answers."""
        return self._deaf()

    # --- flows ---------------------------------------------------------------------

    @property
    def is_mute(self) -> bool:
        """Whether its flows are those of an endpoint that is dead at present."""
        dead = self.spans[-1].dead
        return self.sender in dead and dead[self.sender].is_dead

    def tick(self, count: int, clock: float) -> None:
        """Send `count` flows, and record what has arrived."""
        if count:
            if self.has_affinity:
                for each in range(self.sent, self.sent + count):
                    self._lab.backend.forget_clients()
                    self._put_out(each, 1)
                self._drain()
            else:
                self._send(self.sent, count)
            self.sent += count
            self.marks.append((clock, self.sent))
        else:
            self._drain()

    def _drain(self) -> None:
        self._recorder.drain()

    def fates(self) -> list[FlowResult]:
        """Return for each flow where it arrived, and whether its client was answered."""
        return [self._fate(number) for number in range(self.sent)]

    def _fate(self, number: int) -> FlowResult:
        tag = tag_of(self._at, self._flows.ports[number])
        return self._recorder.landed.get(tag), self._recorder.answered[self._frontend].get(tag)

    def unanswered(self) -> frozenset[int]:
        """Return the flows of the last phase that still wait for a living endpoint's answer.

        Without those whose answers rules may end.
        """
        span = self.spans[-1]
        silent = {sockaddr for sockaddr, each in span.expected.unanswered.items() if each.upper}
        living = {sockaddr for sockaddr in self._living() if sockaddr_of(sockaddr) not in silent}
        return frozenset(
            number
            for number in range(span.first, self.sent)
            for sockaddr, answered in [self._fate(number)]
            if sockaddr in living and answered is None
        )

    def _living(self) -> set[RawSocketAddress]:
        """Return the addresses and ports of living endpoints, if those of the protocol answer."""
        if self.service.protocol not in ANSWERED:
            return set()
        dead = self.spans[-1].dead
        return {
            raw_sockaddr(share.endpoint.address.packed, share.endpoint.port)
            for place in self._rulings.values()
            for share in (() if place is None else place[1].shares)
            if share.endpoint.port is not None
            and not (share.endpoint in dead and dead[share.endpoint].is_dead)
        }

    # --- phases --------------------------------------------------------------------

    def begin(self, now: float, file: str | None, rules: str, deaths: Sequence[Death]) -> None:
        """Begin a phase with the dump `file` loaded, None: the first; reports call it `rules`."""
        dead = {e: death.kind for death in deaths for e in death.endpoints}
        place = self._rulings[file]
        expected = _UNKNOWN if place is None else self._expected(place, self._host)
        self.spans.append(
            RouteSpan(
                begins=now,
                first=self.sent,
                dead=dead,
                names=tuple(f"{d.what} ({d.kind})" for d in deaths),
                rules=rules,
                route=None if place is None else place[1],
                expected=expected,
                lost=_lost(expected, dead),
            )
        )

    def change(self, old: RouteSpan) -> None:
        """Make the last phase a change: each flow may behave as in `old`, or as after it."""
        span = self.spans[-1]
        span.at_event = True
        span.expected = either(old.expected, span.expected)
        span.lost = hull(old.lost, span.lost)
        if old.route is None:
            span.route = None
        span.dead = {**old.dead, **span.dead}

    def end(self, now: float) -> None:
        """End the last phase."""
        self.spans[-1].ends, self.spans[-1].last = now, self.sent

    def measurements(self) -> list[tuple[RouteSpan, Measurement]]:
        """Return the counts of each phase that has flows; each flow belongs to one phase."""
        fates = self.fates()
        found = [
            (span, self._measured(span, fates)) for span in self.spans if span.first < span.last
        ]
        assert sum(each.flows for _, each in found) == self.sent
        return found

    def _measured(self, span: RouteSpan, fates: Sequence[FlowResult]) -> Measurement:
        self._predicted = span.expected
        self._kept_back = 0  # they are seen nowhere, as what rules drop is
        self._dead = frozenset(e for e, kind in span.dead.items() if kind.is_dead)
        self._kinds = span.dead
        self._fates = Counter(fates[span.first : span.last])
        waiting = [
            sockaddr
            for sockaddr, answer in map(fates.__getitem__, span.in_flight)
            if answer is None
        ]
        self._in_flight = Counter(
            sockaddr_of(sockaddr) for sockaddr in waiting if sockaddr is not None
        )
        self._duplicates, dropped = self._recorder.told_once()
        return self._measurement(span.last - span.first, None, dropped, span.ends - span.begins)

    def _death_of(self, endpoint: Endpoint) -> str | None:
        kind = self._kinds.get(endpoint)
        return None if kind is None else str(kind)

    def endpoint_of(self, sockaddr: RawSocketAddress) -> Endpoint:
        """Return the endpoint of an address and port in network byte order."""
        address, port = sockaddr_of(sockaddr)
        return Endpoint(type(self._to[0])(address), port)


def check_room(runs: Sequence[Followed]) -> None:
    """Raise a LabError if a lab masquerades more flows than the node has ports for.

    conntrack forgets none of them during a run.
    """
    masqueraded = sum(
        each.flows for each in runs if any(s.masquerade is not False for s in each.route.shares)
    )
    if masqueraded > MASQUERADE_ROOM:
        raise LabError(
            f"{masqueraded:,} new flows are more than the node can distinguish at one time: at "
            f"most {MASQUERADE_ROOM:,}; lower --rate or --for"
        )


def _lost(expected: Arriving, dead: Mapping[Endpoint, DeathKind]) -> Bounds:
    """Return the share of the flows that reach no living endpoint."""
    gone = {
        sockaddr_of_endpoint(e) for e, kind in dead.items() if kind.is_dead and e.port is not None
    }
    living = [share for sockaddr, share in expected.shares.items() if sockaddr not in gone]
    lower, upper = capped_sum(b.lower for b in living), capped_sum(b.upper for b in living)
    return Bounds(~upper, ~lower)
