"""Services read out of kube-proxy's rules in nftables mode.

Theory of operation
===================

What the rules in the nat hooks do with packets to an address and port is a frontend
(`nft_places`); what those in the filter hooks refuse is one without endpoints. For each frontend
and each kind of source the first packet of such a flow is made and walked through the hooks
(`flows`), so that what kube-proxy of some version means by its maps need not be known. The names of
chains, and the comments of elements, serve as names and as nothing else.

A ruleset of nft holds both families. Each is recognised by itself, since kube-proxy knows them as
two proxies; a Service of both has a ServicePort in each.

Source: kubernetes, pkg/proxy/nftables/proxier.go, ``syncProxyRules``; versions 1.30 to 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address

from analyzer.kubeproxy import names
from analyzer.kubeproxy.entries import sources_before
from analyzer.kubeproxy.flows import USUAL
from analyzer.kubeproxy.nft_asked import affinity, networks_asked, unmarked_network
from analyzer.kubeproxy.nft_chains import reached_by
from analyzer.kubeproxy.nft_frame import Frame
from analyzer.kubeproxy.nft_marks import bits_of_all
from analyzer.kubeproxy.nft_places import Place, places
from analyzer.kubeproxy.nft_plain import PlainPlace, PlainServices
from analyzer.kubeproxy.nft_rows import PlainChain, Row, chain_of, rows_of
from analyzer.kubeproxy.nft_walks import NftWalks
from analyzer.kubeproxy.source_parts import Known, SourceParts
from analyzer.kubeproxy.sources import PodNetworks, pod_networks, source_addresses
from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, ServicePort, Source, View
from analyzer.model import targets
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.nft import Chain, NftRuleset, Table
from analyzer.model.nft_expressions import AnonymousSet, Concat, Drop, Goto, Jump, MapLookup
from analyzer.model.nft_statements import Dnat, Reject
from analyzer.model.packet import UNKNOWN_PACKET, Address, Network
from analyzer.model.rules import Ruleset
from analyzer.model.value import value
from analyzer.parsers.formats import Advance
from analyzer.parsers.nft.survey import survey
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.nft_traverse import NftTraversal
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Leaf, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.kubeproxy.object_names import ObjectNames

_FAMILIES: Final = ("ip", "ip6")
#: Of kube-proxy's table: where it says which addresses are ClusterIPs.
_CLUSTER_IPS: Final = "cluster-ips"
#: What the names of chains begin with that flows from outside are sent to.
_EXTERNAL: Final = "external-"
#: Hooks that a new flow meets up to nat.
_ENTERING: Final = frozenset({"prerouting", "output"})


@value(kw_only=True)
class _Entrance:
    """One frontend of one ServicePort, and the chain that it leads to."""

    name: str
    protocol: str
    frontend: Frontend
    chain: str
    table: Table
    among: str | None = None
    plain: PlainChain | None = None


class NftRecogniser:
    """The Services of a ruleset of nft; as `iptables.Recogniser` in all else."""

    def __init__(
        self,
        ruleset: NftRuleset,
        cluster: Cluster,
        *,
        node: str | None = None,
        node_addresses: tuple[Address, ...] = (),
        plainly: bool = True,
        advance: Advance | None = None,
        object_names: ObjectNames | None = None,
        others: Sequence[Rules] = (),
    ) -> None:
        self._ruleset = ruleset
        self._node = node
        self._families = [
            _Family(
                family,
                (ruleset, *others),
                cluster,
                node=node,
                own=tuple(a for a in node_addresses if a.version == (4 if family == "ip" else 6)),
                object_names=object_names,
                advance=advance,
                plainly=plainly and not others,
            )
            for family in _FAMILIES
        ]

    def view(self) -> View:
        """Return all ServicePorts with their routes, those of IPv4 first."""
        services = tuple(each for family in self._families for each in family.services())
        diagnostics = [each for family in self._families for each in family.diagnostics()]
        mode = "nftables"
        if not any(family.entrances for family in self._families):
            mode, message = self._absent()
            if message:
                diagnostics.append(self._warning("no-kube-proxy-chains", message))
        return View(
            services=services,
            mode=mode,
            node=self._node,
            pod_source=self._families[0].pod_source or self._families[1].pod_source,
            diagnostics=(*self._ruleset.diagnostics, *self._survey(), *diagnostics),
        )

    def tree(self, service: ServicePort, route: Route) -> Tree:
        """Return what the nat hooks make of a new flow on `route`."""
        family = next(f for f in self._families if f.has(service))
        return family.tree(service, route)

    def _survey(self) -> Iterator[Diagnostic]:
        plain = [family.plain() for family in self._families]
        read = {chain for chains, _ in plain for chain in chains}
        others = {
            f"{table.family} {table.name}": [
                name for name in table.chains if (table.family, table.name, name) not in read
            ]
            for table in self._ruleset.tables.values()
        }
        return survey(self._ruleset, others, {each for _, maps in plain for each in maps})

    def _absent(self) -> tuple[str, str]:
        for (family, name), table in self._ruleset.tables.items():
            if names.SERVICES in table.chains:
                return "iptables", (
                    f"table {family} {name} holds rules of iptables-nft, of which nft leaves out "
                    "what is needed; run `iptables-save` on the node and give that instead"
                )
        if any(name == "kube-proxy" for _, name in self._ruleset.tables):
            return "nftables", ""
        return "none", (
            "no map or rule sends packets to an address and port to a chain: kube-proxy in "
            "nftables mode has not written these rules, or the dump leaves them out"
        )

    def _warning(self, code: str, message: str) -> Diagnostic:
        return Diagnostic(
            severity=Severity.WARNING,
            code=code,
            message=message,
            file=self._ruleset.file,
            partial=True,
        )


class _Family:
    """The Services of one family."""

    def __init__(
        self,
        family: str,
        rulesets: tuple[Rules, ...],
        cluster: Cluster,
        *,
        node: str | None,
        own: tuple[Address, ...],
        object_names: ObjectNames | None,
        advance: Advance | None,
        plainly: bool,
    ) -> None:
        self._plainly = plainly
        self._family = family
        self._rulesets = rulesets
        self._cluster = cluster
        self._node = node
        self._own = own
        self._object_names = object_names
        self._advance = advance
        ruleset = rulesets[0]
        assert isinstance(ruleset, NftRuleset)
        self._ruleset = ruleset
        self._tables = [
            table
            for table in ruleset.tables.values()
            if table.family in {family, "inet"} and "dormant" not in table.flags
        ]
        self._guessed = 0
        self._addresses: dict[tuple[Frontend, str, Source, Network | None], Address] = {}
        self._chains_of: dict[tuple[str, str], list[Chain]] = {}
        #: The map whose elements are read as rows, and the endpoints of the chains behind it.
        self._plain_map: str | None = None
        self._plain_maps: set[tuple[str, str, str]] = set()
        self._plain_addresses: set[str] = set()
        self._of: dict[int, ServicePort] = {}
        self._known_ips = {
            address
            for table in self._tables
            if _CLUSTER_IPS in table.sets
            for address in (e.key for e in table.sets[_CLUSTER_IPS].elements)
        }
        self._guards = self._read_guards()
        self.entrances = list(self._read_entrances())

    # --- what there is ---

    def _starts(self, table: Table, hooks: Iterable[str], kind: str) -> list[str]:
        return [
            c.name
            for c in table.chains.values()
            if c.hook is not None and c.hook in hooks and c.type == kind
        ]

    def _read_entrances(self) -> Iterator[_Entrance]:
        for table in self._tables:
            yield from self._read_table(table)

    def _read_table(self, table: Table) -> Iterator[_Entrance]:
        taken: dict[str, list[Row]] = {}

        def take(name: str) -> bool:
            # What a second map has for the same address only a walk tells.
            rows = rows_of(table.sets[name]) if name in table.sets else None
            if rows is None or not self._plainly or taken.keys() - {name} or self._plain_map:
                return False
            taken[name] = rows
            return True

        found = places(table, self._starts(table, ("prerouting", "output"), "nat"), take)
        others = list(found)
        for name, rows in taken.items():
            self._plain_map = name
            if all(chain in table.chains for *_, chain in rows):
                self._plain_maps.add((table.family, table.name, name))
            for address, protocol, port, chain in rows:
                yield self._of_row(ip_address(address), protocol, port, chain, table)
        for place in others:
            match place.verdict:
                case Jump(chain) | Goto(chain):
                    yield self._entrance(place, chain, table)
                case _:
                    pass

    def _of_row(
        self, address: Address, protocol: str, port: int, chain: str, table: Table
    ) -> _Entrance:
        place = Place(address=address, protocol=protocol, port=port)
        name, frontend = self._named(place, chain)
        plain = chain_of(table, chain)
        if plain is not None:
            self._plain_addresses.update(text.rpartition(":")[0] for text in plain.texts)
        return _Entrance(
            name=name,
            protocol=protocol,
            frontend=frontend,
            chain=chain,
            table=table,
            plain=plain,
        )

    def _entrance(self, place: Place, chain: str, table: Table) -> _Entrance:
        name, frontend = self._named(place, chain)
        return _Entrance(
            name=name,
            protocol=str(place.protocol),
            frontend=frontend,
            chain=chain,
            table=table,
            among=place.among,
        )

    def _named(self, place: Place, chain: str) -> tuple[str, Frontend]:
        name = place.comment or names.name_in_chain(chain)
        address = place.address
        kind: str | None = None
        if self._object_names is not None:
            told, kind = self._object_names.of("", address, place.port or 0, str(place.protocol))
            kind = kind if name in {None, told} else None
            name = name or told
        if address is None:
            frontend = Frontend(FrontendKind.NODE_PORT, None, place.port)
        else:
            frontend = Frontend(self._kind(place, chain, kind), address, place.port)
        return name or str(frontend), frontend

    def _kind(self, place: Place, chain: str, told: str | None) -> FrontendKind:
        if told is not None:
            return FrontendKind(told)
        if place.address in self._known_ips:
            return FrontendKind.CLUSTER_IP
        if self._known_ips or chain.startswith(_EXTERNAL):
            self._guessed += 1
            # Only a balancer's address has source ranges.
            guarded = (place.protocol, place.address, place.port) in self._guards
            return FrontendKind.LOAD_BALANCER_IP if guarded else FrontendKind.EXTERNAL_IP
        return FrontendKind.CLUSTER_IP

    def _read_guards(self) -> dict[tuple[str | None, Address | None, int | None], list[Place]]:
        """Return what rules in the filter hooks do, by what they do it to."""
        hooks = ("prerouting", "input", "forward", "output")
        found: dict[tuple[str | None, Address | None, int | None], list[Place]] = {}
        self._refused: list[tuple[Place, str]] = []
        for table in self._tables:
            walk = NftTraversal(table, self._family, Situation())
            answers: dict[object, str | None] = {}
            for place in places(table, self._starts(table, hooks, "filter")):
                if place.verdict not in answers:
                    answers[place.verdict] = _answer(place, walk)
                answer = answers[place.verdict]
                if answer is None:
                    key = place.protocol, place.address, place.port
                    found.setdefault(key, []).append(place)
                elif (place, answer) not in self._refused:
                    self._refused.append((place, answer))
        return found

    # --- where flows come from ---

    @cached_property
    def _written(self) -> Network | None:
        """The network of pods as the rules name it."""
        for table in self._tables:
            starts = self._starts(table, ("prerouting", "output"), "nat")
            found = unmarked_network(reached_by(table, starts, maps=False))
            if found is not None:
                return found
        for entrance in self.entrances:
            found = unmarked_network(reached_by(entrance.table, [entrance.chain]))
            if found is not None:
                return found
        return None

    @cached_property
    def _sources(self) -> Mapping[Source, Address | None]:
        return source_addresses(self._family, self._pods, self._own, self._is_taken)

    @cached_property
    def _pods(self) -> PodNetworks:
        version = 4 if self._family == "ip" else 6
        return pod_networks(version, self._written, self._cluster, self._node)

    @property
    def pod_source(self) -> Address | None:
        """The address that stands for a pod."""
        return self._sources[Source.POD]

    @cached_property
    def _taken(self) -> frozenset[Address]:
        frontends = [entrance.frontend.address for entrance in self.entrances]
        return frozenset(
            address
            for address in (*self._own, *self._cluster.placements, *frontends, *self._endpoints())
            if address is not None
        )

    def _is_taken(self, address: Address) -> bool:
        text = str(address) if self._family == "ip" else f"[{address}]"
        return text in self._plain_addresses or address in self._taken

    def _endpoints(self) -> Iterator[Address]:
        """Give the addresses that flows are sent to."""
        for entrance in self.entrances:
            if entrance.plain is not None:
                continue
            for chain in self._chains(entrance):
                for rule in chain.rules:
                    for statement in rule.statements:
                        if isinstance(statement, Dnat):
                            yield from _destinations(statement)

    def _chains(self, entrance: _Entrance) -> list[Chain]:
        """Return the chains of a Service that a frontend leads to."""
        key = entrance.table.name, entrance.chain
        found = self._chains_of.get(key)
        if found is None:
            found = self._chains_of[key] = list(reached_by(entrance.table, [entrance.chain]))
        return found

    @cached_property
    def _parts(self) -> SourceParts:
        return SourceParts(
            Known(
                addresses=self._sources,
                pods=self._pods,
                written=self._written,
                own=self._own,
                frontends=frozenset(entrance.frontend.address for entrance in self.entrances),
                is_taken=self._is_taken,
            )
        )

    @cached_property
    def _asked_before(self) -> frozenset[Network]:
        """The networks by which rules before a Service's chains tell sources apart."""
        found: set[Network] = set()
        for ruleset in self._rulesets:
            if isinstance(ruleset, Ruleset):
                found |= sources_before(ruleset) if ruleset.family == self._family else set()
                continue
            for table in ruleset.tables.values():
                if table.family in {self._family, "inet"}:
                    bases = [c.name for c in table.chains.values() if c.hook in _ENTERING]
                    found.update(networks_asked(reached_by(table, bases, maps=False), table))
        return frozenset(found)

    def _asked(self, entrance: _Entrance) -> frozenset[Network]:
        """Return the networks by which rules on the way of a frontend's flows part sources."""
        found = set(networks_asked(self._chains(entrance), entrance.table))
        frontend = entrance.frontend
        for place in self._guards.get((entrance.protocol, frontend.address, frontend.port), ()):
            match place.verdict:
                case Jump(chain) | Goto(chain):
                    for table in self._tables:
                        found.update(networks_asked(reached_by(table, [chain]), table))
                case _:
                    pass
        return frozenset(found | self._asked_before)

    # --- what becomes of flows ---

    @cached_property
    def _walks(self) -> NftWalks:
        bits = bits_of_all(self._rulesets, self._family)
        own = self._own, self._sources, bits, self._node_port_address
        return NftWalks(self._rulesets, self._family, *own)

    @property
    def _node_port_address(self) -> Address | None:
        """The address of the node that stands for those at which NodePorts answer."""
        for entrance in self.entrances:
            if entrance.among is not None:
                held = entrance.table.sets.get(entrance.among)
                keys = [element.key for element in held.elements] if held is not None else []
                listed = [key for key in keys if isinstance(key, IPv4Address | IPv6Address)]
                return next((key for key in listed if key in self._own), (*listed, None)[0])
        return None

    def services(self) -> Iterator[ServicePort]:
        """Give all ServicePorts with their routes."""
        grouped: dict[tuple[str, str], list[_Entrance]] = {}
        for entrance in self.entrances:
            grouped.setdefault((entrance.name, entrance.protocol), []).append(entrance)
        refused: dict[tuple[str, str], list[tuple[Frontend, str]]] = {}
        known = {(e.protocol, e.frontend.address, e.frontend.port): e for e in self.entrances}
        for place, answer in self._refused:
            entrance_of = known.get((str(place.protocol), place.address, place.port))
            if entrance_of is not None:
                name, frontend = entrance_of.name, entrance_of.frontend
            else:
                name, frontend = self._named(place, "")
            answers = refused.setdefault((name, str(place.protocol)), [])
            if all(frontend != each for each, _ in answers):
                answers.append((frontend, answer))
        for key in sorted({**grouped, **refused}):
            service = self._service(*key, grouped.get(key, []), refused.get(key, []))
            self._of[id(service)] = service
            yield service

    def plain(self) -> tuple[set[tuple[str, str, str]], set[tuple[str, str, str]]]:
        """Return the chains and maps of which all is understood as rows, by family, table, name."""
        found = {
            (e.table.family, e.table.name, name)
            for e in self.entrances
            if e.plain is not None
            for name in (e.chain, *e.plain.ends)
        }
        return found, self._plain_maps

    def has(self, service: ServicePort) -> bool:
        """Tell whether a ServicePort is one of this family's."""
        return id(service) in self._of

    def tree(self, service: ServicePort, route: Route) -> Tree:
        """Return what the nat hooks make of a new flow on `route`."""
        way = route.frontend, service.protocol, route.source
        return self._walks.tree(*way, self._addresses.get((*way, route.network), USUAL))

    def _service(
        self,
        name: str,
        protocol: str,
        entrances: list[_Entrance],
        refusals: list[tuple[Frontend, str]],
    ) -> ServicePort:
        if len(entrances) == 1 and not refusals:
            routes = self._plain_routes(entrances[0])
            if routes is not None:
                return ServicePort(
                    name=names.service_name(name),
                    protocol=protocol,
                    frontends=(entrances[0].frontend,),
                    routes=routes,
                )
        # Two rules for one frontend: the first takes every flow.
        first = {e.frontend: e for e in reversed(entrances)}
        frontends = dict.fromkeys([*(e.frontend for e in entrances), *(f for f, _ in refusals)])
        ways = [first[frontend] for frontend in frontends if frontend in first]
        return ServicePort(
            name=names.service_name(name),
            protocol=protocol,
            frontends=tuple(frontends),
            routes=tuple(route for entrance in ways for route in self._routes(entrance)),
            affinity=next(
                (found for e in entrances if (found := affinity(self._chains(e), e.table))), None
            ),
            refusals=tuple(refusals),
            unfilled=tuple(e.frontend for e in entrances if self._is_empty(e)),
        )

    def _plain_routes(self, entrance: _Entrance) -> Sequence[Route] | None:
        """Return the routes of a frontend that are read off its rows, if they can be."""
        chain, frontend = entrance.plain, entrance.frontend
        if chain is None or frontend.address is None or self._plain_services is None:
            return None
        place = PlainPlace(frontend=frontend, protocol=entrance.protocol, chain=chain)
        return self._plain_services.routes(place)

    @cached_property
    def _plain_services(self) -> PlainServices | None:
        if not self._plainly:
            return None
        situation = Situation(affinity_lists=names.AFFINITY_LISTS)
        way = self._family, situation, self._plain_map
        asked = self._asked_before
        return PlainServices(
            self._walks,
            Frame(self._tables, _ENTERING, *way),
            Frame(self._tables, frozenset({"postrouting"}), *way),
            self._own,
            lambda source: self._parts.of(source, asked),
            asked,
        )

    def _is_empty(self, entrance: _Entrance) -> bool:
        chain = entrance.table.chains.get(entrance.chain)
        return chain is not None and not len(chain.rules)

    def _routes(self, entrance: _Entrance) -> Iterator[Route]:
        """Give the routes of one frontend from all kinds of source."""
        if self._advance is not None:
            self._advance(sum(len(c.rules) for c in self._chains(entrance)), self._ruleset.rules)
        way = entrance.frontend, entrance.protocol
        asked = self._asked(entrance)
        found: list[Route] = []
        for source in Source:
            if source is Source.HAIRPIN:
                continue
            for network, address in self._parts.of(source, asked):
                if address is not None:
                    self._addresses[*way, source, network] = address
                found.append(self._walks.route(*way, source, address, network))
        yield from found
        endpoints = dict.fromkeys(share.endpoint for route in found for share in route.shares)
        yield self._walks.hairpin(*way, endpoints, asked)

    # --- what there is to say ---

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Give what is to be said of the Services of this family."""
        for entrance in (e for e in self.entrances if self._is_empty(e)):
            yield Diagnostic(
                severity=Severity.WARNING,
                code="empty-chain",
                message=f"the chain of {entrance.name} for {entrance.frontend} has no rule: was "
                "the dump taken in the middle of a sync? Whether there are endpoints it does not "
                "say",
                file=self._ruleset.file,
                partial=True,
            )
        if self._guessed:
            yield Diagnostic(
                severity=Severity.INFO,
                code="kind-guessed",
                message=f"of {self._guessed} frontends the rules do not tell whether they are "
                "external IPs or those of balancers; --objects would tell",
                file=self._ruleset.file,
            )


def _answer(place: Place, walk: NftTraversal) -> str | None:
    """Return how packets are refused for certain; None: they are not, or not all."""
    match place.verdict:
        case Drop():
            return "drop"
        case Reject():
            return "reject"
        case Jump(chain) | Goto(chain):
            match walk.tree(chain, UNKNOWN_PACKET):
                case Leaf(targets.Reject()):
                    return "reject"
                case Leaf(targets.Drop()):
                    return "drop"
                case _:
                    return None
        case _:
            return None


def _destinations(given: Dnat) -> Iterator[Address]:
    match given.address:
        case IPv4Address() | IPv6Address():
            yield given.address
        case MapLookup(_, AnonymousSet(elements)):
            for element in elements:
                match element.value:
                    case IPv4Address() | IPv6Address():
                        yield element.value
                    case Concat((IPv4Address() | IPv6Address() as address, *_)):
                        yield address
                    case _:
                        pass
        case _:
            pass
