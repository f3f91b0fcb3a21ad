"""One experiment: new flows to one frontend, each accounted for."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from socket import AF_INET, AF_PACKET, IPPROTO_RAW, SOCK_RAW, socket
from typing import Final

from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, ServicePort, Source, View
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.measurement import EndpointCount, Measurement
from analyzer.model.probability import NEVER, Bounds
from analyzer.model.value import replace
from analyzer.semantics.base_chains import Rules
from netns_lab.backend import Door
from netns_lab.backends import BACKENDS
from netns_lab.command import run
from netns_lab.count import Captures, answer, landing
from netns_lab.namespace import Namespace
from netns_lab.plan import plan
from netns_lab.ready import End, wait_until_ready
from netns_lab.replay import IP_AT, Flows
from netns_lab.servers import Servers
from netns_lab.topology import OUTSIDE, Host, Topology, build

#: Packets sent before every socket is read; what the sockets hold is far more.
BATCH: Final = 128
#: Flows between two flushes of conntrack, whose table holds 262,144 in a child namespace.
_CONNTRACK_ROOM: Final = 100_000
#: The same where all leave with the node's address: it has 64,512 ports to give, and the kernel
#: looks for a free one 128 times at random (nf_nat_core.c), so half of them must stay free.
_MASQUERADE_ROOM: Final = 28_000
#: Seconds to wait, at the end, for what has not come yet.
_PATIENCE: Final = 2.0

#: Called with how many flows were sent since the last call.
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the lab is asked: the rules, the cluster around them, who is dead, how many flows.

    Attributes:
        refusing: those of the dead whose host lives, so that it refuses what comes for them.
        pod_device: the pattern of names that devices of pods have.
    """

    ruleset: Rules
    cluster: Cluster
    view: View
    dead: Dead
    backend: str
    flows: int
    refusing: frozenset[Endpoint] = frozenset()
    pod_device: str = "veth+"


class Lab:
    """The cluster around one node, with its rules loaded and its living endpoints answering.

    Raises:
        LabError: it cannot be built.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        wanted = plan(
            question.view,
            question.cluster,
            replace(question.dead, endpoints=question.dead.endpoints - question.refusing),
            flows=min(question.flows, _CONNTRACK_ROOM),
            pod_device=question.pod_device,
        )
        self.topology = build(wanted)
        wait_until_ready(_links(self.topology))
        self.backend = BACKENDS[question.backend](self.topology.node, question.ruleset)
        self._captures: dict[str, Captures] = {}
        self._sockets: dict[str, socket] = {}

    def refuses(self, endpoint: Endpoint) -> bool:
        """Tell whether a dead endpoint is refused by its host, which lives."""
        hosts = (self.topology.own_pods, *self.topology.others)
        plans = [each.plan for each in hosts if each.plan is not None]
        return not any(
            endpoint.address in each.silent
            or (each.dead and endpoint.address in {*each.endpoints, each.address})
            for each in plans
        )

    def serve(self, **responders: Callable[[bytes], bytes]) -> Servers:
        """Start a server for each living endpoint and return them all.

        `responders` go to `Servers.udp`; without one, UDP endpoints echo.
        """
        servers = Servers()
        for namespace, protocol, ports in self._living():
            if protocol == "tcp":
                servers.tcp(namespace, ports)
            elif protocol == "udp":
                servers.udp(namespace, ports, **responders)
        return servers

    def _living(self) -> Iterator[tuple[Namespace, str, set[int]]]:
        """Give the ports of living endpoints by namespace and protocol."""
        where = self._namespaces()
        ports: dict[tuple[Namespace, str], set[int]] = {}
        for service in self.question.view.services:
            for endpoint in service.endpoints:
                namespace = where.get(endpoint.address)
                if namespace is None or endpoint in self.question.dead.endpoints:
                    continue
                if endpoint.port is not None:
                    ports.setdefault((namespace, service.protocol), set()).add(endpoint.port)
        for (namespace, protocol), each in ports.items():
            yield namespace, protocol, each

    def _namespaces(self) -> dict[Address, Namespace]:
        """Return where each address of an endpoint or node is."""
        found: dict[Address, Namespace] = {self.topology.plan.node_address: self.topology.node}
        for host in (self.topology.own_pods, *self.topology.others):
            assert host.plan is not None
            found |= dict.fromkeys(host.plan.endpoints, host.namespace)
            if host.plan.address is not None:
                found[host.plan.address] = host.namespace
        return found

    def captures(self, protocol: str) -> Captures:
        """Return what hears the flows of a protocol, and has not heard any yet."""
        if protocol not in self._captures:
            self._captures[protocol] = Captures(self.topology, protocol)
        self._captures[protocol].forget()
        return self._captures[protocol]

    def link(self, client: Host) -> socket:
        """Return the client's end of one of its links, to send frames by."""
        if client.device not in self._sockets:
            link = client.namespace.socket(AF_PACKET, SOCK_RAW)
            link.bind((client.device, 0))
            self._sockets[client.device] = link
        return self._sockets[client.device]

    def measure(
        self, service: ServicePort, route: Route, progress: Progress | None = None
    ) -> Measurement:
        """Send the flows of one route, and account for each.

        Raises:
            LabError: the route is none that the lab can replay.
        """
        servers = self.serve()
        try:
            return _Run(self, service, route, servers).measure(progress)
        finally:
            servers.close()

    def forget_flows(self) -> None:
        """Empty the node's conntrack table."""
        run(self.topology.node, ["conntrack", "-F"])


def _links(lab: Topology) -> list[tuple[End, End]]:
    node = lab.node
    links = [
        (
            End(node, lab.plan.bridge or lab.plan.client_device, lab.gateway_mac),
            End(lab.client.namespace, "eth0", lab.client.mac),
        ),
        (
            End(node, OUTSIDE, lab.outer_mac),
            End(lab.outside.namespace, lab.outside.device, lab.outside.mac),
        ),
        (
            End(node, lab.plan.bridge or lab.plan.pods_device, lab.pods_mac),
            End(lab.own_pods.namespace, "eth0", lab.own_pods.mac),
        ),
    ]
    uplink = End(node, "eth0", lab.uplink_mac)
    links += [(uplink, End(h.namespace, "eth0", h.mac)) for h in (*lab.others, lab.world)]
    return links


class _Run:
    """The flows of one route on their way."""

    def __init__(self, lab: Lab, service: ServicePort, route: Route, servers: Servers) -> None:
        self._lab = lab
        self._service = service
        self._route = route
        self._servers = servers
        self._protocol = service.protocol
        topology = lab.topology
        self._door = self._frontend_door(route.frontend)
        clients = {
            Source.POD: topology.plan.pod_clients,
            Source.EXTERNAL: topology.plan.external_clients,
            Source.NODE: (topology.plan.node_address,),
        }[route.source]
        is_outside = route.source is Source.EXTERNAL
        self._client = topology.outside if is_outside else topology.client
        gateway = topology.outer_mac if is_outside else topology.gateway_mac
        macs = (gateway, self._client.mac)
        to = IPv4Address(self._door[0]), self._door[1]
        self._flows = Flows(self._protocol, to, clients, macs)
        self._captures = lab.captures(self._protocol)
        self._send = self._sender()
        self._landed: dict[int, Door] = {}
        self._answered: dict[int, bool] = {}
        self._fates: Counter[tuple[Door, bool | None]] = Counter()
        self._duplicates = 0

    def _frontend_door(self, frontend: Frontend) -> Door:
        address = frontend.address or self._lab.topology.plan.node_address
        assert frontend.port is not None  # a route of which the dump has lost it is not asked for
        return int(address), frontend.port

    def _sender(self) -> Callable[[bytearray], None]:
        topology = self._lab.topology
        if self._route.source is Source.NODE:
            # Through the node's own IP stack, so that the packet begins at OUTPUT.
            raw = topology.node.socket(AF_INET, SOCK_RAW, IPPROTO_RAW)
            to = str(IPv4Address(self._door[0]))
            return lambda frame: self._check(raw.sendto(memoryview(frame)[IP_AT:], (to, 0)))
        link = self._lab.link(self._client)
        return lambda frame: self._check(link.send(frame))

    @staticmethod
    def _check(sent: int) -> None:
        assert sent > 0

    def measure(self, progress: Progress | None) -> Measurement:
        lab, flows = self._lab, self._lab.question.flows
        lab.forget_flows()
        before = lab.backend.counters()
        begun = time.monotonic()
        # Whole batches: flows are forgotten only when nothing of them is on its way. Those that
        # leave under the node's one address have no more ports than that has.
        most = _CONNTRACK_ROOM
        if any(share.masquerade is not False for share in self._route.shares):
            most = _MASQUERADE_ROOM
        room = min(self._flows.most, most) // BATCH * BATCH
        for first in range(0, flows, BATCH):
            if first and first % room == 0:
                self._wait_for_the_rest(room)
                self._settle()
                lab.forget_flows()
            last = min(first + BATCH, flows)
            for number in range(first, last):
                self._send(self._flows.frame(number, room))
            self._drain()
            self._drain()  # what the echoes have answered in the first
            if progress is not None:
                progress(last - first)
        self._wait_for_the_rest(flows - flows // room * room or room)
        self._settle()
        seconds = time.monotonic() - begun
        after = lab.backend.counters()
        dropped = self._captures.dropped()
        return self._measurement(flows, after - before, dropped, seconds)

    def _drain(self) -> None:
        self._servers.serve()
        for capture in self._captures.hosts:
            for frame in capture.frames():
                self._arrived(landing(frame, self._protocol))
        for frame in self._captures.node.frames():
            found = answer(frame, self._protocol)
            if found is not None and found[2] == self._door:
                self._answers(found)
            else:
                self._arrived(landing(frame, self._protocol))
        for capture in self._captures.clients:
            for frame in capture.frames():
                self._answers(answer(frame, self._protocol))

    def _arrived(self, found: tuple[int, Door] | None) -> None:
        if found is not None:
            number, door = found
            self._duplicates += number in self._landed
            self._landed.setdefault(number, door)

    def _answers(self, found: tuple[int, bool, Door] | None) -> None:
        if found is not None and found[2] == self._door:
            self._answered.setdefault(found[0], found[1])

    def _wait_for_the_rest(self, flows: int) -> None:
        """Give late packets and answers a chance; none is late as a rule."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            self._servers.serve(0.005)
            self._drain()
            dead = {_door(e) for e in self._lab.question.dead.endpoints}
            owed = sum(door not in dead for door in self._landed.values())
            if len(self._landed) >= flows and len(self._answered) >= owed:
                return

    def _settle(self) -> None:
        """Count the flows that are over, and forget which was which."""
        self._fates.update(
            (door, self._answered.get(number)) for number, door in self._landed.items()
        )
        self._landed.clear()
        self._answered.clear()

    def _measurement(
        self, flows: int, counted: Counter[Door], dropped: int, seconds: float
    ) -> Measurement:
        fates = self._fates
        landed: Counter[Door] = Counter()
        for (door, _), number in fates.items():
            landed[door] += number
        predicted = {
            _door(s.endpoint): s.share for s in self._route.shares if s.endpoint.port is not None
        }
        nothing = Bounds(NEVER, NEVER)
        passed = landed.pop(self._door, 0) if self._door not in predicted else 0
        endpoints = tuple(
            self._count(door, predicted.get(door, nothing), landed, counted, fates)
            # What the rules counted elsewhere is a difference too.
            for door in dict.fromkeys([*predicted, *landed, *(+counted)])
        )
        return Measurement(
            service=self._service.name.text,
            protocol=self._protocol,
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
        endpoint = Endpoint(IPv4Address(door[0]), door[1])
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


def _door(endpoint: Endpoint) -> Door:
    assert endpoint.port is not None
    return int(endpoint.address), endpoint.port
