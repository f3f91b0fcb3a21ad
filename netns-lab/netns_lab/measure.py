"""The flows of one route on their way: each sent, and each accounted for."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, ClassVar, Final

from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.addresses import Address
from analyzer.model.measurement import ANSWERED, Measurement
from analyzer.model.probability import NEVER
from netns_lab.accounts import Accounts
from netns_lab.arriving import Arriving, arriving, of_sender
from netns_lab.backend import SocketAddress
from netns_lab.columns import RawSocketAddress, raw_sockaddr, raw_sockaddrs, sockaddr_of
from netns_lab.count import BATCH
from netns_lab.layout import PacketLayout
from netns_lab.messages import struct_sockaddr
from netns_lab.muting import ignoring, no_resets_to
from netns_lab.replay import Flows
from netns_lab.sources import EPHEMERAL_PORTS, sending_of
from netns_lab.topology import Host

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: Flows between two flushes of conntrack, whose table holds 262,144 in a child namespace.
CONNTRACK_ROOM: Final = 100_000
#: The same where all leave with the node's address: it has 64,512 ports to give, and the kernel
#: looks for a free one 128 times at random (nf_nat_core.c), so half of them must stay free.
MASQUERADE_ROOM: Final = 28_000
#: Seconds to wait, at the end, for what has not come yet.
_PATIENCE: Final = 2.0
_FEW_MOMENTS: Final = 0.02
_POLL: Final = 0.001
#: Called with how many flows were sent since the last call.
Progress = Callable[[int], None]


class RouteRun(Accounts):
    """One route's flows.

    Attributes:
        in_turn: each client sends one flow before the first sends another.
    """

    in_turn: ClassVar[bool] = False

    def __init__(
        self, lab: Lab, service: ServicePort, route: Route, flows: int, sender: Address | None
    ) -> None:
        super().__init__(lab, service, route)
        self._sender = sender
        self._count_of_flows = flows
        address, _ = self._to
        self._layout = PacketLayout(address.version, service.protocol)
        clients, host, gateway = self._clients()
        self._room = self._flows_at_once(len(clients))
        from_node = route.source is Source.NODE
        # Through the node's own IP stack, so that the packet begins at OUTPUT.
        to = struct_sockaddr(address) if from_node else None
        self._flows = self._packets(clients, (gateway, host.mac), to)
        if service.protocol == "sctp":
            # Copies of a packet cannot share its checksum, which is therefore not checked.
            lab.topology.node.set("net/netfilter/nf_conntrack_checksum", 0)
        self._link = lab.own_stack(address.version) if from_node else lab.link(host)
        self._captures = lab.captures(self._layout)
        self._hearing = [*self._captures.clients]
        if self._sender is not None:
            self._hearing.append(lab.hearing(host, self._layout))
        self._echoes = lab.answering(service)
        self._missed = 0
        self._seconds = 0.0
        self._client = None if route.source is Source.NODE else clients[0]
        self._predicted = self._expected((service, route), host)
        #: Rules may end flows, and some did not come in the time that late ones have.
        self._waited_in_vain = False

    def _expected(self, place: tuple[ServicePort, Route], host: Host) -> Arriving:
        """Return what happens to the flows, as predicted; `host` is where they are sent from."""
        (service, route), beyond = place, self._lab.beyond(self._client)
        found = arriving(route, beyond)
        if self._sender is None:
            return found
        is_here = host is self._lab.topology.own_pods
        sources = {Source.POD} if is_here else {Source.POD_ELSEWHERE, Source.EXTERNAL}
        others = [
            arriving(each, beyond)
            for each in service.routes
            if each.source in sources and each.frontend == route.frontend
        ]
        return of_sender(found, route.shares[0], others, is_here=is_here)

    def _packets(
        self, clients: Sequence[Address], macs: tuple[str, str], to: bytes | None
    ) -> Flows:
        """Return the first packets of the flows, built."""
        return Flows(
            self._layout,
            self._to,
            clients,
            macs,
            self._prepared(len(clients)),
            to=to,
            # An endpoint that asks must not get answers at a port on which endpoints listen.
            avoid=self._lab.known_ports if self._sender is not None else frozenset(),
            in_turn=self.in_turn,
        )

    def _flows_at_once(self, clients: int) -> int:
        """Return how many flows are sent before the node has to forget them.

        Whole batches: flows are forgotten only when nothing of them is on its way. Those that
        leave under the node's one address have no more ports than that has.
        """
        most = min(CONNTRACK_ROOM, clients * len(EPHEMERAL_PORTS))
        if self._sender is not None or any(s.masquerade is not False for s in self._route.shares):
            most = min(most, MASQUERADE_ROOM)
        return most // BATCH * BATCH

    def _clients(self) -> tuple[tuple[Address, ...], Host, str]:
        """Return the clients' addresses, where they send from, and the MAC they send to."""
        lab, topology = self._lab, self._lab.topology
        version = self._layout.version
        sending = sending_of(self._service, self._route, version)
        match self._route.source:
            case Source.HAIRPIN:
                assert self._sender is not None
                return (self._sender,), *lab.place_of(self._sender)
            case Source.NODE:
                # One address, from which no more flows are sent at once than it has ports.
                own = topology.plan.node_address(version)
                return (own,), topology.client, topology.gateway_mac
            case Source.EXTERNAL:
                return topology.plan.clients[sending], topology.outside, topology.outer_mac
            case Source.POD_ELSEWHERE:
                return topology.plan.clients[sending], topology.elsewhere, topology.uplink_mac
            case _:
                return topology.plan.clients[sending], topology.client, topology.gateway_mac

    def _prepared(self, clients: int) -> int:
        """Return how many flows stand ready."""
        del clients
        return min(self._room, self._count_of_flows)

    @property
    def of(self) -> tuple[ServicePort, Route, Address | None]:
        """Whose flows they are, and the address of the endpoint that sends them, if one does."""
        return self._service, self._route, self._sender

    @property
    def flows_known(self) -> int:
        """How many flows conntrack knows at most once they are sent."""
        return min(self._room, self._count_of_flows)

    def replay(
        self,
        progress: Progress | None,
        *,
        forgets: bool = True,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Send the flows, and hear where they come to; return whether all were sent.

        The node `forgets` those of before first. Once `is_stopped` returns true, no more are sent.
        """
        lab, predicted, wanted = self._lab, self._predicted, self._count_of_flows
        self._is_stopped = is_stopped
        with lab.muted(), self._deaf(), without_collector():
            if forgets:
                lab.forget_flows()
            ends = lab.endings() if predicted.ended.upper and predicted.by_rules else None
            begun = time.monotonic()
            self._count_of_flows = self._send_all(wanted, progress or (lambda _: None))
            self._seconds = time.monotonic() - begun
            if ends is not None:
                self._ended_by = +((lab.endings() or Counter()) - ends)
            self._missed = self._dropped()
        del self._flows  # they are large, and hundreds of runs may wait for rules' counters
        return self._count_of_flows == wanted

    def measured_with(self, counted: Counter[SocketAddress]) -> Measurement:
        """Return what was heard of the flows, beside what rules have counted of them."""
        drawn = Counter(counted)
        drawn.subtract(self._repeated)
        return self._measurement(self._count_of_flows, drawn, self._missed, self._seconds)

    def _deaf(self) -> AbstractContextManager[None]:
        """Let no kernel reset the answers to who asks, where that has no sockets for them."""
        lab, (address, _) = self._lab, self._to
        if self._sender is not None:
            host = lab.place_of(self._sender)[0]
            ports = {e.port for e in self._service.endpoints if e.port is not None}
            return ignoring(host, self._layout, self._to, ports)
        # To its own address the node may send other answers than these resets.
        is_own = address in lab.topology.plan.node_addresses
        if self._route.source is Source.NODE and self._service.protocol == "tcp" and not is_own:
            return no_resets_to(lab.topology.node, self._layout, self._to)
        return nullcontext()

    def _dropped(self) -> int:
        others = self._hearing[len(self._captures.clients) :]
        return self._captures.dropped() + sum(each.dropped() for each in others)

    def _send_all(self, flows: int, progress: Progress) -> int:
        """Send so many flows, unless it is stopped before, and return how many were sent."""
        batch, sent = self._batch, 0
        while sent < flows and not (sent and self._is_stopped()):
            if sent and sent % self._room == 0:
                self._wait_for_the_rest(self._flows.room)
                self._settle()
                self._lab.forget_flows()
            count = min(batch, flows - sent)
            self._send(sent % self._room, count)
            progress(count)
            sent += count
        self._wait_for_the_rest(sent - (sent - 1) // self._room * self._room)
        self._settle()
        return sent

    @property
    def _batch(self) -> int:
        """How many packets are sent before every ring is read.

        A flow that comes back passes the node twice as often, answer and all: on a busy machine
        more packets wait for a processor, and the kernel drops what is above 1,000 of them.
        """
        return BATCH if self._sender is None else BATCH // 4

    def _send(self, first: int, count: int) -> None:
        self._put_out(first, count)
        self._drain()

    def _put_out(self, first: int, count: int) -> None:
        """Send flows, and leave to others to look where they have gone."""
        self._kept_back += self._flows.send(self._link.fileno(), first, count)

    def _drain(self) -> None:
        captures = self._captures
        for host in captures.all_hosts:
            for landed in host.take():
                self._arrived(landed)
        self._lab.echo(self._echoes)
        for at_node, answers in captures.node.take(self._frontend):
            self._arrived(at_node)
            for _, answered in answers:
                self._answers(answered)
        for gate in captures.gates:
            for landed, _ in gate.take(self._frontend):
                self._arrived(landed)
        for client in self._hearing:
            for _, answered in client.take(self._frontend):
                self._answers(answered)

    def _wait_for_the_rest(self, flows: int) -> None:
        """Give late packets and answers a chance; none is late as a rule."""
        owe_none, predicted = self._owing_no_answer(), self._predicted
        # Flows that rules drop send no sign, and neither do those of which they drop the answers.
        ends = predicted.ended
        is_short = ends.lower != NEVER or predicted.answers_some or self._waited_in_vain
        patience = _FEW_MOMENTS if is_short else _PATIENCE
        deadline = time.monotonic() + patience + self._lab.slowest
        self._drain()  # what the echoes have answered at the node itself
        while time.monotonic() < deadline:
            if self._have_come(flows, owe_none):
                return
            time.sleep(_POLL)
            self._drain()
        self._waited_in_vain = ends.upper != NEVER

    def _have_come(self, flows: int, owe_none: Collection[RawSocketAddress]) -> bool:
        """Return whether all flows are accounted for, and those answered to which that is owed."""
        landed, answered = self._landed, self._answered
        heard = len(landed) + self._kept_back
        if heard < flows:  # rules may have refused the others
            heard += len(answered.keys() - landed.keys())
        if heard < flows or self._service.protocol not in ANSWERED:
            return heard >= flows
        if not owe_none:
            return sum(answered.values()) >= len(landed)
        return all(answered.get(tag) for tag, to in landed.items() if to not in owe_none)

    def _owing_no_answer(self) -> Collection[RawSocketAddress]:
        """Return where flows may come to that need not be answered."""
        dead, size = raw_sockaddrs(self._lab.question.dead.endpoints), len(self._to[0].packed)
        silent = {raw_sockaddr(at.to_bytes(size), port) for at, port in self._predicted.silent}
        passes_on = sockaddr_of(self._frontend) not in self._predicted.shares
        return dead | silent | ({self._frontend} if passes_on else set())


@contextmanager
def without_collector() -> Iterator[None]:
    """Make no pauses to look for cycles: of some 100,000 tuples none is part of one."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
