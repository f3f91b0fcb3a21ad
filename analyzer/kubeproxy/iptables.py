"""Recognises Services in kube-proxy's iptables rules.

Theory of operation
===================

The rules of KUBE-SERVICES and KUBE-NODEPORTS that send a flow on to a chain of a Service are its
frontends. For each frontend and each kind of source we make the first packet of such a flow and
evaluate it at the nat hooks (`routes.walks`). What kube-proxy of some version means by its rules
need not be known. If rows have the plainest shapes, the same result follows from their text
(`fastpath.iptables`), so that a large dump takes only a quarter of a second.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from analyzer.kubeproxy import names
from analyzer.kubeproxy.assumed import rests_on
from analyzer.kubeproxy.dispatch.iptables import IptablesDispatch, IptablesDispatches
from analyzer.kubeproxy.dispatch.node_port_address import answering_first
from analyzer.kubeproxy.fastpath.iptables import PlainWays
from analyzer.kubeproxy.grouping import first_of, grouped, plain_port, service_port
from analyzer.kubeproxy.iptables_notes import Notes
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.routes.sources import source_facts
from analyzer.kubeproxy.rows.holes import has_holes, without_holes
from analyzer.kubeproxy.rows.plain import PlainTable
from analyzer.kubeproxy.rows.plain_shares import PlainRoutes, settle
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, ServiceRoutes, Source, View
from analyzer.model.addresses import VERSIONS, Address, Network
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.model.routing import Routes
from analyzer.parsers.formats import Advance
from analyzer.parsers.survey import survey

TYPE_CHECKING = False
if TYPE_CHECKING:  # only loaded for dumps that need it
    from typing import Final

    from analyzer.kubeproxy.dispatch.object_names import ObjectNames
    from analyzer.kubeproxy.fastpath.classes import Classes
    from analyzer.kubeproxy.fastpath.grounds import PlainGrounds
    from analyzer.kubeproxy.grouping import NameAndProtocol, Refusals
    from analyzer.kubeproxy.routes.source_parts import SourceParts
    from analyzer.kubeproxy.routes.source_routes import SourceRoutes, Way
    from analyzer.kubeproxy.routes.walks import NatWalks
    from analyzer.model.intervals import Intervals
    from analyzer.semantics.base_chains import Rules
    from analyzer.semantics.devices import PodPlaces
    from analyzer.semantics.tree import Tree

#: Most rules of Services' chains for which each frontend is evaluated.
_FEW: Final = 32


class Recogniser:
    """The Services of a dump, for flows that begin or arrive at its node.

    `node_addresses` are the node's own; empty: not known. `plainly`: whether plain rows are read as
    text; the results are the same without, only later. `advance` is called with the number of rules
    that were read since the last call, and the number of all. `object_names` names Services whose
    rules have no comment; `others` are the node's other rulesets. `assumed` are the assumptions
    beyond the rules; None: the default ones. `routes` returns those of the node, if known.
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
        routes: Callable[[], Routes] = Routes,
    ) -> None:
        self._assumed = assumed
        self._node_routes = routes
        self._object_names = object_names
        self._others = others
        plainly = plainly and not others
        self._by_class = plainly
        self._mended: list[Diagnostic] = []
        self._whole = ruleset
        self._advance = advance
        if has_holes(ruleset):
            from analyzer.kubeproxy.rows.fragments import mended

            ruleset, self._mended = mended(ruleset)
        lost = without_holes(ruleset, self._whole, others)
        self._mended += lost.diagnostics
        self._unled = lost.unled
        self._ruleset = ruleset = lost.ruleset
        self._cluster = cluster
        self._node = node
        version = VERSIONS[ruleset.family]
        self._nat = ruleset.tables.get("nat") or Table(ruleset.family, "nat", {})
        own = tuple(a for a in node_addresses if a.version == version)
        self._own = answering_first(self._nat, own)
        self._plain = PlainTable(
            self._nat if plainly else Table(ruleset.family, "nat", {}),
            None if advance is None else lambda rules: advance(rules, ruleset.rules),
        )
        self._dispatches = IptablesDispatches(
            self._nat, self._plain, object_names, cluster, self._own
        )
        self._is_taken = self._dispatches.taken()
        self._known = source_facts(
            ruleset.family,
            self._dispatches.written,
            self._own,
            lambda: (dispatch.frontend for dispatch in self._dispatches.found),
            self._is_taken,
            cluster,
            node,
            self._dispatches.endpoint_addresses,
        )
        self._plain_ways = PlainWays(
            ruleset, self._plain, self._own, lambda: self._walks, lambda: self._parts
        )
        #: The address that represents the sources of a route, if it is not the usual one.
        self._addresses = self._plain_ways.addresses
        #: The routes of dispatches, by identity, that were found before their Service was made.
        self._ways: dict[int, tuple[Way, ...]] = {}
        #: Whether rules of other programs may come before those that refuse flows.
        self._has_others: bool | None = None

    @cached_property
    def _walks(self) -> NatWalks:
        from analyzer.kubeproxy.routes.walks import NatWalks
        from analyzer.semantics.assumed import CLUSTER_IP, DEFAULTS

        rulesets = (self._ruleset, *self._others)
        assumed = DEFAULTS if self._assumed is None else self._assumed
        if self._dispatches.unnamed:  # what is taken for a ClusterIP may be another address
            assumed = {name: of for name, of in assumed.items() if name != CLUSTER_IP}
        given = self._own, self._known.addresses, assumed
        known = self.places, self._plain.within, lambda: self._dispatches.cluster_ips
        return NatWalks(rulesets, self._ruleset, *given, *known, self.bridges)

    def bridges(self, _: int | None = None) -> Intervals | None:
        """Return the addresses of which bridges of the node may have some; None: not known."""
        return self._parts.bridges

    def places(self, _: int | None = None) -> PodPlaces:
        """Return where addresses are, as far as known; the dump is of one IP version."""
        from analyzer.kubeproxy.routes.pod_places import pod_places

        version = VERSIONS[self._ruleset.family]
        return pod_places(version, self._cluster, self._node, self._own, self._node_routes())

    @cached_property
    def _parts(self) -> SourceParts:
        from analyzer.kubeproxy.routes.source_parts import SourceParts

        return SourceParts(self._known)

    @cached_property
    def _classes(self) -> Classes | None:
        """The routes of frontends that are alike; None: each is evaluated by itself."""
        if not self._by_class or self._are_few or self._walks.are_told_by_ports_of_sets:
            return None
        from analyzer.kubeproxy.fastpath.alike import IptablesClosures
        from analyzer.kubeproxy.fastpath.classes import Classes
        from analyzer.kubeproxy.fastpath.families import Families

        closures = IptablesClosures(self._ruleset, self._own, self._known.pods, self._walks.tells)
        families = Families(closures)
        given = closures, self._is_taken, families
        return Classes(*given, lambda: self._walks.of_sets, self._own)

    @cached_property
    def _are_few(self) -> bool:
        """Whether evaluating each frontend takes less time than finding out which are alike."""
        walked = (e for e in self._dispatches.found if not self._plain_ways.is_direct(e))
        return sum(self._size(each.chain) for each in walked) <= _FEW

    @cached_property
    def _routes_of(self) -> SourceRoutes:
        from analyzer.kubeproxy.routes.source_routes import SourceRoutes

        return SourceRoutes(self._walks, self._parts, self._own)

    def view(self) -> View:
        """Return all ServicePorts with their routes."""
        notes = Notes(self._ruleset, self._whole)
        mode, diagnostics = notes.mode(self._nat, shown=bool(self._dispatches.found))
        unseen = diagnostics[0].message if diagnostics else ""
        services = tuple(self._services()) if mode is ProxyMode.IPTABLES else ()
        if "_walks" in vars(self):
            # What rules after nat match on, and so what has to be assumed, is known only then.
            settle(services)
        diagnostics += [notes.unfilled(s) for s in services if s.unfilled]
        diagnostics += notes.exempted(services)
        diagnostics += notes.odd_rules(self._dispatches.odd)
        if self._whole.legacy_beside and not self._others and not unseen:
            diagnostics.append(notes.half())
        if "_walks" in vars(self):
            diagnostics += rests_on(self._walks.used, self._walks.assumed, self._ruleset.file)
        if self._dispatches.unnamed:
            diagnostics.append(notes.nameless(self._dispatches.unnamed))
        found = [
            *survey(self._whole, {"nat": self._plain.unread()}, names.NEVER_EMPTY),
            *self._mended,
        ]
        if any(each.code == "no-mark-chain" for each in found):  # it says what is assumed
            missing = f"chain {names.MARK_MASQUERADE} of table nat is not in the dump"
            found = [each for each in found if not each.message.startswith(missing)]
        if any(each.code == "lost-rows" for each in found):  # an empty chain is then a lost one
            found = [each for each in found if each.code != "empty-chain"]
        if "_walks" in self.__dict__:  # they do not exist if plain rows decide all
            from analyzer.kubeproxy.matched.sets import not_told
            from analyzer.model.diagnostics import bounded_work

            diagnostics += bounded_work(self._walks.exceeded, self._ruleset.file)
            missed = self._walks.missed_sets
            # Not if they decide nothing.
            if missed and not all(each.is_certain for of in services for each in of.routes):
                diagnostics += not_told(missed, self._ruleset.file)
        cut = () if notes.has_all_of_nat() else (VERSIONS[self._ruleset.family],)
        untold = dict(notes.untold(self._others)) if services and not cut else {}
        return View(
            services=services,
            mode=mode,
            node=self._node,
            pod_sources=tuple(filter(None, [self._known.addresses[Source.POD]])),
            cut=cut,
            untold=tuple(untold),
            unseen=unseen,
            left_out=self._dispatches.left_out,
            unled=self._unled,
            diagnostics=(*self._ruleset.diagnostics, *found, *diagnostics, *untold.values()),
        )

    def assumed(self) -> list[Diagnostic]:
        """Return the assumptions that the trees so far rest on besides the dump."""
        return rests_on(self._walks.trees_used, self._walks.assumed, self._ruleset.file)

    def covers(self, source: Source, address: Address) -> bool:
        """Return whether the routes of a kind of source are of `address` too, as far as known."""
        return self._parts.covers(source, address)

    def is_outside(self, address: Address) -> bool:
        """Return whether an address is certainly neither a pod's nor the node's."""
        return self._parts.is_outside(address)

    def tree(self, service: ServicePort, route: Route) -> Tree:
        """Return what happens to a new flow on `route`, from its hook on."""
        way = route.frontend, service.protocol, route.source
        address = self._addresses.get((*way, route.network))
        return self._walks.whole(*way) if address is None else self._walks.whole(*way, address)

    def node_port_address(self, _: int) -> Address | None:
        """Return the address of the node to which flows to a NodePort go, if it is known."""
        return self._own[0] if self._own else None

    def source_address(
        self,
        _: int,
        frontend: Frontend,
        protocol: str,
        source: Source,
        network: Network | None = None,
    ) -> Address | None:
        """Return the address that represents the sources of a route; None: not known.

        The first argument is ignored: the dump is of one IP version.
        """
        found = self._addresses.get((frontend, protocol, source, network))
        return self._known.addresses[source] if found is None else found

    def plain_grounds(self) -> PlainGrounds | None:
        """Return what the routes of plain Services rest on; None: not on plain rows alone."""
        if not self._by_class or self._dispatches.unnamed or self._mended:
            return None
        return self._plain_ways.grounds(self._dispatches.written, self._known.pods)

    # --- ServicePorts ---

    def _services(self) -> Iterator[ServicePort]:
        refused = self._dispatches.refused(self._rulesets_of_family())
        groups = [*grouped(self._dispatches.found, refused)]
        self._find_ways([dispatches for _, dispatches, _ in groups])
        for group in groups:
            yield self._service(*group)

    def _rulesets_of_family(self) -> Iterator[Ruleset]:
        """Yield the rulesets of iptables of the dump's IP version, its own first."""
        yield self._ruleset
        for each in self._others:
            if isinstance(each, Ruleset) and each.family == self._ruleset.family:
                yield each

    def _service(
        self, key: NameAndProtocol, dispatches: list[IptablesDispatch], refusals: Refusals
    ) -> ServicePort:
        if len(dispatches) == 1 and not refusals and dispatches[0].plain is not None:
            return plain_port(dispatches[0], self._routes(dispatches))
        routes = self._refused(self._routes(first_of(dispatches)), refusals)
        if refusals and (past := [*self._past(key, dispatches, refusals)]):
            routes = (*routes, *past)
        return service_port(
            key,
            dispatches,
            routes,
            refusals,
            affinity=self._dispatches.affinity(dispatches),
            unfilled=filter(self._dispatches.is_empty, dispatches),
        )

    def _refused(self, routes: ServiceRoutes, refusals: Refusals) -> ServiceRoutes:
        if not refusals or isinstance(routes, PlainRoutes):
            return routes
        from analyzer.kubeproxy.routes.astray import as_refused

        return as_refused(routes, refusals)

    def _past(
        self, key: NameAndProtocol, dispatches: list[IptablesDispatch], refusals: Refusals
    ) -> Iterator[Route]:
        """Yield routes of frontends without endpoints whose flows others' rules take first."""
        from analyzer.kubeproxy.routes.past_refusal import has_others, past_refusal

        if self._has_others is None:
            self._has_others = has_others(self._rulesets_of_family())
        led = {dispatch.frontend for dispatch in dispatches}
        for to, how in dict(refusals).items() if self._has_others else ():
            if to not in led and to.port is not None:
                ways = self._classed(to, key[1], lambda to=to: self._to(to, key[1]))  # type: ignore[misc]  # a default binds it
                yield from self._noted(past_refusal(how, ways, spares_node=True), to, key[1])

    def _routes(self, dispatches: list[IptablesDispatch]) -> ServiceRoutes:
        """Return the routes of a ServicePort: made at once, or, if plain, when they are used."""
        if all(map(self._plain_ways.is_direct, dispatches)):
            return self._plain_ways.routes(dispatches)
        return tuple([route for e in dispatches for route in self._all(e)])

    def _all(self, dispatch: IptablesDispatch) -> Iterator[Route]:
        """Yield the routes of one frontend from all kinds of source."""
        if self._plain_ways.is_direct(dispatch):
            yield from (r for s in Source for r in self._plain_ways.made([dispatch], s))
            return
        known = id(dispatch) in self._ways
        ways = self._ways[id(dispatch)] if known else self._found(dispatch)
        yield from self._noted(ways, dispatch.frontend, dispatch.protocol)

    def _noted(self, ways: Iterable[Way], to: Frontend, protocol: str) -> Iterator[Route]:
        """Yield the routes, and keep the addresses that represent their sources."""
        for route, address in ways:
            if address is not None:
                self._addresses[to, protocol, route.source, route.network] = address
            yield self._walks.hairpins.of(route) if route.source is Source.HAIRPIN else route

    def _find_ways(self, services: Iterable[list[IptablesDispatch]]) -> None:
        """Find the routes of what is not plain, of the Services with the fewest rules first.

        Of alike frontends the first is walked, and a walk of many endpoints takes long.
        """
        others = [each for each in services if any(e.plain is None for e in each)]
        if not others or self._classes is None:
            return
        for each in sorted(others, key=lambda of: max(self._size(e.chain) for e in of)):
            self._ways |= {id(e): self._found(e) for e in each if e.plain is None}

    def _found(self, dispatch: IptablesDispatch) -> tuple[Way, ...]:
        """Return the routes of one frontend that is not plain."""
        if self._advance is not None:
            self._advance(self._size(dispatch.chain), self._ruleset.rules)
        to, protocol = dispatch.frontend, dispatch.protocol
        return self._classed(to, protocol, lambda: self._walked(dispatch))

    def _classed(
        self, frontend: Frontend, protocol: str, walked: Callable[[], tuple[Way, ...]]
    ) -> tuple[Way, ...]:
        """Return the routes of a frontend: those of one that is alike, if any was walked."""
        if self._classes is None:
            return walked()
        return self._classes.ways(frontend, protocol, walked)

    def _to(self, frontend: Frontend, protocol: str) -> tuple[Way, ...]:
        return tuple(self._routes_of.ways(frontend, protocol))

    def _walked(self, dispatch: IptablesDispatch) -> tuple[Way, ...]:
        """Return the routes of one frontend from all kinds of source, as traversals find them."""
        if dispatch.frontend.port is None:
            way = dispatch.chain, dispatch.frontend, dispatch.protocol
            return tuple([(self._walks.behind(*way, source), None) for source in Source])
        return self._to(dispatch.frontend, dispatch.protocol)

    def _size(self, name: str) -> int:
        """Return about how many rules a flow traverses from a Service's chain on."""
        return len(self._nat.chains[name].rules) if name in self._nat.chains else 0
