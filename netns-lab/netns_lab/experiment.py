"""The lab around one node: its namespaces, its rules, and its living endpoints answering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, AF_PACKET, IPPROTO_RAW, SOCK_RAW, socket
from typing import Final

from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, View
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.measurement import Measurement
from analyzer.model.value import replace
from analyzer.semantics.base_chains import Rules
from netns_lab.backends import BACKENDS
from netns_lab.count import BATCH, Captures
from netns_lab.layout import Layout
from netns_lab.measure import CONNTRACK_ROOM, Progress, RouteRun
from netns_lab.namespace import Namespace
from netns_lab.plan import plan
from netns_lab.ready import wait_until_ready
from netns_lab.replay import PAYLOAD
from netns_lab.servers import Echoes, Servers, listener
from netns_lab.topology import Host, build, mute

_IPV4: Final = 4


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
            flows=min(question.flows, CONNTRACK_ROOM),
            pod_device=question.pod_device,
        )
        self.topology = build(wanted)
        wait_until_ready(self.topology.namespaces)
        self.backend = BACKENDS[question.backend](self.topology.node, question.ruleset)
        self._where = self._namespaces()
        self._captures: dict[Layout, Captures] = {}
        self._sockets: dict[str, socket] = {}
        self._echoes = Echoes(BATCH, PAYLOAD)
        self._answering: dict[tuple[Namespace, str, int], socket] = {}

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
        ports: dict[tuple[Namespace, str], set[int]] = {}
        for service in self.question.view.services:
            for endpoint in service.endpoints:
                namespace = self._where.get(endpoint.address)
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

    def answering(self, service: ServicePort) -> Sequence[socket]:
        """Let the living endpoints of a ServicePort answer, and return the sockets that echo.

        They go on answering; what is open once is opened for no other route again.
        """
        echoing = []
        for endpoint in service.endpoints:
            namespace, port = self._where.get(endpoint.address), endpoint.port
            if namespace is None or port is None or endpoint in self.question.dead.endpoints:
                continue
            key = namespace, service.protocol, port
            if key not in self._answering:
                opens = Echoes.open if service.protocol == "udp" else listener
                self._answering[key] = opens(namespace, port)
            if service.protocol == "udp":
                echoing.append(self._answering[key])
        return tuple(dict.fromkeys(echoing))

    def echo(self, sockets: Sequence[socket]) -> None:
        """Send back what has come to these."""
        self._echoes.serve(sockets)

    def captures(self, layout: Layout) -> Captures:
        """Return what hears the flows of a protocol, and has not heard any yet."""
        if layout not in self._captures:
            self._captures[layout] = Captures(self.topology, layout)
        self._captures[layout].forget()
        return self._captures[layout]

    def link(self, client: Host) -> socket:
        """Return the client's end of one of its links, to send frames by."""
        if client.device not in self._sockets:
            link = client.namespace.socket(AF_PACKET, SOCK_RAW)
            link.bind((client.device, 0))
            self._sockets[client.device] = link
        return self._sockets[client.device]

    def own_stack(self, version: int) -> socket:
        """Return the way into the node's own IP stack, to send packets by."""
        name = f"raw {version}"
        if name not in self._sockets:
            family = AF_INET if version == _IPV4 else AF_INET6
            self._sockets[name] = self.topology.node.socket(family, SOCK_RAW, IPPROTO_RAW)
        return self._sockets[name]

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Let the client's kernel be silent for a while."""
        mute(self.topology, on=True)
        try:
            yield
        finally:
            mute(self.topology, on=False)

    def measure(
        self, service: ServicePort, route: Route, progress: Progress | None = None
    ) -> Measurement:
        """Send the flows of one route, and account for each.

        Raises:
            LabError: the route is none that the lab can replay.
        """
        return RouteRun(self, service, route).measure(progress)

    def close(self) -> None:
        """Let go of what is slow to let go of; the rest vanishes with the process."""
        for each in self._captures.values():
            each.close()
        self._captures.clear()
