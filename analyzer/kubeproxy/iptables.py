"""Services read out of kube-proxy's iptables rules.

Theory of operation
===================

The rules of KUBE-SERVICES and KUBE-NODEPORTS that send a flow on to a chain of a Service are its
frontends. For each frontend and each kind of source we make the first packet of such a flow and
walk it through the nat hooks (`walks`). What kube-proxy of some version means by its rules need
not be known. Where rows have the plainest shapes the same result is read off them (`plain`),
which is what makes a large dump a matter of a quarter of a second.

One class, and so past 400 lines: both ways to a route rest on all that is known of the dump.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, reduce

from analyzer.kubeproxy import names
from analyzer.kubeproxy.assumed import rests_on
from analyzer.kubeproxy.holes import without_holes
from analyzer.kubeproxy.iptables_notes import Notes
from analyzer.kubeproxy.masquerade import Masquerade
from analyzer.kubeproxy.plain import PlainTable
from analyzer.kubeproxy.plain_shares import (
    PlainRoutes,
    PlainService,
    PlainShares,
    told_otherwise,
)
from analyzer.kubeproxy.shapes import host
from analyzer.kubeproxy.sources import pod_networks, source_addresses
from analyzer.kubeproxy.view import (
    Frontend,
    FrontendKind,
    Route,
    ServicePort,
    Source,
    View,
)
from analyzer.model.addresses import VERSIONS, Address, Network, network_from_text
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.probability import NEVER
from analyzer.model.rules import Rule, Ruleset, Table
from analyzer.model.value import value
from analyzer.parsers.formats import Advance
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.survey import survey

TYPE_CHECKING = False
if TYPE_CHECKING:  # what a plain dump does not need is not loaded
    from typing import Final, TypeAlias

    from analyzer.kubeproxy.classes import Classes
    from analyzer.kubeproxy.entries import OddRule
    from analyzer.kubeproxy.host_ports import HostPort
    from analyzer.kubeproxy.object_names import ObjectNames
    from analyzer.kubeproxy.plain_grounds import PlainGrounds
    from analyzer.kubeproxy.plain_shares import JudgedPart
    from analyzer.kubeproxy.source_parts import SourceParts
    from analyzer.kubeproxy.source_routes import SourceRoutes, Way
    from analyzer.kubeproxy.walks import NatWalks
    from analyzer.model.region import Intervals
    from analyzer.semantics.base_chains import Rules
    from analyzer.semantics.devices import PodPlaces
    from analyzer.semantics.tree import Tree

    #: A frontend, the protocol, a source, and a network of it.
    _Way: TypeAlias = tuple[Frontend, str, Source, Network | None]

#: Destinations that rules behind nat tell apart; plain rows are not read where these are more.
_MOST_DESTINATIONS: Final = 256
_BASE_CHAINS: Final = ("PREROUTING", "OUTPUT", "POSTROUTING")
#: Quicker than to call the enumeration, which a dump does for each of its Services.
_KINDS: Final = {kind.value: kind for kind in FrontendKind}


@value
class _Entrance:
    """One frontend of one ServicePort, and the plain rows behind it, if it has just those."""

    name: str
    protocol: str
    frontend: Frontend
    chain: str
    plain: PlainService | None = None


def _has_holes(ruleset: Ruleset) -> bool:
    """Tell whether what kube-proxy always writes is not all there."""
    nat = ruleset.tables.get("nat")
    if nat is None or names.SERVICES not in nat.chains:
        return False
    marks = nat.chains.get(names.MARK_MASQUERADE)
    whole = marks is not None and getattr(marks.rules, "complete", True)
    return not whole or any(hook not in nat.chains for hook in _BASE_CHAINS)


def _place(protocol: str, frontend: Frontend) -> tuple[str, Address | None, int | None]:
    return protocol, frontend.address, frontend.port


class Recogniser:
    """The Services of a dump, as flows that begin or arrive at its node meet them.

    `node_addresses` are the node's own; none: they are not known. `plainly` says whether to
    read plain rows as text; the answer is the same without, only later. `advance` is told how
    many rules were read since it was told last, and how many there are. `object_names` names
    Services whose rules carry no comment; `others` are the node's other rulesets. `assumed` is what
    is assumed beyond the rules; None: what is by default.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        cluster: Cluster,
        *,
        node: str | None = None,
        node_addresses: tuple[Address, ...] = (),
        plainly: bool = True,
        advance: Advance | None = None,
        object_names: ObjectNames | None = None,
        others: Sequence[Rules] = (),
        assumed: Mapping[str, str] | None = None,
    ) -> None:
        self._assumed = assumed
        self._object_names = object_names
        self._others = others
        plainly = plainly and not others
        self._by_class = plainly
        self._mended: list[Diagnostic] = []
        self._whole = ruleset
        self._advance = advance
        if _has_holes(ruleset):
            from analyzer.kubeproxy.fragments import mended

            ruleset, self._mended = mended(ruleset)
        lost = without_holes(ruleset, self._whole)
        self._mended += lost.diagnostics
        self._unled = lost.unled
        self._ruleset = ruleset = lost.ruleset
        self._cluster = cluster
        self._node = node
        version = VERSIONS[ruleset.family]
        self._own = tuple(a for a in node_addresses if a.version == version)
        self._nat = ruleset.tables.get("nat") or Table(ruleset.family, "nat", {})
        self._plain = PlainTable(
            self._nat if plainly else Table(ruleset.family, "nat", {}),
            None if advance is None else lambda rules: advance(rules, ruleset.rules),
        )
        self._odd: list[OddRule] = []
        #: What tells which plain flows are masqueraded, by the network that a Service spares.
        self._judges_of: dict[Source, dict[str | None, list[JudgedPart]]] = {s: {} for s in Source}
        #: By protocol, the destinations whose flows come to KUBE-SERVICES untouched.
        self._directly: dict[str, Intervals] = {}
        self._unnamed = 0
        #: By frontend, protocol, source and network: the address that stands for its sources.
        self._addresses: dict[_Way, Address] = {}
        self._entrances = list(self._find_entrances())
        self._is_taken = self._taken()
        self._written = self._unmarked_network()
        self._pods = pod_networks(version, self._written, cluster, node)
        self._sources = source_addresses(ruleset.family, self._pods, self._own, self._is_taken)
        self._masquerade = Masquerade(
            self._plain, lambda: self._walks, self._own, lambda: self._is_quiet
        )

    @cached_property
    def _walks(self) -> NatWalks:
        from analyzer.kubeproxy.walks import NatWalks
        from analyzer.semantics.assumed import CLUSTER_IP, DEFAULTS

        rulesets = (self._ruleset, *self._others)
        assumed = DEFAULTS if self._assumed is None else self._assumed
        if self._unnamed:  # what is taken for a ClusterIP may be another address
            assumed = {name: of for name, of in assumed.items() if name != CLUSTER_IP}
        given = self._own, self._sources, assumed
        return NatWalks(rulesets, self._ruleset, *given, self.places)

    def places(self, _: int | None = None) -> PodPlaces:
        """Return where addresses live, as far as it is known.

        The dump is of one IP version, which is not looked at.
        """
        from analyzer.kubeproxy.pod_places import pod_places

        version = VERSIONS[self._ruleset.family]
        return pod_places(version, self._cluster, self._node, self._own)

    @cached_property
    def _parts(self) -> SourceParts:
        from analyzer.kubeproxy.source_parts import Known, SourceParts

        known = Known(
            addresses=self._sources,
            pods=self._pods,
            written=self._written,
            own=self._own,
            frontends=frozenset(entrance.frontend.address for entrance in self._entrances),
            is_taken=self._is_taken,
            cluster=self._cluster,
        )
        return SourceParts(known)

    @cached_property
    def _classes(self) -> Classes | None:
        """The answers of frontends that are alike; None: each is walked for itself."""
        if not self._by_class or self._walks.are_told_by_ports_of_sets:
            return None
        from analyzer.kubeproxy.alike import Closures
        from analyzer.kubeproxy.classes import Classes

        given = self._ruleset, self._own, self._pods, self._walks.tells
        return Classes(Closures(*given), self._is_taken)

    @cached_property
    def _routes_of(self) -> SourceRoutes:
        from analyzer.kubeproxy.source_routes import SourceRoutes

        return SourceRoutes(self._walks, self._parts, self._own)

    @cached_property
    def _asked_behind(self) -> dict[Source, frozenset[Network]] | None:
        """What rules behind nat ask of the sources of plain flows; None: too much to tell."""
        if self._is_quiet and self._plain.masquerades_plainly():
            return dict.fromkeys(Source, frozenset())
        asked = {s: self._walks.asked_behind(s, _MOST_DESTINATIONS) for s in Source}
        known = {source: each for source, each in asked.items() if each is not None}
        return known if len(known) == len(asked) else None

    @cached_property
    def _spares_plain(self) -> bool:
        """Whether no plain flow is lost behind its DNAT, certainly or perhaps."""
        return self._masquerade.is_plain() or self._walks.spares_plain(_MOST_DESTINATIONS)

    @cached_property
    def _is_quiet(self) -> bool:
        """Whether rules besides nat's let all plain flows pass as they are."""
        if self._plain.mark is None:
            return False
        from analyzer.kubeproxy.quiet import Quiet

        mark, endpoints = int(self._plain.mark, 16), self._plain.endpoints
        return Quiet(self._ruleset, mark, endpoints.has_address, self._has_port).holds()

    def _has_port(self, port: int) -> bool:
        """Tell whether an endpoint of a plain Service has a port."""
        return str(port) in self._ports

    @cached_property
    def _ports(self) -> frozenset[str]:
        services = self._plain.services.values()
        return frozenset(t.rpartition(":")[2] for each in services for t in each.drawn.texts)

    def view(self) -> View:
        """Return all ServicePorts with their routes."""
        notes = Notes(self._ruleset, self._whole)
        mode, diagnostics = notes.mode(self._nat, shown=bool(self._entrances))
        unseen = diagnostics[0].message if diagnostics else ""
        services = tuple(self._services()) if mode == "iptables" else ()
        diagnostics += [notes.unfilled(s) for s in services if s.unfilled]
        raw = self._ruleset.tables.get("raw")
        if raw is not None and raw.rules:
            from analyzer.kubeproxy import untracked

            places = untracked.untracked(self._ruleset)
            diagnostics += untracked.node_local_dns(services, places, self._ruleset.file)
        diagnostics += notes.odd_rules(self._odd)
        if self._whole.legacy_beside and not self._others and not unseen:
            diagnostics.append(notes.half())
        if "_walks" in vars(self):
            diagnostics += rests_on(self._walks.used, self._walks.assumed, self._ruleset.file)
        if self._unnamed:
            diagnostics.append(notes.nameless(self._unnamed))
        found = [*survey(self._whole, {"nat": self._plain.unread()}), *self._mended]
        if any(each.code == "no-mark-chain" for each in found):  # which says what is taken for it
            missing = f"chain {names.MARK_MASQUERADE} of table nat is not in the dump"
            found = [each for each in found if not each.message.startswith(missing)]
        if any(each.code == "lost-rows" for each in found):  # then an empty chain is no chain
            found = [each for each in found if each.code != "empty-chain"]
        if "_walks" in self.__dict__:  # which are not made where nothing has to be walked
            from analyzer.kubeproxy.asked_sets import not_told
            from analyzer.kubeproxy.exceeded import bounded

            diagnostics += bounded(self._walks.exceeded, self._ruleset.file)
            diagnostics += not_told(self._walks.missed_sets, self._ruleset.file)
        return View(
            services=services,
            mode=mode,
            node=self._node,
            pod_source=self._sources[Source.POD],
            cut=() if self._has_all_of_nat() else (VERSIONS[self._ruleset.family],),
            unseen=unseen,
            left_out=tuple(dict.fromkeys(odd.name for odd in self._odd if not odd.lacks_port)),
            unled=self._unled,
            diagnostics=(*self._ruleset.diagnostics, *found, *diagnostics),
        )

    def _has_all_of_nat(self) -> bool:
        nat = self._whole.tables.get("nat")
        if nat is not None:
            return nat.complete
        return all(table.complete for table in self._whole.tables.values())

    def assumed(self) -> list[Diagnostic]:
        """Return what the trees so far rest on besides the dump."""
        return rests_on(self._walks.trees_used, self._walks.assumed, self._ruleset.file)

    def is_outside(self, address: Address) -> bool:
        """Tell whether an address is certainly neither a pod's nor the node's."""
        return self._parts.is_outside(address)

    def tree(self, service: ServicePort, route: Route) -> Tree:
        """Return what becomes of a new flow on `route`, from its hook on."""
        way = route.frontend, service.protocol, route.source
        return self._walks.whole(*way, self._addresses.get((*way, route.network), "usual"))

    def node_port_address(self, _: int) -> Address | None:
        """Return the address of the node at which flows come to a NodePort, if it is known."""
        return self._own[0] if self._own else None

    def source_address(
        self,
        _: int,
        frontend: Frontend,
        protocol: str,
        source: Source,
        network: Network | None = None,
    ) -> Address | None:
        """Return what stands for the sources of a route; None: where they are is not known.

        The dump is of one IP version, which is not looked at.
        """
        found = self._addresses.get((frontend, protocol, source, network))
        return self._sources[source] if found is None else found

    def plain_grounds(self) -> PlainGrounds | None:
        """Return what the routes of plain Services rest on; None: not on plain rows alone."""
        grounds = (
            self._by_class
            and bool(self._plain.services)
            and not self._unnamed
            and not self._mended
            and self._enters_plainly
            and self._plain.masquerades_plainly()
            and self._is_quiet
        )
        return self._plain_grounds() if grounds else None

    def _plain_grounds(self) -> PlainGrounds | None:
        from analyzer.kubeproxy.plain_grounds import PlainGrounds, usual_ways

        texts = {each.unmarked for each in self._plain.services.values()}
        mark = self._plain.mark
        if len(texts) > 1 or mark is None:
            return None
        (unmarked,) = texts
        spared = network_from_text(unmarked) if unmarked else None
        asked = frozenset() if spared is None else frozenset({spared})
        sources: list[Source] = [s for s in Source if s is not Source.HAIRPIN]
        parts = {source: self._parts.of(source, asked) for source in sources}
        return PlainGrounds(
            ruleset=self._ruleset,
            mark=int(mark, 16),
            unmarked=unmarked,
            written=self._written,
            pods=self._pods,
            ways=tuple(usual_ways(parts, self._masquerade, unmarked)),
            own=self._own,
            stand_ins=frozenset(a for each in parts.values() for _, a in each if a is not None),
            services=tuple(self._plain.services.items()),
            endpoints=self._plain.endpoints,
            has_port=self._has_port,
        )

    # --- what there is ---

    def _find_entrances(self) -> Iterator[_Entrance]:
        for service in self._plain.services.values():
            name, kind = names.name_and_kind(service.comment)
            address = host(service.address)
            if name is None and self._object_names is not None:
                way = service.chain, address, service.port, service.protocol
                name, kind = self._object_names.of(*way)
            frontend = Frontend(_KINDS[kind or "ClusterIP"], address, service.port)
            self._unnamed += name is None
            yield _Entrance(
                name or str(frontend), service.protocol, frontend, service.chain, service
            )
        for chain in (names.SERVICES, names.NODE_PORTS):
            rules = list(self._other_rules(chain))
            if not rules:
                continue
            from analyzer.kubeproxy.entries import Entry, entries

            for each in entries(chain, rules, self._object_names):
                if isinstance(each, Entry):
                    self._unnamed += each.name == str(each.frontend)
                    yield _Entrance(each.name, each.protocol, each.frontend, each.chain)
                else:
                    self._odd.append(each)

        for host_port in self._host_ports():
            yield _Entrance(host_port.name, host_port.protocol, host_port.frontend, host_port.chain)

    def _host_ports(self) -> Iterator[HostPort]:
        if any(name.startswith(names.HOST_PORTS) for name in self._nat.chains):
            from analyzer.kubeproxy.host_ports import host_ports

            yield from host_ports(self._nat)

    def _other_rules(self, name: str) -> Iterator[Rule]:
        """Give the rules of a chain that may be frontends and are not plain."""
        chain = self._nat.chains.get(name)
        if chain is None:
            return
        if name != names.SERVICES or not isinstance(chain.rules, RuleRows):
            yield from chain.rules
        elif len(self._plain.read_rows) < len(chain.rules):
            for at, (number, line) in enumerate(chain.rules.rows):
                if at not in self._plain.read_rows:
                    yield chain.rules.understand(number, line)

    def _unmarked_network(self) -> Network | None:
        """Return the network of pods as the rules name it: they spare it from masquerade."""
        for service in self._plain.services.values():
            written = network_from_text(service.unmarked) if service.unmarked else None
            if written is not None:
                return written
        others = [e for e in self._entrances if e.plain is None]
        others = [e for e in others if e.frontend.kind is not FrontendKind.HOST_PORT]
        if others:
            from analyzer.kubeproxy.entries import network_of_pods, unmarked_network

            chains = [e.chain for e in others]
            written = unmarked_network(self._nat, [names.SERVICES, *chains])
            return network_of_pods(self._nat) if written is None else written
        return None

    def _taken(self) -> Callable[[Address], bool]:
        placements = self._cluster.placements
        taken = {*self._own}
        others = [e.frontend.address for e in self._entrances if e.plain is None]
        taken.update(address for address in others if address is not None)
        if not self._plain.has_all_endpoints:
            from analyzer.kubeproxy.entries import endpoint_sources

            taken |= endpoint_sources(self._nat, self._plain.endpoints.__contains__)
        services = {service.address for service in self._plain.services.values()}
        return lambda address: (
            address in taken
            or address in placements
            or str(address) in services
            or self._plain.endpoints.has_address(address)
        )

    # --- what becomes of flows ---

    def _services(self) -> Iterator[ServicePort]:
        grouped: dict[tuple[str, str], list[_Entrance]] = {}
        refused: dict[tuple[str, str], list[tuple[Frontend, str]]] = {}
        for entrance in self._entrances:
            grouped.setdefault((entrance.name, entrance.protocol), []).append(entrance)
        refusing = [each for each in self._rulesets_of_family() if _may_refuse(each)]
        if refusing:
            from analyzer.kubeproxy.entries import refusals

            known = {_place(e.protocol, e.frontend): e.frontend for e in self._entrances}
            every = (each for rules in refusing for each in refusals(rules, self._object_names))
            for entry, refusal in every:
                key = entry.name, entry.protocol
                # A refusal's comment does not tell the kind; that of the rule in nat does.
                frontend = known.get(_place(entry.protocol, entry.frontend), entry.frontend)
                refused.setdefault(key, []).append((frontend, refusal))
        for key in sorted({**grouped, **refused}):
            yield self._service(*key, grouped.get(key, []), refused.get(key, []))

    def _rulesets_of_family(self) -> Iterator[Ruleset]:
        """Give the rulesets of iptables of the dump's IP version, its own first."""
        yield self._ruleset
        for each in self._others:
            if isinstance(each, Ruleset) and each.family == self._ruleset.family:
                yield each

    def _service(
        self,
        name: str,
        protocol: str,
        entrances: list[_Entrance],
        refusals: list[tuple[Frontend, str]],
    ) -> ServicePort:
        if len(entrances) == 1 and not refusals and entrances[0].plain is not None:
            return ServicePort(
                name=names.service_name(name),
                protocol=protocol,
                frontends=(entrances[0].frontend,),
                routes=self._routes(entrances),
            )
        # Two rules for one frontend: the first takes every flow.
        first = {e.frontend: e for e in reversed(entrances)}
        frontends = dict.fromkeys([*(e.frontend for e in entrances), *(f for f, _ in refusals)])
        ways = [first[frontend] for frontend in frontends if frontend in first]
        return ServicePort(
            name=names.service_name(name),
            protocol=protocol,
            frontends=tuple(frontends),
            routes=self._refused(self._routes(ways), refusals),
            affinity=self._affinity(entrances),
            refusals=tuple(refusals),
            unfilled=tuple([e.frontend for e in entrances if self._is_empty(e)]),
        )

    def _refused(
        self, routes: Sequence[Route], refusals: list[tuple[Frontend, str]]
    ) -> Sequence[Route]:
        if not refusals or isinstance(routes, PlainRoutes):
            return routes
        from analyzer.kubeproxy.astray import as_refused

        return as_refused(routes, refusals)

    def _is_empty(self, entrance: _Entrance) -> bool:
        if entrance.plain is not None:
            return False
        chain = self._nat.chains.get(entrance.chain)
        return chain is not None and not len(chain.rules)

    def _affinity(self, entrances: list[_Entrance]) -> int | None:
        for entrance in entrances:
            if entrance.plain is None:
                from analyzer.kubeproxy.entries import affinity

                found = affinity(self._nat, entrance.chain)
                if found is not None:
                    return found
        return None

    def _routes(self, entrances: list[_Entrance]) -> Sequence[Route]:
        """Return the routes of a ServicePort: at once, or when they are asked for if plain."""
        if all(map(self._is_direct, entrances)):
            return PlainRoutes(
                lambda source: self._made(entrances, source), lambda: self._spares_plain
            )
        return tuple([route for e in entrances for route in self._all(e)])

    def _all(self, entrance: _Entrance) -> Iterator[Route]:
        """Give the routes of one frontend from all kinds of source."""
        if self._is_direct(entrance):
            for source in Source:
                yield from self._made([entrance], source)
            return
        if self._advance is not None:
            self._advance(self._size(entrance.chain), self._ruleset.rules)
        way = entrance.frontend, entrance.protocol
        if self._classes is None:
            ways = self._walked(entrance)
        else:
            ways = self._classes.ways(*way, lambda: self._walked(entrance))
        for route, address in ways:
            if address is not None:
                self._addresses[self._way(entrance, route)] = address
            yield route

    def _way(self, entrance: _Entrance, route: Route) -> _Way:
        return entrance.frontend, entrance.protocol, route.source, route.network

    def _made(self, entrances: list[_Entrance], source: Source) -> Iterator[Route]:
        judges = self._judges_of[source]
        for entrance in entrances:
            plain = entrance.plain
            assert plain is not None
            if plain.unmarked not in judges:
                judges[plain.unmarked] = list(self._judges(source, plain.unmarked))
            for network, address, judge in told_otherwise(plain, judges[plain.unmarked]):
                if network is not None and address is not None:
                    way = entrance.frontend, entrance.protocol, source, network
                    self._addresses[way] = address
                shares = PlainShares(plain, judge)
                yield Route(entrance.frontend, source, shares, NEVER, network)

    def _judges(self, source: Source, unmarked: str | None) -> Iterator[JudgedPart]:
        """Give each part of a source, its address, and what tells which flows are masqueraded."""
        if source is Source.HAIRPIN:
            yield None, None, self._masquerade.judge_hairpin()
            return
        spared = network_from_text(unmarked) if unmarked else None
        asked = (self._asked_behind or {}).get(source, frozenset())
        asked = asked if spared is None else asked | {spared}
        for network, address in self._parts.of(source, asked):
            yield network, address, self._masquerade.judge(source, address, unmarked)

    def _walked(self, entrance: _Entrance) -> tuple[Way, ...]:
        """Return the routes of one frontend from all kinds of source, as walks find them."""
        if entrance.frontend.port is None:
            way = entrance.chain, entrance.frontend, entrance.protocol
            return tuple([(self._walks.behind(*way, source), None) for source in Source])
        return tuple(self._routes_of.ways(entrance.frontend, entrance.protocol))

    def _size(self, name: str) -> int:
        """Return about how many rules a walk from a Service's chain passes, KUBE-SEP's included."""
        chain = self._nat.chains.get(name)
        return 0 if chain is None else len(chain.rules)

    def _is_direct(self, entrance: _Entrance) -> bool:
        """Tell whether a frontend is plain, and its flows come to KUBE-SERVICES untouched."""
        if entrance.plain is None or not self._are_plain:
            return False
        address = entrance.frontend.address
        direct = self._direct(entrance.protocol)
        if direct is None or address is None:
            return direct is None
        return any(first <= int(address) <= last for first, last in direct)

    @cached_property
    def _are_plain(self) -> bool:
        # A flow that is marked must come back from where it is, or its Service is not plain.
        plainly = bool(self._plain.services) and (
            self._plain.mark is not None or self._walks.mark_of_masquerade is not None
        )
        return plainly and self._asked_behind is not None

    def _direct(self, protocol: str) -> Intervals | None:
        """Return the destinations that flows of all kinds of source come to; None: all."""
        if self._enters_plainly:
            return None
        found = self._directly.get(protocol)
        if found is None:
            from analyzer.model.region import common_of

            # A hairpin flow is one of a pod, of the node itself, or of somebody outside.
            kinds = [source for source in Source if source is not Source.HAIRPIN]
            regions = [self._parts.region(source) for source in kinds]
            first, *others = [
                self._walks.untouched(source, protocol, region)
                for source, region in zip(kinds, regions, strict=True)
            ]
            found = self._directly[protocol] = reduce(common_of, others, first)
        return found

    @cached_property
    def _enters_plainly(self) -> bool:
        """Whether nothing stands before KUBE-SERVICES."""
        return all(
            self._plain.enters_plainly(hook)
            and all(
                _lets_pass(table, hook)
                for name in ("raw", "mangle")
                if (table := self._ruleset.tables.get(name)) is not None
            )
            for hook in ("PREROUTING", "OUTPUT")
        )


def _may_refuse(ruleset: Ruleset) -> bool:
    table = ruleset.tables.get("filter")
    if table is None:
        return False
    chains = (names.SERVICES, names.EXTERNAL_SERVICES, names.NODE_PORTS)
    return any(len(table.chains[name].rules) for name in chains if name in table.chains)


def _lets_pass(table: Table, hook: str) -> bool:
    """Tell whether a table does nothing to any packet at a hook."""
    chain = table.chains.get(hook)
    if chain is None:
        return table.complete
    return not len(chain.rules) and chain.policy == "ACCEPT"
