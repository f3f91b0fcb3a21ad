"""Services read out of kube-proxy's iptables rules.

Theory of operation
===================

The rules of KUBE-SERVICES and KUBE-NODEPORTS that send a flow on to a chain of a Service are its
frontends. For each frontend and each kind of source we make the first packet of such a flow and
walk it through the nat hooks, so that whatever the rules say on the way is in the shares: what
kube-proxy of that version means by its rules need not be known.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    Route,
    ServicePort,
    Share,
    Source,
    View,
)
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.matches import (
    Match,
    MatchAddrtype,
    MatchComment,
    MatchDestination,
    MatchNot,
    MatchProtocol,
    MatchRecent,
    MatchSctp,
    MatchSource,
    MatchTcp,
    MatchUdp,
)
from analyzer.model.options import Option, Range
from analyzer.model.packet import Address, Network, Packet
from analyzer.model.rules import Chain, Rule, Ruleset, Table
from analyzer.model.targets import Dnat, Drop, Goto, Jump, Reject
from analyzer.model.ternary import Ternary
from analyzer.parsers.survey import survey
from analyzer.semantics.hooks import NatHooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Leaf, Tree, shares

#: Chains of kube-proxy's other modes, and what to say of a dump that has them.
_OTHER_MODES: Final = {
    "KUBE-PORTALS-CONTAINER": (
        "userspace",
        "kube-proxy runs in userspace mode: its rules lead to a port of its own process, "
        "not to endpoints, so no share can be read from them",
    ),
    "KUBE-LOAD-BALANCER": (
        "ipvs",
        "kube-proxy runs in ipvs mode: endpoints are in the kernel's IPVS tables, not in "
        "these rules; `ipvsadm-save -n` would show them",
    ),
}

#: Addresses of TEST-NET-3 and its like in IPv6 (RFC 5737, RFC 3849): certainly not a cluster's.
_OUTSIDE: Final[dict[str, Address]] = {
    "ip": IPv4Address("203.0.113.1"),
    "ip6": IPv6Address("2001:db8:ffff::1"),
}
#: Stands for an address of the node when none is known.
_SOME_NODE_ADDRESS: Final[dict[str, Address]] = {
    "ip": IPv4Address("192.0.2.1"),
    "ip6": IPv6Address("2001:db8:fffe::1"),
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A rule that sends the flows of one frontend to a chain."""

    name: str
    protocol: str
    frontend: Frontend
    chain: str


class Recogniser:
    """The Services of a dump, as flows that begin or arrive at its node meet them.

    `node_addresses` are the node's own; none: they are not known.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        cluster: Cluster,
        *,
        node: str | None = None,
        node_addresses: tuple[Address, ...] = (),
    ) -> None:
        self._ruleset = ruleset
        self._nat = ruleset.tables.get("nat") or Table(ruleset.family, "nat", {})
        self._node = node
        version = 4 if ruleset.family == "ip" else 6
        own = [a for a in node_addresses if a.version == version]
        self._node_address = own[0] if own else None
        self._entries = list(self._find_entries())
        self._sources = _Sources(self._nat, cluster, self._entries, own, ruleset.family)
        self._hooks = NatHooks(ruleset, Situation(local_addresses=frozenset(own) if own else None))
        # A flow to a NodePort goes to some address of the node, whichever that is.
        self._some_address = self._node_address or _SOME_NODE_ADDRESS[ruleset.family]
        self._node_port_hooks = NatHooks(
            ruleset, Situation(local_addresses=frozenset([*own, self._some_address]))
        )

    def view(self) -> View:
        """Return all ServicePorts with their routes."""
        mode, diagnostics = self._mode()
        services = tuple(self._services()) if mode == "iptables" else ()
        return View(
            services=services,
            mode=mode,
            node=self._node,
            pod_source=self._sources.address(Source.POD),
            diagnostics=(*self._ruleset.diagnostics, *survey(self._ruleset), *diagnostics),
        )

    def _mode(self) -> tuple[str, list[Diagnostic]]:
        for chain, (mode, message) in _OTHER_MODES.items():
            if chain in self._nat.chains:
                return mode, [self._warning(f"{mode}-mode", message)]
        if names.SERVICES in self._nat.chains:
            return "iptables", []
        message = (
            "no chain KUBE-SERVICES in table nat: kube-proxy has not written these rules, or "
            "the dump leaves them out"
        )
        return "none", [self._warning("no-kube-proxy-chains", message)]

    def _warning(self, code: str, message: str) -> Diagnostic:
        return Diagnostic(
            severity=Severity.WARNING,
            code=code,
            message=message,
            file=self._ruleset.file,
            partial=True,
        )

    def _find_entries(self) -> Iterator[_Entry]:
        for name in (names.SERVICES, names.NODE_PORTS):
            chain = self._nat.chains.get(name, Chain(name, ()))
            for rule in chain.rules:
                match rule.target:
                    case Jump(to) | Goto(to) if to.startswith(names.SERVICE_PREFIXES):
                        yield from _entry(rule, to)
                    case _:
                        pass

    def _services(self) -> Iterator[ServicePort]:
        grouped: dict[tuple[str, str], list[_Entry]] = {}
        refused: dict[tuple[str, str], list[tuple[Frontend, str]]] = {}
        for entry in self._entries:
            grouped.setdefault((entry.name, entry.protocol), []).append(entry)
        for name, protocol, frontend, refusal in self._find_refusals():
            refused.setdefault((name, protocol), []).append((frontend, refusal))
        for key in sorted({**grouped, **refused}):
            yield self._service(*key, grouped.get(key, []), refused.get(key, []))

    def _service(
        self,
        name: str,
        protocol: str,
        entries: list[_Entry],
        refusals: list[tuple[Frontend, str]],
    ) -> ServicePort:
        frontends = tuple(
            dict.fromkeys([e.frontend for e in entries] + [frontend for frontend, _ in refusals])
        )
        routes = tuple(
            self._route(frontend, protocol, source)
            for frontend in dict.fromkeys(e.frontend for e in entries)
            for source in Source
        )
        affinities = (self._affinity(e.chain) for e in entries)
        return ServicePort(
            name=names.service_name(name),
            protocol=protocol,
            frontends=frontends,
            routes=routes,
            affinity=next((seconds for seconds in affinities if seconds is not None), None),
            refusals=tuple(refusals),
        )

    def _route(self, frontend: Frontend, protocol: str, source: Source) -> Route:
        hooks = self._node_port_hooks if frontend.address is None else self._hooks
        tree = self._walk(frontend, protocol, source)
        masquerades: dict[Endpoint, set[Ternary]] = {}

        def endpoint(leaf: Leaf) -> Endpoint | Ternary:
            if not isinstance(leaf.outcome, Dnat):
                return Ternary.FALSE
            if leaf.packet.destination is None:
                return Ternary.UNKNOWN
            found = Endpoint(leaf.packet.destination, leaf.packet.destination_port)
            masquerades.setdefault(found, set()).add(hooks.masquerades(leaf.packet))
            return found

        found = shares(tree, endpoint)
        some_range = found.get(Ternary.UNKNOWN)
        unresolved = found.unresolved if some_range is None else some_range.upper
        return Route(
            frontend,
            source,
            tuple(
                Share(key, bounds, _agreed(masquerades[key]))
                for key, bounds in found.items()
                if isinstance(key, Endpoint)
            ),
            unresolved,
        )

    def tree(self, service: ServicePort, route: Route) -> Tree:
        """Return what the nat table makes of a new flow on `route`, from its hook on."""
        return self._walk(route.frontend, service.protocol, route.source)

    def _walk(self, frontend: Frontend, protocol: str, source: Source) -> Tree:
        hooks = self._node_port_hooks if frontend.address is None else self._hooks
        packet = Packet(
            protocol=protocol,
            source=self._sources.address(source),
            destination=self._some_address if frontend.address is None else frontend.address,
            destination_port=frontend.port,
            in_interface="" if source is Source.NODE else None,
            out_interface=None if source is Source.NODE else "",
        )
        return hooks.walk("OUTPUT" if source is Source.NODE else "PREROUTING", packet)

    def _affinity(self, name: str) -> int | None:
        """Return the seconds of session affinity that a chain of a Service asks for."""
        for rule in self._chain(name).rules:
            for match in rule.matches:
                if isinstance(match, MatchRecent) and match.action.value == "rcheck":
                    return match.seconds
            match rule.target:
                case Jump(to) | Goto(to) if to.startswith(names.SERVICE_PREFIXES):
                    found = self._affinity(to) if to != name else None
                    if found is not None:
                        return found
                case _:
                    pass
        return None

    def _chain(self, name: str) -> Chain:
        return self._nat.chains.get(name) or Chain(name, ())

    def _find_refusals(self) -> Iterator[tuple[str, str, Frontend, str]]:
        table = self._ruleset.tables.get("filter")
        if table is None:
            return
        for name in (names.SERVICES, names.EXTERNAL_SERVICES, names.NODE_PORTS):
            for rule in (table.chains.get(name) or Chain(name, ())).rules:
                if not isinstance(rule.target, Reject | Drop):
                    continue
                refusal = "reject" if isinstance(rule.target, Reject) else "drop"
                cluster_ip = name == names.SERVICES
                for entry in _entry(rule, "", ClusterIP=cluster_ip):
                    yield entry.name, entry.protocol, entry.frontend, refusal


def _agreed(answers: set[Ternary]) -> bool | None:
    match sorted(answers, key=lambda t: t.value):
        case [Ternary.TRUE]:
            return True
        case [Ternary.FALSE]:
            return False
        case _:
            return None


def _entry(rule: Rule, chain: str, *, ClusterIP: bool | None = None) -> Iterator[_Entry]:  # noqa: N803
    """Give the frontend that a rule names, if it names one."""
    address: Address | None = None
    protocol, port, comment, local = None, None, "", False
    for match in rule.matches:
        match match:
            case MatchDestination(network) if network.num_addresses == 1:
                address = network.network_address
            case MatchProtocol(text):
                protocol = text
            case MatchComment(text):
                comment = text
            case MatchTcp() | MatchUdp() | MatchSctp():
                port = _single(match.destination_port)
            case MatchAddrtype():
                local = True
            case _:
                pass
    if protocol is None or port is None:
        return
    name, kind = names.name_and_kind(comment)
    if address is None:
        frontend = Frontend(FrontendKind.NODE_PORT, None, port)
        # In KUBE-NODEPORTS the comment is the bare name.
        name = name or comment or None
    elif kind is not None:
        frontend = Frontend(FrontendKind(kind), address, port)
    else:
        assumed = FrontendKind.EXTERNAL_IP if ClusterIP is False else FrontendKind.CLUSTER_IP
        frontend = Frontend(assumed, address, port)
    if address is None and not local and chain == "":
        return
    yield _Entry(name or f"{frontend}", protocol, frontend, chain)


def _single(option: Option[Range] | None) -> int | None:
    match option:
        case Option(Range(first, last), negated=False) if first == last:
            return first
        case _:
            return None


class _Sources:
    """An address for each kind of source, as the rules tell such sources apart."""

    def __init__(
        self,
        nat: Table,
        cluster: Cluster,
        entries: Iterable[_Entry],
        own: list[Address],
        family: str,
    ) -> None:
        self._nat = nat
        version = 4 if family == "ip" else 6
        of_nodes = [
            network
            for node in cluster.nodes.values()
            for network in node.pod_networks
            if network.version == version
        ]
        written = self._written(entries)
        self._networks: list[Network] = [written] if written is not None else of_nodes
        taken = set(own) | set(cluster.placements) | {e.frontend.address for e in entries}
        taken |= self._endpoint_addresses()
        pod = next((a for n in self._networks for a in _from_the_end(n) if a not in taken), None)
        self._addresses: dict[Source, Address | None] = {
            Source.POD: pod,
            Source.NODE: own[0] if own else None,
            Source.EXTERNAL: _OUTSIDE[family],
        }

    def address(self, source: Source) -> Address | None:
        """Return an address of that kind; None when the rules and objects tell none."""
        return self._addresses[source]

    def _written(self, entries: Iterable[_Entry]) -> Network | None:
        """Return the cluster's CIDR as the masquerade rules name it: ``! -s CIDR``."""
        for chain in dict.fromkeys([names.SERVICES, *(e.chain for e in entries)]):
            for rule in (self._nat.chains.get(chain) or Chain(chain, ())).rules:
                if isinstance(rule.target, Jump) and rule.target.chain == names.MARK_MASQUERADE:
                    for match in rule.matches:
                        network = _all_but(match)
                        if network is not None:
                            return network
        return None

    def _endpoint_addresses(self) -> set[Address]:
        return {
            match.network.network_address
            for name, chain in self._nat.chains.items()
            if name.startswith(names.ENDPOINT_PREFIX)
            for rule in chain.rules
            for match in rule.matches
            if isinstance(match, MatchSource)
        }


def _all_but(match: Match) -> Network | None:
    match match:
        case MatchNot(MatchSource(network)):
            return network
        case _:
            return None


def _from_the_end(network: Network) -> Iterator[Address]:
    """Give addresses of a network, the last usable one first; pods start at the other end."""
    last = network.num_addresses - 2
    for offset in range(last, max(0, last - 100_000), -1):
        yield network[offset]
