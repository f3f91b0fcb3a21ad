"""Classes of frontends that are alike: one is evaluated, and its routes are used for all."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable

from analyzer.kubeproxy import names
from analyzer.kubeproxy.fastpath.carried import Carried, EndsOf
from analyzer.kubeproxy.view import Frontend
from analyzer.model.addresses import Address, Network
from analyzer.model.endings import Ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from analyzer.kubeproxy.fastpath.alike import Closure
    from analyzer.kubeproxy.fastpath.families import Families, FamilyRoute
    from analyzer.kubeproxy.routes.source_routes import Way

    class Closures(Protocol):
        """Finds out which frontends are alike."""

        def of(self, frontend: Frontend, protocol: str) -> Closure | None:
            """Return the frontend's own rows that its flows may hit; None: it is in no class."""


class Classes:
    """The routes of frontends that were evaluated, for those that are alike.

    `closures` finds out which are alike, and `families` which are so except for the number of
    endpoints; `is_taken` returns whether an address is in use, and so cannot represent other
    sources of flows to or from there. `of_sets` returns the networks of ipsets, which are the same
    for all that match on these; `own` are the node's addresses, if known.
    """

    def __init__(
        self,
        closures: Closures,
        is_taken: Callable[[Address], bool],
        families: Families | None = None,
        of_sets: Callable[[], frozenset[Network]] = frozenset,
        own: Iterable[Address] = (),
    ) -> None:
        self._own = frozenset(own)
        self._closures = closures
        self._is_taken = is_taken
        self._families = families
        self._of_sets = of_sets
        #: The routes of each class, but for frontends with one of these addresses at either end.
        self._known: dict[Hashable, tuple[Carried, frozenset[Address]]] = {}
        self._told: dict[Hashable, tuple[FamilyRoute, ...]] = {}
        # Frontends of one Service have the same endpoints, and come one after another.
        self._ends = EndsOf(())

    def ways(
        self, frontend: Frontend, protocol: str, walked: Callable[[], tuple[Way, ...]]
    ) -> tuple[Way, ...]:
        """Return the routes of a frontend, each with the address that represents its sources."""
        family = None if self._families is None else self._families.of(frontend, protocol)
        if family is not None and family.key in self._told:
            told = self._told[family.key]
            return tuple([each.of(frontend, protocol, family) for each in told])
        closure = self._closures.of(frontend, protocol)
        if closure is None:
            return walked()
        known, own = self._known.get(closure.key, (None, frozenset()))
        if known is None or _is_at(own, frontend, closure):
            ways = walked()
            if known is not None or not all(self._may_stand(w, closure, frontend) for w in ways):
                return ways
            # Sources that are, for example, endpoints of other Services.
            own = frozenset(each for _, each in ways if each is not None and self._is_taken(each))
            known = Carried(ways, closure.endpoints)
            self._known[closure.key] = known, own - self._own
            within = family is not None and all(self._is_within(w, family.around) for w in ways)
            if family is not None and within and own <= self._own:
                from analyzer.kubeproxy.fastpath.families import read_off

                found = read_off(ways, family)
                if found is not None:
                    self._told[family.key] = found
        if self._ends.endpoints != closure.endpoints:
            self._ends = EndsOf(closure.endpoints)
        return known.to(frontend, self._ends)

    def _is_free(self, address: Address, frontend: Frontend, closure: Closure) -> bool:
        """Return whether an address that represents sources is at neither end of its flows.

        If one has no endpoint at an address of the node itself, no other of the class has.
        """
        if address in self._own:
            return self._own.isdisjoint([each.address for each in closure.endpoints])
        return not _is_at(frozenset({address}), frontend, closure)

    def _is_within(self, way: Way, around: frozenset[str]) -> bool:
        """Return whether the networks of a route's sources are those that all of a class have."""
        networks = way[0].networks
        return around.issuperset(map(str, networks)) or self._of_sets().issuperset(networks)

    def _may_stand(self, way: Way, closure: Closure, frontend: Frontend) -> bool:
        route, address = way
        ends = {e for s in route.shares for e, _ in s.lost} | {e for e, _ in route.astray}
        return (
            not any(_is_own(ending, frontend, closure) for ending in ends)
            and all(share.endpoint in closure.endpoints for share in route.shares)
            and self._is_within(way, closure.around)
            and (address is None or self._is_free(address, frontend, closure))
        )


def _is_at(addresses: frozenset[Address], frontend: Frontend, closure: Closure) -> bool:
    """Return whether the frontend, or an endpoint of its own, has one of some addresses."""
    if not addresses:
        return False
    ends = {frontend.address, *[each.address for each in closure.endpoints]}
    return not addresses.isdisjoint(ends)


def _is_own(ending: Ending, frontend: Frontend, closure: Closure) -> bool:
    """Return whether the rule of an ending may be one that each of the class has a copy of."""
    if not ending.rule:
        return False
    ends = [(frontend.address, frontend.port), *[(e.address, e.port) for e in closure.endpoints]]
    named = {str(each) for end in ends for each in end if each is not None}
    words = set(re.split(r"[\s/:,\"\[\]{}]+", ending.rule))
    in_own_chain = names.is_of_service(ending.chain)
    return in_own_chain or not words.isdisjoint(named) or ":" in str(frontend.address)
