"""The flows of one route on their way: each sent, and each accounted for."""

from __future__ import annotations

import gc
import os
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Source
from analyzer.model.addresses import Address
from analyzer.model.measurement import EndpointCount, Measurement
from analyzer.model.probability import NEVER, Bounds
from netns_lab.backend import Door
from netns_lab.count import BATCH, Answered, Landed, RawDoor, door_of, raw_door
from netns_lab.layout import Layout
from netns_lab.netlink import forget_flows
from netns_lab.plan import CLIENT_PORTS
from netns_lab.replay import Flows
from netns_lab.topology import Host

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: Flows between two flushes of conntrack, whose table holds 262,144 in a child namespace.
CONNTRACK_ROOM: Final = 100_000
#: The same where all leave with the node's address: it has 64,512 ports to give, and the kernel
#: looks for a free one 128 times at random (nf_nat_core.c), so half of them must stay free.
_MASQUERADE_ROOM: Final = 28_000
#: Seconds to wait, at the end, for what has not come yet.
_PATIENCE: Final = 2.0
_POLL: Final = 0.001

#: Called with how many flows were sent since the last call.
Progress = Callable[[int], None]


class RouteRun:
    """One route's flows."""

    def __init__(self, lab: Lab, service: ServicePort, route: Route) -> None:
        self._lab = lab
        self._service = service
        self._route = route
        address = route.frontend.address or lab.topology.plan.node_address
        assert route.frontend.port is not None  # a route of which the dump has lost it
        self._to = address, route.frontend.port
        self._door = raw_door(address.packed, route.frontend.port)
        self._layout = Layout(address.version, service.protocol)
        clients, host, gateway = self._clients()
        self._room = self._flows_at_once(len(clients))
        from_node = route.source is Source.NODE
        self._flows = Flows(
            self._layout,
            self._to,
            clients,
            (gateway, host.mac),
            min(self._room, lab.question.flows),
            # Through the node's own IP stack, so that the packet begins at OUTPUT.
            to=_socket_address(address) if from_node else None,
        )
        self._link = lab.own_stack(address.version) if from_node else lab.link(host)
        self._captures = lab.captures(self._layout)
        self._echoes = lab.answering(service)
        self._landed: dict[int, RawDoor] = {}
        self._answered: dict[int, bool] = {}
        self._fates: Counter[tuple[RawDoor | None, bool | None]] = Counter()
        self._duplicates = 0
        self._kept_back = 0

    def _flows_at_once(self, clients: int) -> int:
        """Return how many flows are sent before the node has to forget them.

        Whole batches: flows are forgotten only when nothing of them is on its way. Those that
        leave under the node's one address have no more ports than that has.
        """
        most = min(CONNTRACK_ROOM, clients * len(CLIENT_PORTS))
        if any(share.masquerade is not False for share in self._route.shares):
            most = min(most, _MASQUERADE_ROOM)
        return most // BATCH * BATCH

    def _clients(self) -> tuple[tuple[Address, ...], Host, str]:
        """Return the clients' addresses, where they send from, and the MAC they send to."""
        topology = self._lab.topology
        match self._route.source:
            case Source.EXTERNAL:
                return topology.plan.external_clients, topology.outside, topology.outer_mac
            case Source.NODE:
                # One address, from which no more flows are sent at once than it has ports.
                return (topology.plan.node_address,), topology.client, topology.gateway_mac
            case _:
                return topology.plan.pod_clients, topology.client, topology.gateway_mac

    def measure(self, progress: Progress | None) -> Measurement:
        """Send all flows and return what was counted."""
        lab, flows = self._lab, self._lab.question.flows
        with lab.muted(), _without_collector():
            forget_flows(lab.topology.node)
            before = lab.backend.counters()
            begun = time.monotonic()
            room = self._flows.room
            for first in range(0, flows, BATCH):
                if first and first % self._room == 0:
                    self._wait_for_the_rest(room)
                    self._settle()
                    forget_flows(lab.topology.node)
                count = min(BATCH, flows - first)
                self._send(first % self._room, count)
                if progress is not None:
                    progress(count)
            self._wait_for_the_rest(flows - (flows - 1) // self._room * self._room)
            self._settle()
            seconds = time.monotonic() - begun
            after = lab.backend.counters()
        return self._measurement(flows, after - before, self._captures.dropped(), seconds)

    def _send(self, first: int, count: int) -> None:
        self._kept_back += self._flows.messages.send(self._link.fileno(), first, count)
        self._drain()

    def _drain(self) -> None:
        captures = self._captures
        for host in captures.hosts:
            for landed in host.take():
                self._arrived(landed)
        self._lab.echo(self._echoes)
        for at_node, answers in captures.node.take(self._door):
            self._arrived(at_node)
            for answered in answers:
                self._answers(answered)
        for client in captures.clients:
            for answered in client.take(self._door):
                self._answers(answered)

    def _arrived(self, found: Landed) -> None:
        tags, doors = found
        before = len(self._landed)
        self._landed.update(zip(tags, doors, strict=True))
        self._duplicates += before + len(tags) - len(self._landed)

    def _answers(self, found: Answered) -> None:
        tags, accepted = found
        self._answered.update(dict.fromkeys(tags, accepted))

    def _wait_for_the_rest(self, flows: int) -> None:
        """Give late packets and answers a chance; none is late as a rule."""
        dead = {_raw(each) for each in self._lab.question.dead.endpoints if each.port is not None}
        deadline = time.monotonic() + _PATIENCE
        self._drain()  # what the echoes have answered at the node itself
        while time.monotonic() < deadline:
            owed = sum(door not in dead for door in self._landed.values())
            if len(self._landed) >= flows and len(self._answered) >= owed:
                return
            time.sleep(_POLL)
            self._drain()

    def _settle(self) -> None:
        """Count the flows that are over, and forget which was which."""
        landed, answered = self._landed, self._answered
        answers = Counter(zip(map(landed.get, answered), answered.values(), strict=True))
        silent = Counter(landed.values())
        for (door, _), number in answers.items():
            if door is not None:
                silent[door] -= number
        self._fates.update(answers)
        self._fates.update({(door, None): number for door, number in silent.items()})
        landed.clear()
        answered.clear()

    def _measurement(
        self, flows: int, counted: Counter[Door], dropped: int, seconds: float
    ) -> Measurement:
        fates: Counter[tuple[Door, bool | None]] = Counter()
        landed: Counter[Door] = Counter()
        for (raw, fate), number in self._fates.items():
            if raw is not None:
                door = door_of(raw)
                fates[door, fate] += number
                landed[door] += number
        predicted = {
            _door(s.endpoint): s.share for s in self._route.shares if s.endpoint.port is not None
        }
        nothing = Bounds(NEVER, NEVER)
        door = door_of(self._door)
        passed = landed.pop(door, 0) if door not in predicted else 0
        endpoints = tuple(
            self._count(door, predicted.get(door, nothing), landed, counted, fates)
            # What the rules counted elsewhere is a difference too.
            for door in dict.fromkeys([*predicted, *landed, *(+counted)])
        )
        return Measurement(
            service=self._service.name.text,
            protocol=self._service.protocol,
            frontend=f"{self._route.frontend.kind.value} {self._route.frontend}",
            source=self._route.source.value,
            node=self._lab.question.view.node,
            flows=flows,
            endpoints=endpoints,
            passed=passed,
            duplicates=self._duplicates,
            dropped_by_capture=dropped,
            seconds=seconds,
            kernel=os.uname().release,
            backend=self._lab.question.backend,
        )

    def _count(
        self,
        door: Door,
        predicted: Bounds,
        landed: Counter[Door],
        counted: Counter[Door],
        fates: Counter[tuple[Door, bool | None]],
    ) -> EndpointCount:
        question = self._lab.question
        endpoint = Endpoint(type(self._to[0])(door[0]), door[1])
        return EndpointCount(
            address=str(endpoint.address),
            port=door[1],
            node=question.cluster.placement(endpoint.address).node,
            dead=endpoint in question.dead.endpoints,
            predicted=predicted,
            landed=landed[door],
            counted=counted[door],
            answered=fates[door, True],
            refused=fates[door, False],
        )


@contextmanager
def _without_collector() -> Iterator[None]:
    """Make no pauses to look for cycles: of some 100,000 tuples none is part of one."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _socket_address(address: Address) -> bytes:
    """Return a struct sockaddr without a port."""
    if address.version == 4:  # noqa: PLR2004
        return struct.pack("=HH4s8x", socket.AF_INET, 0, address.packed)
    return struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, address.packed, 0)


def _door(endpoint: Endpoint) -> Door:
    assert endpoint.port is not None
    return int(endpoint.address), endpoint.port


def _raw(endpoint: Endpoint) -> RawDoor:
    assert endpoint.port is not None
    return raw_door(endpoint.address.packed, endpoint.port)
