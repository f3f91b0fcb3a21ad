"""The Services of one IP version in an nft ruleset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address

from analyzer.kubeproxy import names
from analyzer.kubeproxy.dispatch.nft import (
    INGRESS,
    NAT_HOOKS,
    NftDispatch,
    NftDispatches,
    at_devices,
    base_chains,
)
from analyzer.kubeproxy.dispatch.nft_chains import destinations, no_map, reached_by
from analyzer.kubeproxy.dispatch.nft_clients import affinity, network_of_pods, unmarked_network
from analyzer.kubeproxy.dispatch.nft_frame import SurroundingRules
from analyzer.kubeproxy.fastpath.classes import Classes
from analyzer.kubeproxy.fastpath.nft import PlainFrontend, PlainServices
from analyzer.kubeproxy.fastpath.nft_alike import NftClosures
from analyzer.kubeproxy.grouping import first_of, grouped, plain_port, service_port
from analyzer.kubeproxy.matched.sets import not_told
from analyzer.kubeproxy.routes.astray import as_refused
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.routes.packets import USUAL
from analyzer.kubeproxy.routes.past_refusal import has_other_tables, past_refusal
from analyzer.kubeproxy.routes.pod_places import pod_places
from analyzer.kubeproxy.routes.source_parts import SourceParts
from analyzer.kubeproxy.routes.source_routes import SourceRoutes, Way
from analyzer.kubeproxy.routes.sources import SourceFacts, source_facts
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Source
from analyzer.model.addresses import VERSIONS, Address, Network, address_from_text, host_text
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic, Severity, bounded_work, partial_warning
from analyzer.model.nft.ruleset import Chain, NftRuleset
from analyzer.model.nft.statements import Dnat
from analyzer.model.routing import Routes
from analyzer.parsers.formats import Advance
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import PodPlaces
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.dispatch.object_names import ObjectNames
    from analyzer.kubeproxy.grouping import NameAndProtocol, Refusals
    from analyzer.kubeproxy.rows.plain_shares import PlainRoutes
    from analyzer.model.intervals import Intervals


class NftFamily:
    """The Services of one family: ``ip`` or ``ip6``.

    `rulesets` are those of the node; the Services are those of the first; `own` are the node's
    addresses of the family, if known. The other arguments are as for the recogniser.
    """

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
        assumed: Mapping[str, str],
        routes: Callable[[], Routes],
    ) -> None:
        self._node_routes = routes
        self._plainly = plainly
        self._assumed = assumed
        self._family = family
        self._rulesets = rulesets
        self._cluster = cluster
        self._node = node
        self._own = own
        self._advance = advance
        ruleset = rulesets[0]
        assert isinstance(ruleset, NftRuleset)
        self._ruleset = ruleset
        self._read = NftDispatches(ruleset, family, object_names, plainly=plainly)
        self._tables = self._read.tables
        #: All tables whose chains flows may traverse.
        self._met = [*self._tables, *at_devices(ruleset)]
        self.dispatches = self._read.dispatches
        self.of_services = [each for each in self.dispatches if each.is_of_service]
        self._addresses: dict[tuple[Frontend, str, Source, Network | None], Address] = {}
        self._of: dict[int, ServicePort] = {}

    # --- sources of flows ---

    @cached_property
    def _written(self) -> Network | None:
        """The network of pods as the rules write it."""
        for table in self._tables:
            starts = base_chains(table, NAT_HOOKS, "nat")
            found = unmarked_network(reached_by(table, starts, no_map))
            if found is not None:
                return found
        for dispatch in self.of_services:
            found = unmarked_network(reached_by(dispatch.table, [dispatch.chain]))
            if found is not None:
                return found
        return network_of_pods(chain for table in self._tables for chain in table.chains.values())

    @cached_property
    def _known(self) -> SourceFacts:
        return source_facts(
            self._family,
            self._written,
            self._own,
            lambda: (dispatch.frontend for dispatch in self.dispatches),
            self._is_taken,
            self._cluster,
            self._node,
            self._endpoint_addresses,
        )

    @property
    def pod_source(self) -> Address | None:
        """The address that represents a pod."""
        return self._known.addresses[Source.POD]

    @cached_property
    def _taken(self) -> frozenset[Address]:
        return frozenset([*self._own, *self._cluster.placements, *self._endpoints()])

    @cached_property
    def _taken_by_frontends(self) -> frozenset[int]:
        # Numbers: the hash of an address takes five times as long.
        frontends = [dispatch.frontend.address for dispatch in self.dispatches]
        return frozenset([int(address) for address in frontends if address is not None])

    def _is_taken(self, address: Address) -> bool:
        return (
            host_text(address) in self._read.plain_addresses
            or int(address) in self._taken_by_frontends
            or address in self._taken
        )

    def _endpoint_addresses(self) -> Iterator[Address]:
        """Yield the addresses of endpoints, whatever reads their chains."""
        hosts = (each.strip("[]") for each in self._read.plain_addresses)
        yield from filter(None, map(address_from_text, hosts))
        yield from self._endpoints()

    def _endpoints(self) -> Iterator[Address]:
        """Yield the addresses that flows are sent to, except for those of plain chains."""
        for dispatch in self.dispatches:
            if dispatch.plain is not None:
                continue
            for chain in self._chains(dispatch):
                for rule in chain.rules:
                    for statement in rule.statements:
                        if isinstance(statement, Dnat):
                            yield from destinations(statement)

    def _chains(self, dispatch: NftDispatch) -> list[Chain]:
        """Return the chains of a Service that a frontend leads to."""
        return self._read.chains(dispatch.table, dispatch.chain)

    @cached_property
    def _parts(self) -> SourceParts:
        return SourceParts(self._known)

    # --- what happens to flows ---

    @cached_property
    def _walks(self) -> FlowWalks:
        own = self._own, self._known.addresses, self.node_port_address, self._assumed
        walks = self._rulesets, self._family, *own, self.places
        return FlowWalks(*walks, bridges=self.bridges)

    def bridges(self) -> Intervals | None:
        """Return the addresses of which bridges of the node may have some; None: not known."""
        return self._parts.bridges

    def places(self) -> PodPlaces:
        """Return where addresses are, as far as known."""
        version, routes = VERSIONS[self._family], self._node_routes()
        return pod_places(version, self._cluster, self._node, self._own, routes)

    @property
    def node_port_address(self) -> Address | None:
        """The address of the node that represents those at which NodePorts answer."""
        for held in self._read.node_port_sets():
            keys = [element.key for element in held.elements]
            listed = [key for key in keys if isinstance(key, IPv4Address | IPv6Address)]
            return next((key for key in listed if key in self._own), (*listed, None)[0])
        return None

    def services(self) -> Iterator[ServicePort]:
        """Yield all ServicePorts with their routes."""
        refused: dict[NameAndProtocol, Refusals] = {}
        known: dict[tuple[str, Address | None, int | None], NftDispatch] = {}
        if self._read.refused:  # of ten thousand it takes a while
            for each in self.of_services:
                known[each.protocol, each.frontend.address, each.frontend.port] = each
        for place, answer in self._read.refused:
            known_dispatch = known.get((str(place.protocol), place.address, place.port))
            if known_dispatch is not None:
                name, frontend = known_dispatch.name, known_dispatch.frontend
            else:
                name, frontend = self._read.named(place, "")
            answers = refused.setdefault((name, str(place.protocol)), [])
            if all(frontend != other for other, _ in answers):
                answers.append((frontend, answer))
        for group in grouped(self.dispatches, refused):
            service = self._service(*group)
            self._of[id(service)] = service
            yield service

    def source_address(
        self, frontend: Frontend, protocol: str, source: Source, network: Network | None
    ) -> Address | None:
        """Return the address that represents the sources of a route; None: not known."""
        found = self._addresses.get((frontend, protocol, source, network))
        return self._known.addresses[source] if found is None else found

    def plain(self) -> tuple[set[tuple[str, str, str]], set[tuple[str, str, str]]]:
        """Return the chains and maps that were fully read as rows, by family, table and name."""
        found = {
            (e.table.family, e.table.name, name)
            for e in self.dispatches
            if e.plain is not None
            for name in (e.chain, *e.plain.ends)
        }
        return found, self._read.plain_maps

    def settle(self) -> None:
        """Evaluate what plain rows rest on, whose routes are only made when they are used."""
        plain = self.__dict__.get("_plain_services")
        if isinstance(plain, PlainServices):
            plain.settle()

    @property
    def used(self) -> set[str]:
        """Names of the assumptions that decided a match so far."""
        return self._walks.used if "_walks" in vars(self) else set()

    @property
    def trees_used(self) -> set[str]:
        """Names of the assumptions that the trees returned so far rest on."""
        return self._walks.trees_used if "_walks" in vars(self) else set()

    def covers(self, source: Source, address: Address) -> bool:
        """Return whether the routes of a kind of source are of `address` too, as far as known."""
        return self._parts.covers(source, address)

    def is_outside(self, address: Address) -> bool:
        """Return whether an address is certainly neither a pod's nor the node's."""
        return self._parts.is_outside(address)

    def has(self, service: ServicePort) -> bool:
        """Return whether a ServicePort is one of this family's."""
        return id(service) in self._of

    def tree(self, service: ServicePort, route: Route) -> Tree:
        """Return what happens to a new flow on `route`, from its hook on."""
        way = route.frontend, service.protocol, route.source
        return self._walks.whole(*way, self._addresses.get((*way, route.network), USUAL))

    def _service(
        self, key: NameAndProtocol, dispatches: list[NftDispatch], refusals: Refusals
    ) -> ServicePort:
        if len(dispatches) == 1 and not refusals:
            plain = self._plain_routes(dispatches[0])
            if plain is not None:
                return plain_port(dispatches[0], plain)
        every = [route for each in first_of(dispatches) for route in self._routes(each)]
        routes = as_refused(every, refusals)
        if refusals and self._has_others:
            routes = (*routes, *self._past(key[1], dispatches, refusals))
        timeouts = (affinity(self._chains(e), e.table) for e in dispatches)
        return service_port(
            key,
            dispatches,
            routes,
            refusals,
            affinity=next(filter(None, timeouts), None),
            unfilled=filter(self._is_empty, dispatches),
        )

    def _plain_routes(self, dispatch: NftDispatch) -> PlainRoutes | None:
        """Return the routes of a frontend that follow from its rows; None: they do not."""
        chain, frontend = dispatch.plain, dispatch.frontend
        if chain is None or frontend.address is None or self._plain_services is None:
            return None
        place = PlainFrontend(frontend=frontend, protocol=dispatch.protocol, chain=chain)
        return self._plain_services.routes(place)

    @cached_property
    def _plain_services(self) -> PlainServices | None:
        if not self._plainly:
            return None
        situation = Situation(affinity_lists=names.AFFINITY_LISTS)
        before = SurroundingRules(
            self._met, NAT_HOOKS | INGRESS, self._family, situation, self._read.plain_map
        )
        plain = sum(dispatch.plain is not None for dispatch in self.dispatches)
        of_all = self._read.plain_addresses, plain
        return PlainServices(self._walks, before, self._own, self._parts, self._addresses, of_all)

    @cached_property
    def _every_route(self) -> SourceRoutes:
        return SourceRoutes(self._walks, self._parts, self._own)

    @cached_property
    def _classes(self) -> Classes | None:
        """The routes of frontends that are alike; None: each is evaluated by itself."""
        if not self._plainly or self._rulesets[1:]:
            return None
        closures = NftClosures(self._met, self._own, self._known.pods, self._walks.tells)
        return Classes(closures, self._is_taken, own=self._own)

    def _is_empty(self, dispatch: NftDispatch) -> bool:
        if dispatch.plain is not None:
            return False
        chain = dispatch.table.chains.get(dispatch.chain)
        return chain is not None and not len(chain.rules)

    def _routes(self, dispatch: NftDispatch) -> Iterator[Route]:
        """Yield the routes of one frontend from all kinds of source."""
        if self._advance is not None:
            self._advance(sum(len(c.rules) for c in self._chains(dispatch)), self._ruleset.rules)
        way = dispatch.frontend, dispatch.protocol
        yield from self._noted(self._ways(*way), *way)

    def _ways(self, frontend: Frontend, protocol: str) -> tuple[Way, ...]:
        way = frontend, protocol
        if self._classes is None:
            return tuple(self._every_route.ways(*way))
        return self._classes.ways(*way, lambda: tuple(self._every_route.ways(*way)))

    def _noted(self, ways: Iterable[Way], to: Frontend, protocol: str) -> Iterator[Route]:
        """Yield the routes, and keep the addresses that represent their sources."""
        for route, address in ways:
            if address is not None:
                self._addresses[to, protocol, route.source, route.network] = address
            yield self._walks.hairpins.of(route) if route.source is Source.HAIRPIN else route

    @cached_property
    def _has_others(self) -> bool:
        return bool(self._rulesets[1:]) or has_other_tables(self._tables)

    def _past(
        self, protocol: str, dispatches: Iterable[NftDispatch], refusals: Refusals
    ) -> Iterator[Route]:
        """Yield routes of frontends without endpoints whose flows others' rules take first."""
        led = {dispatch.frontend for dispatch in dispatches}
        for to, how in dict(refusals).items():
            if to not in led and to.port is not None:
                ways = past_refusal(how, self._ways(to, protocol), spares_node=False)
                yield from self._noted(ways, to, protocol)

    # --- diagnostics ---

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield diagnostics about the Services of this family."""
        if "_walks" in self.__dict__:
            yield from bounded_work(self._walks.exceeded, self._ruleset.file)
            yield from not_told(self._walks.missed_sets, self._ruleset.file)
        for dispatch in (e for e in self.dispatches if self._is_empty(e)):
            yield partial_warning(
                "empty-chain",
                f"the chain of {dispatch.name} for {dispatch.frontend} is empty: was the dump "
                "taken in the middle of a sync? Whether there are endpoints is not known",
                self._ruleset.file,
            )
        guessed = len(self._read.guessed)
        if guessed:
            yield Diagnostic(
                severity=Severity.INFO,
                code="kind-guessed",
                message=(
                    f"the rules do not show whether {guessed} frontends are external IPs or load "
                    "balancer IPs; pass --objects"
                ),
                file=self._ruleset.file,
            )
