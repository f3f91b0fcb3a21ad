"""Routes read from plain rows: which frontends have them, and how their flows end.

A frontend whose rows all have the plainest shapes has the same draws for flows from everywhere, if
these reach KUBE-SERVICES unchanged. What happens to them after DNAT follows from the mark
(`masquerade`), or from a few traversals for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import cached_property

from analyzer.kubeproxy.dispatch.iptables import IptablesDispatch
from analyzer.kubeproxy.fastpath.masquerade import MANY, PlainMasquerade
from analyzer.kubeproxy.routes.pod_networks import PodNetworks
from analyzer.kubeproxy.rows.plain import PlainTable
from analyzer.kubeproxy.rows.plain_shares import (
    PlainRoutes,
    PlainService,
    PlainShares,
    Unmarked,
    differing_parts,
    network_of,
    result_key,
)
from analyzer.kubeproxy.source_part import ALL_SOURCES
from analyzer.kubeproxy.view import Frontend, Route, Source
from analyzer.model.addresses import VERSIONS, Address, Network
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.model.probability import NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:  # only loaded for dumps that need it
    from typing import Final, TypeAlias

    from analyzer.kubeproxy.fastpath.grounds import PlainGrounds
    from analyzer.kubeproxy.routes.packets import First
    from analyzer.kubeproxy.routes.source_parts import SourceParts
    from analyzer.kubeproxy.routes.walks import NatWalks
    from analyzer.kubeproxy.rows.plain_shares import (
        AfterBySource,
        MasqueradeAndLossOf,
        PartAfterDnat,
    )
    from analyzer.model.intervals import Intervals

    #: The network that a Service's rule does not mark, and what is known of flows before DNAT.
    _Asked: TypeAlias = tuple[Unmarked, First | None]
    #: A frontend, the protocol, a source, and a network of it.
    RouteKey: TypeAlias = tuple[Frontend, str, Source, Network | None]

#: Most destinations that rules after nat may distinguish; with more, plain rows are not used.
_MOST_DESTINATIONS: Final = 256


class PlainWays:
    """The routes of plain frontends of one dump; `own` are the node's addresses, if known.

    `walks` and `parts` are only called if the rows alone do not decide.

    Attributes:
        addresses: the address that represents the sources of a route, if it is not the usual one.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        plain: PlainTable,
        own: tuple[Address, ...],
        walks: Callable[[], NatWalks],
        parts: Callable[[], SourceParts],
    ) -> None:
        self._ruleset = ruleset
        self._plain = plain
        self._own = own
        self._walks = walks
        self._parts = parts
        self.addresses: dict[RouteKey, Address] = {}
        #: Which plain flows are masqueraded, by the network that a Service's rule does not mark.
        self._after_dnat_of: dict[Source, dict[_Asked, list[PartAfterDnat]]] = {
            s: {} for s in Source
        }
        self._after_by_source: dict[_Asked, AfterBySource] = {}
        #: By protocol, the destinations whose flows reach KUBE-SERVICES unchanged; None: of any.
        self._directly: dict[str | None, Intervals] = {}
        self._masquerade = PlainMasquerade(plain, walks, own, lambda: self._is_quiet)

    @cached_property
    def _asked_behind(self) -> dict[Source, set[Intervals]] | None:
        """The sources that rules after nat match on, of plain flows; None: too many."""
        if self._is_quiet and self._plain.masquerades_plainly():
            return {source: set() for source in Source}
        asked = {s: self._walks().asked_behind(s, _MOST_DESTINATIONS) for s in Source}
        known = {source: each for source, each in asked.items() if each is not None}
        return known if len(known) == len(asked) else None

    @cached_property
    def spares_all(self) -> bool:
        """Whether no plain flow is lost after its DNAT, certainly or possibly."""
        if self._masquerade.is_plain:
            return True
        # For few endpoints, evaluating each is faster than distinguishing destinations.
        most = _MOST_DESTINATIONS if len(self._plain.endpoints) >= MANY else 0
        return self._walks().spares_plain(most)

    @cached_property
    def _is_quiet(self) -> bool:
        """Whether rules outside of nat let all plain flows pass unchanged."""
        if self._plain.mark is None:
            return False
        from analyzer.kubeproxy.fastpath.quiet import Quiet

        mark, endpoints = int(self._plain.mark, 16), self._plain.endpoints
        return Quiet(self._ruleset, mark, endpoints.has_address, self._has_port).holds()

    def _has_port(self, port: int) -> bool:
        """Return whether an endpoint of a plain Service has a port."""
        return str(port) in self._ports

    @cached_property
    def _ports(self) -> frozenset[str]:
        services = self._plain.services.values()
        return frozenset(t.rpartition(":")[2] for each in services for t in each.drawn.texts)

    def is_direct(self, dispatch: IptablesDispatch) -> bool:
        """Return whether a frontend is plain, and its flows reach KUBE-SERVICES unchanged."""
        if dispatch.plain is None or not self._are_plain:
            return False
        address = dispatch.frontend.address
        direct = self._direct(dispatch.protocol)
        if direct is None or address is None:
            return direct is None
        return any(first <= int(address) <= last for first, last in direct)

    @cached_property
    def _are_plain(self) -> bool:
        # The rule of a Service must set a known mark, or the Service is not plain.
        plainly = bool(self._plain.services) and (
            self._plain.mark is not None or self._walks().mark_of_masquerade is not None
        )
        return plainly and self._asked_behind is not None

    def _direct(self, protocol: str) -> Intervals | None:
        """Return the destinations to which flows from all sources arrive unchanged; None: all."""
        if self._enters_plainly:
            return None
        found = self._directly.get(protocol)
        if found is None:
            from analyzer.model.intervals import everything, joined, without

            every = (everything(VERSIONS[self._ruleset.family]),)
            if None not in self._directly:
                self._directly[None] = self._untouched(None, every)
            found = self._directly[None]
            rest = without(every, found)
            if rest:
                found = joined([*found, *self._untouched(protocol, rest)])
            self._directly[protocol] = found
        return found

    def _untouched(self, protocol: str | None, among: Intervals) -> Intervals:
        """Return the destinations among some to which flows arrive unchanged; None: of any kind."""
        found = among
        for source in Source:
            # A hairpin flow is one of a pod, of the node itself, or from outside.
            if source is not Source.HAIRPIN and found:
                region = self._parts().region(source)
                found = self._walks().untouched(source, protocol, region, found)
        return found

    @cached_property
    def _enters_plainly(self) -> bool:
        """Whether no rule comes before KUBE-SERVICES."""
        return all(
            self._plain.enters_plainly(hook)
            and all(
                _lets_pass(table, hook)
                for name in ("raw", "mangle")
                if (table := self._ruleset.tables.get(name)) is not None
            )
            for hook in ("PREROUTING", "OUTPUT")
        )

    def routes(self, dispatches: list[IptablesDispatch]) -> PlainRoutes:
        """Return the routes of a ServicePort whose frontends are all direct."""
        alone = dispatches[0].plain if len(dispatches) == 1 else None
        return PlainRoutes(
            lambda source: self.made(dispatches, source),
            lambda: self.spares_all,
            None if alone is None else alone.drawn,
            lambda: (
                None if alone is None else self._after_by_source_of(dispatches[0], alone.unmarked)
            ),
            lambda: None if alone is None else self._found_of(dispatches[0], alone),
        )

    def _found_of(self, dispatch: IptablesDispatch, plain: PlainService) -> Hashable:
        """Return what happens to flows from each source to each endpoint, by identity."""
        after_by_source = self._after_by_source_of(dispatch, plain.unmarked)
        if after_by_source is not None:
            return id(after_by_source)
        return tuple(
            [
                (part.network, part.also, result_key(after, plain))
                for source in Source
                for part, after in differing_parts(
                    plain, self._after_dnat_from(source, dispatch, plain.unmarked)
                )
            ]
        )

    def _after_by_source_of(self, dispatch: IptablesDispatch, unmarked: Unmarked) -> AfterBySource:
        asked = unmarked, self._first(dispatch, Source.NODE)
        if asked not in self._after_by_source:
            every = tuple(tuple(self._after_dnat_from(s, dispatch, unmarked)) for s in Source)
            by_endpoint = any(callable(after) for parts in every for *_, after in parts)
            self._after_by_source[asked] = None if by_endpoint else every
        return self._after_by_source[asked]

    def _after_dnat_from(
        self, source: Source, dispatch: IptablesDispatch, unmarked: Unmarked
    ) -> list[PartAfterDnat]:
        known = self._after_dnat_of[source]
        asked = unmarked, self._first(dispatch, source)
        if asked not in known:
            known[asked] = list(self._after_dnat(source, *asked))
        return known[asked]

    def _first(self, dispatch: IptablesDispatch, source: Source) -> First | None:
        """Return what is known of flows to a frontend before DNAT, if it matters."""
        if self._masquerade.is_plain:
            return None
        return self._walks().before_dnat.first(dispatch.frontend, dispatch.protocol, source)

    def made(self, dispatches: list[IptablesDispatch], source: Source) -> Iterator[Route]:
        """Yield the routes from one kind of source to frontends, all of which are direct."""
        for dispatch in dispatches:
            plain = dispatch.plain
            assert plain is not None
            by_part = self._after_dnat_from(source, dispatch, plain.unmarked)
            for part, after in differing_parts(plain, by_part):
                network = part.network
                if network is not None and part.address is not None:
                    way = dispatch.frontend, dispatch.protocol, source, network
                    self.addresses[way] = part.address
                shares = PlainShares(plain.drawn, plain.protocol, after)
                yield Route(dispatch.frontend, source, shares, NEVER, network, (), part.also)

    def _after_dnat(
        self, source: Source, unmarked: Unmarked, first: First | None
    ) -> Iterator[PartAfterDnat]:
        """Yield each part of a source, its address, and what happens to its flows after DNAT."""
        if source is Source.HAIRPIN:
            yield ALL_SOURCES, self._masquerade.after_dnat_of_hairpin(first)
            return
        spared = network_of(unmarked)
        behind = (self._asked_behind or {}).get(source)
        if behind:
            from analyzer.model.intervals import span

            more = set() if spared is None else {(span(spared),)}
            parts = self._parts().alike(source, behind | more)
        else:
            parts = self._parts().each(source, [] if spared is None else [spared])
        by_part: dict[Hashable, MasqueradeAndLossOf] = {}
        for part in parts:
            if part.key not in by_part:
                by_part[part.key] = self._masquerade.after_dnat(
                    source, part.address, unmarked, first
                )
            yield part, by_part[part.key]

    def grounds(self, written: Network | None, pods: PodNetworks) -> PlainGrounds | None:
        """Return what the routes rest on; None: not on plain rows alone.

        `written` is the network of pods as the rules write it, `pods` are the pods' networks.
        """
        plainly = self._plain.services and self._enters_plainly
        if not (plainly and self._plain.masquerades_plainly() and self._is_quiet):
            return None
        from analyzer.kubeproxy.fastpath.grounds import PlainGrounds, usual_ways

        texts = {each.unmarked for each in self._plain.services.values()}
        mark = self._plain.mark
        if len(texts) > 1 or mark is None:
            return None
        (unmarked,) = texts
        spared = network_of(unmarked)
        asked = frozenset() if spared is None else frozenset({spared})
        sources: list[Source] = [s for s in Source if s is not Source.HAIRPIN]
        parts = {source: self._parts().of(source, asked) for source in sources}
        return PlainGrounds(
            ruleset=self._ruleset,
            mark=int(mark, 16),
            unmarked=unmarked,
            written=written,
            pods=pods,
            ways=tuple(usual_ways(parts, self._masquerade, unmarked)),
            own=self._own,
            stand_ins=frozenset(a for each in parts.values() for _, a in each if a is not None),
            services=tuple(self._plain.services.items()),
            endpoints=self._plain.endpoints,
            has_port=self._has_port,
        )


def _lets_pass(table: Table, hook: str) -> bool:
    """Return whether a table does nothing to any packet at a hook."""
    chain = table.chains.get(hook)
    if chain is None:
        return table.complete
    return not len(chain.rules) and chain.policy == "ACCEPT"
