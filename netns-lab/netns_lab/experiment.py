"""The lab around one node: its namespaces, its rules, and its living endpoints answering."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from socket import AF_PACKET, IPPROTO_RAW, SOCK_RAW, socket

from analyzer.clients.responses import FlowResponse
from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Source, View
from analyzer.model.addresses import IPV6, Address
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.measurement import ANSWERED, Measurement
from analyzer.model.value import replace
from analyzer.semantics.assumed import DEFAULTS
from analyzer.semantics.base_chains import Rules
from netns_lab.affinity import AffineRun
from netns_lab.arriving import Beyond
from netns_lab.backend import SocketAddress
from netns_lab.backends import BACKENDS, load_beside
from netns_lab.behind import SendersBehind
from netns_lab.beyond import OtherNode, lost_beyond
from netns_lab.count import BATCH, Captures, ReturnedPackets, close_all
from netns_lab.deaths import FATES, Death, DeathKind, without
from netns_lab.dying import Dying
from netns_lab.errors import LabError, NotMeasuredError
from netns_lab.hairpins import hairpins
from netns_lab.in_turn import in_turn
from netns_lab.layout import PacketLayout
from netns_lab.loaded_nodes import drawn_by, endings_of, load_nodes
from netns_lab.measure import CONNTRACK_ROOM, Progress, RouteRun
from netns_lab.muting import Muting
from netns_lab.namespace import Namespace
from netns_lab.netlink import forget_flows
from netns_lab.node_ports import taken_at
from netns_lab.own_clients import needed, own_clients
from netns_lab.plan import dead_itself, plan
from netns_lab.ready import wait_until_quiet, wait_until_ready
from netns_lab.reasons import BEHIND, DEAD, OWN
from netns_lab.replay import PAYLOAD
from netns_lab.servers import FAMILIES, Echoes, Responder, Servers, Talk, datagrams, echo, listener
from netns_lab.topology import Host, build


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSetup:
    """What the lab is built for: rules, the cluster around them, what is dead, how many flows.

    Attributes:
        clients: client addresses wanted for each kind of source, if more than flows need.
        routes: those that will be measured; addresses that only other routes need are left out.
        own: the node's addresses, if known.
        others: the node's other rulesets, written by other programs.
        nodes: other nodes whose rules are loaded, so that packets to their pods pass them.
        assumed: what the prediction assumes beyond the rules, by name.
        sends_behind: endpoints of `nodes` are clients on hairpin routes, too.
        lenient: rules that cannot be loaded are left out, and named.
        deaths: those with a kind, and what is slow.
        refusing: dead endpoints whose host is alive and refuses packets to them.
        pod_device: the pattern that the names of pods' devices match.
        visitors: sources besides pods to give a client address, and `HAIRPIN` if endpoints are
            clients, even if no route needs them.
    """

    ruleset: Rules
    cluster: Cluster
    view: View
    dead: Dead
    backend: str
    flows: int
    clients: int = 0
    routes: tuple[tuple[ServicePort, Route], ...] = ()
    own: tuple[Address, ...] = ()
    others: tuple[Rules, ...] = ()
    nodes: tuple[OtherNode, ...] = ()
    assumed: Mapping[str, str] = field(default_factory=lambda: DEFAULTS)
    sends_behind: bool = False
    lenient: bool = False
    deaths: tuple[Death, ...] = ()
    refusing: frozenset[Endpoint] = frozenset()
    pod_device: str = "veth+"
    visitors: tuple[Source, ...] = ()

    @property
    def rulesets(self) -> tuple[Rules, ...]:
        """All rulesets of the node."""
        return self.ruleset, *self.others


class Lab:
    """The cluster around one node, with its rules loaded and its living endpoints answering.

    Raises:
        LabError: it cannot be built.
    """

    def __init__(self, question: LabSetup) -> None:
        self.question = question
        lasting = without(question.dead, question.deaths)
        wanted = plan(
            question.view,
            question.cluster,
            replace(lasting, endpoints=lasting.endpoints - question.refusing),
            flows=min(question.flows, CONNTRACK_ROOM),
            clients=question.clients,
            routes=question.routes,
            pod_device=question.pod_device,
            visitors=question.visitors,
            pod_devices={each.name: each.pod_device for each in question.nodes},
            own=question.own,
            node_ports=tuple(taken_at(question.rulesets)),
        )
        if needed(question.routes):
            elsewhere = [each for node in question.nodes for each in node.rulesets]
            own = own_clients(wanted, question.cluster, question.rulesets, elsewhere)
            wanted = dataclasses.replace(wanted, own_clients=own)
        if question.dead.takes(wanted.node, question.cluster):
            raise LabError(dead_itself(wanted.node))
        self.topology = build(wanted)
        wait_until_ready(self.topology.namespaces)
        load = BACKENDS[question.backend]
        self.backend = load(self.topology.node, question.ruleset, lenient=question.lenient)
        #: Backends that loaded the node's other rules.
        self.beside = load_beside(self.topology.node, self.backend, question)
        #: Other nodes whose rules are loaded.
        self.nodes = tuple(load_nodes(self.topology, question.nodes, lenient=question.lenient))
        #: Those of them that draw endpoints: for flows of their own pods.
        self._drawing = self.nodes if question.sends_behind and wanted.endpoints_send else ()
        self._where = self._namespaces()
        #: Captures of the flows, by protocol and IP version.
        self.hearers: dict[PacketLayout, Captures] = {}
        self._hearing: dict[tuple[Namespace, PacketLayout], ReturnedPackets] = {}
        self._sockets: dict[tuple[Namespace, str], socket] = {}
        self._echoes = Echoes(BATCH, PAYLOAD)
        self._answering: dict[tuple[Namespace, str, int, int], socket] = {}
        self.muting = Muting(self.topology)
        self._is_quiet = False
        self.dying = Dying(self)
        self._kinds: dict[Endpoint, Death] = {}
        for death in question.deaths:
            self.dying.kill(death)
            self._kinds.update(dict.fromkeys(death.endpoints, death))

    @cached_property
    def known_ports(self) -> frozenset[int]:
        """Ports of endpoints and frontends."""
        view = self.question.view
        ports = {each.port for each in view.endpoints}
        ports |= {each.port for service in view.services for each in service.frontends}
        return frozenset(port for port in ports if port is not None)

    def refuses(self, endpoint: Endpoint) -> bool:
        """Return whether the host of a dead endpoint is alive, so that it refuses packets."""
        if endpoint in self._kinds:
            return FATES[self._kinds[endpoint].kind.name] is FlowResponse.REFUSED
        hosts = (self.topology.own_pods, *self.topology.others)
        plans = [each.plan for each in hosts if each.plan is not None]
        return not any(
            endpoint.address in each.silent
            or (each.dead and endpoint.address in {*each.endpoints, *each.addresses})
            for each in plans
        )

    def beyond(self, client: Address | None) -> Beyond:
        """Return the function that says which flows of a client the rules of other nodes end."""
        silent = [gate.namespace.name for gate in self.dying.silent]
        return lost_beyond(self, self.question.nodes, client, silent)

    def forget_flows(self) -> None:
        """Empty the conntrack table of every node."""
        for each in (self.topology.node, *(gate.namespace for gate in self.topology.gates)):
            forget_flows(each)

    @property
    def notes(self) -> list[Diagnostic]:
        """What of the dumps was not loaded as it stands."""
        theirs = [each for node in self.nodes for each in node.backends]
        return [note for each in (self.backend, *self.beside, *theirs) for note in each.notes]

    def endings(self) -> Counter[str] | None:
        """Return the packet counts of rules that drop or reject; None if some do not count."""
        if IPV6 in self.topology.plan.versions and not self._is_quiet:
            wait_until_quiet(self.topology.namespaces)
            self._is_quiet = True
        return endings_of(self.topology.plan.node, (self.backend, *self.beside), self.nodes)

    def kind_of(self, endpoint: Endpoint) -> DeathKind | None:
        """Return how an endpoint is dead or slow; None if no kind was given, or it is neither."""
        death = self._kinds.get(endpoint)
        return None if death is None else death.kind

    def fate_of(self, endpoint: Endpoint) -> FlowResponse:
        """Return what a client sees of a dead endpoint."""
        kind = self.kind_of(endpoint)
        fate = None if kind is None else FATES[kind.name]
        return fate or (FlowResponse.REFUSED if self.refuses(endpoint) else FlowResponse.SILENT)

    @property
    def slowest(self) -> float:
        """The longest delay of a slow endpoint, seconds."""
        return max((d.kind.milliseconds for d in self.question.deaths), default=0) / 1000

    def where(self, address: Address) -> Namespace | None:
        """Return the namespace that has an address; None if no route of this lab needs it."""
        return self._where.get(address)

    def serve(
        self, responder: Callable[[int], Responder] = lambda _: echo, talk: Talk | None = None
    ) -> Servers:
        """Start a server for each living endpoint and return them all.

        `responder` gives what answers at a UDP port; `talk` is passed to `Servers.tcp`.
        """
        servers = Servers(self.dying.delays)
        for (namespace, protocol, version), ports in self._living().items():
            if protocol == "tcp":
                servers.tcp(namespace, ports, talk, version)
            elif protocol == "udp":
                for port in ports:
                    servers.udp(namespace, [port], responder(port), version)
        return servers

    def _living(self) -> dict[tuple[Namespace, str, int], set[int]]:
        """Return the ports of living endpoints by namespace, protocol and IP version."""
        ports: dict[tuple[Namespace, str, int], set[int]] = {}
        for service in self.question.view.services:
            for endpoint in service.endpoints:
                namespace, port = self._where.get(endpoint.address), endpoint.port
                if namespace is None or port is None or endpoint in self.question.dead.endpoints:
                    continue
                key = namespace, service.protocol, endpoint.address.version
                ports.setdefault(key, set()).add(port)
        return ports

    def _namespaces(self) -> dict[Address, Namespace]:
        """Return the namespace of each endpoint's and node's address."""
        own = self.topology.plan.node_addresses
        found: dict[Address, Namespace] = dict.fromkeys(own, self.topology.node)
        for host in (self.topology.own_pods, *self.topology.others):
            assert host.plan is not None
            found |= dict.fromkeys(host.plan.endpoints, host.namespace)
            entry = host.namespace if host.gate is None else host.gate.namespace
            found |= dict.fromkeys(host.plan.addresses, entry)
        return found

    def answering(self, service: ServicePort) -> Sequence[socket]:
        """Let the living endpoints of a ServicePort answer, and return the sockets that echo.

        They stay open, and are reused for other routes.
        """
        echoing = []
        if service.protocol not in ANSWERED:
            return ()
        for endpoint in service.endpoints:
            namespace, port = self._where.get(endpoint.address), endpoint.port
            if namespace is None or port is None or endpoint in self.question.dead.endpoints:
                continue
            version = endpoint.address.version
            key = namespace, service.protocol, version, port
            if key not in self._answering:
                opens = datagrams if service.protocol == "udp" else listener
                self._answering[key] = opens(namespace, port, version)
            if service.protocol == "udp":
                echoing.append(self._answering[key])
        return tuple(dict.fromkeys(echoing))

    def listeners(self, service: ServicePort) -> Sequence[socket]:
        """Return the sockets on which endpoints of a ServicePort accept connections."""
        self.answering(service)
        return [
            each
            for (_, protocol, _, port), each in self._answering.items()
            if protocol == "tcp" == service.protocol
            and port in {endpoint.port for endpoint in service.endpoints}
        ]

    def echo(self, sockets: Sequence[socket]) -> None:
        """Send back what these sockets have received."""
        self.dying.serve()
        self._echoes.serve(sockets)

    def captures(self, layout: PacketLayout) -> Captures:
        """Return the captures for a protocol, with nothing recorded."""
        if layout not in self.hearers:
            self.hearers[layout] = Captures(self.topology, layout)
            for gate in self.dying.silent:
                self.hearers[layout].hear_before(gate)
        self.hearers[layout].forget()
        return self.hearers[layout]

    def link(self, client: Host) -> socket:
        """Return a packet socket on one of the client's devices, to send frames."""
        key = client.namespace, client.device
        if key not in self._sockets:
            link = client.namespace.socket(AF_PACKET, SOCK_RAW)
            link.bind((client.device, 0))
            self._sockets[key] = link
        return self._sockets[key]

    def own_stack(self, version: int) -> socket:
        """Return a raw socket of the node's own IP stack, to send packets."""
        key = self.topology.node, f"raw {version}"
        if key not in self._sockets:
            self._sockets[key] = self.topology.node.socket(FAMILIES[version], SOCK_RAW, IPPROTO_RAW)
        return self._sockets[key]

    def drawn(self) -> Counter[SocketAddress]:
        """Return what the rules have counted since the last call."""
        return drawn_by(self.backend, self._drawing)

    def muted(self) -> AbstractContextManager[None]:
        """Let the client's kernel be silent for a while; of several, until the last is over."""
        return self.muting.on()

    def runs(self, service: ServicePort, route: Route, flows: int) -> Iterator[RouteRun]:
        """Yield the flows of one route, each run to be sent before the next one is made.

        On a hairpin route each living endpoint sends its part of the flows, one after the other.

        Raises:
            LabError: the lab cannot replay the route.
        """
        kept = service.affinity is not None and not route.astray
        kind = AffineRun if kept and any(s.share.upper for s in route.shares) else RouteRun
        if route.source is Source.HAIRPIN:
            yield from hairpins(kind, self, service, route, flows)
        else:
            yield kind(self, service, route, flows, None)

    def measure(
        self,
        service: ServicePort,
        route: Route,
        progress: Progress | None = None,
        flows: int | None = None,
    ) -> list[Measurement]:
        """Send the flows of one route, and account for each.

        Raises:
            LabError: the lab cannot replay the route.
        """
        (found,) = in_turn(self, [(service, route, flows or self.question.flows)], progress)
        if found.why_not is not None:
            raise NotMeasuredError(found.why_not)
        return found.measurements

    def why_mute(self, endpoint: Endpoint) -> str | None:
        """Return why an endpoint sends no flows to its own Services; None if it sends them."""
        if endpoint in self.question.dead.endpoints:
            return DEAD
        if self._where.get(endpoint.address) in (None, self.topology.node):
            return OWN
        return None if self.behind.node_of(endpoint.address) is None else BEHIND

    @cached_property
    def behind(self) -> SendersBehind:
        """Endpoints of other nodes that have rules of their own."""
        return SendersBehind(self)

    @cached_property
    def senders(self) -> frozenset[Address]:
        """Addresses of pods with at least one endpoint that sends."""
        return frozenset(e.address for e in self.question.view.endpoints if not self.why_mute(e))

    def place_of(self, address: Address) -> tuple[Host, str]:
        """Return the host of an endpoint, and the MAC address that it sends to."""
        topology = self.topology
        namespace = self._where[address]
        host = next(each for each in topology.hosts if each.namespace is namespace)
        if host.gate is not None:
            return host, host.gate.pods_mac
        own = host is topology.own_pods
        return host, topology.pods_mac if own else topology.uplink_mac

    def hearing(self, host: Host, layout: PacketLayout) -> ReturnedPackets:
        """Return the capture of the answers to an endpoint that is a client."""
        key = host.namespace, layout
        if key not in self._hearing:
            self._hearing[key] = ReturnedPackets(host, layout)
        self._hearing[key].forget()
        return self._hearing[key]

    def close(self) -> None:
        """Close what the kernel is slow to free; the rest vanishes with the process."""
        for each in self.hearers.values():
            each.close()
        close_all(self._hearing.values())
        self.hearers.clear()
        self._hearing.clear()
