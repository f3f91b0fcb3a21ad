"""Differences between a ServicePort on a node and what it should be there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from analyzer.cluster.drift_kinds import DriftKind
from analyzer.kubeproxy.diff.networks import by_network
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, ServicePort, Source, each_network
from analyzer.model.endings import EndKind
from analyzer.model.value import value
from analyzer.semantics.onward import OWN_SOURCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from analyzer.model.addresses import Address, Network
    from analyzer.model.endings import Ending
    from analyzer.model.probability import Bounds
    from analyzer.model.services import ApiEndpoint, ApiServicePort

    #: A difference, and what of the ServicePort it is of.
    DriftAndDetail: TypeAlias = tuple[DriftKind, str]
    #: The source of flows, and the frontend; kinds of addresses are not distinguished.
    SourceAndFrontend: TypeAlias = tuple[Address | None, int | None, Source, Network | None]

#: How rules of other programs end flows that no endpoint is drawn for.
_BY_RULES: Final = frozenset(
    {
        EndKind.DROPPED,
        EndKind.REJECTED,
        EndKind.UNANSWERED,
        EndKind.NOT_TRANSLATED,
        EndKind.UNKNOWN,
    }
)


@value(kw_only=True)
class ObjectFacts:
    """What objects say about endpoints.

    Attributes:
        services: by name and protocol.
        owner: returns the pod that has an address and port now; None if not known, or none.
        place: returns the node of an address; None if not known.
        is_told: whether the objects list any endpoints.
    """

    services: Mapping[tuple[str, str, int | None], ApiServicePort]
    owner: Callable[[Endpoint], str | None]
    place: Callable[[Address], str | None]
    is_told: bool = True

    def listed(self, service: ServicePort) -> Mapping[tuple[Address, int], ApiEndpoint]:
        """Return the endpoints of a ServicePort, ready or not."""
        spec = self.services.get((service.name.text, service.protocol, service.version))
        return {} if spec is None else {(each.address, each.port): each for each in spec.endpoints}


def differences(
    found: ServicePort, wanted: ServicePort, told: ObjectFacts, nodes: Collection[str]
) -> Iterator[DriftAndDetail]:
    """Yield the differences of a ServicePort on some nodes from what it should be there."""
    ours, theirs = _places(found), _places(wanted)
    for missing in theirs.keys() - ours.keys():
        yield DriftKind.MISSING_FRONTEND, str(theirs[missing])
    for extra in ours.keys() - theirs.keys():
        yield DriftKind.EXTRA_FRONTEND, str(ours[extra])
    if found.unfilled:
        yield DriftKind.EMPTY_CHAIN, ", ".join(map(str, found.unfilled))
        return
    if found.affinity != wanted.affinity:
        yield (
            DriftKind.OTHER_AFFINITY,
            f"{_seconds(found.affinity)}, not {_seconds(wanted.affinity)}",
        )
    both = ours.keys() & theirs.keys()
    refused = {_place(frontend): how for frontend, how in found.refusals}
    expected = {_place(frontend): how for frontend, how in wanted.refusals}
    of_endpoints = [*_of_endpoints(found, wanted, told, nodes)]
    yield from of_endpoints
    otherwise = [each for each in both if refused.get(each) != expected.get(each)]
    # Who lacks its only endpoint is refused: that is one difference, and not two.
    if otherwise and not of_endpoints:
        shown = ", ".join(sorted(str(ours[each]) for each in otherwise))
        yield DriftKind.REFUSED, shown
    if not of_endpoints and not otherwise:
        yield from _of_routes(found, wanted)


def _seconds(affinity: int | None) -> str:
    return "none" if affinity is None else f"{affinity:,} s"


def _place(frontend: Frontend) -> tuple[Address | None, int | None]:
    return frontend.address, frontend.port


def _places(service: ServicePort) -> dict[tuple[Address | None, int | None], Frontend]:
    return {_place(each): each for each in service.frontends}


def _of_endpoints(
    found: ServicePort, wanted: ServicePort, told: ObjectFacts, nodes: Collection[str]
) -> Iterator[DriftAndDetail]:
    ours, theirs = set(found.endpoints), set(wanted.endpoints)
    if not ours and theirs and found.refusals:
        yield DriftKind.REFUSED, ", ".join(str(frontend) for frontend, _ in found.refusals)
        return
    if ours < theirs and _is_local(ours, theirs, told, nodes):
        yield DriftKind.OTHER_LOCALITY, ", ".join(sorted(map(str, ours)))
        return
    missing = {end.address: end for end in sorted(theirs - ours, key=str)}
    listed = told.listed(found)
    elsewhere: list[str] = []
    for end in sorted(ours - theirs, key=str):
        other = missing.pop(end.address, None)
        if other is not None:
            yield DriftKind.OTHER_PORT, f"{end}, not {other}"
            continue
        known = None if end.port is None else listed.get((end.address, end.port))
        owner = told.owner(end)
        if not told.is_told:
            yield DriftKind.EXTRA_ENDPOINT, str(end)
        elif known is not None:
            if known.is_ready:
                elsewhere.append(str(end))
            else:
                yield DriftKind.UNREADY_ENDPOINT, str(end)
        elif owner is not None:
            yield DriftKind.FOREIGN_ENDPOINT, f"{end}, now of {owner}"
        else:
            yield DriftKind.STALE_ENDPOINT, str(end)
    if elsewhere:
        yield DriftKind.OTHER_LOCALITY, ", ".join(elsewhere)
    for end in missing.values():
        yield DriftKind.MISSING_ENDPOINT, str(end)


def _is_local(
    ours: set[Endpoint], theirs: set[Endpoint], told: ObjectFacts, nodes: Collection[str]
) -> bool:
    """Return whether the rules have all endpoints of their own node, and none of several others.

    Where those of one other node alone are missing, that node may have been given up: a repair in
    a cluster of two nodes leaves the same rules as a Local policy.
    """
    lacking = {told.place(end.address) for end in theirs - ours}
    own = {told.place(end.address) for end in ours}
    return own == {*nodes} and len(lacking) > 1 and not lacking & {*nodes, None}


def _of_routes(found: ServicePort, wanted: ServicePort) -> Iterator[DriftAndDetail]:
    """Yield a difference of which endpoints get flows from where, and how many."""
    ours, theirs = _routes(found), _routes(wanted)
    for way in theirs:
        if way not in ours:
            continue
        drawn, expected = _shares(ours[way]), _shares(theirs[way])
        if drawn.keys() != expected.keys():
            yield DriftKind.OTHER_LOCALITY, _shown(ours[way])
            return
        if drawn != expected:
            yield DriftKind.OTHER_SHARES, _shown(ours[way])
            return


def _routes(service: ServicePort) -> dict[SourceAndFrontend, Route]:
    return {
        (each.frontend.address, each.frontend.port, each.source, each.network): each
        for each in each_network(service.routes)
        if each.source is not Source.HAIRPIN
    }


def _shares(route: Route) -> dict[Endpoint, Bounds]:
    return dict(zip(*route.draws(), strict=True))


def _shown(route: Route) -> str:
    return f"{route.frontend} from {route.source.value}"


# --- compared with most nodes -------------------------------------------------------


def behind(
    found: ServicePort, usual: ServicePort, is_own: Callable[[Address], bool]
) -> Iterator[DriftAndDetail]:
    """Yield differences from most nodes in the rules that flows traverse besides kube-proxy's.

    Objects contain neither flags of kube-proxy nor other programs' rules. Endpoints that are
    addresses of the node itself (`is_own`), whose flows traverse other chains, are left out, and so
    are endpoints that only one of both has.
    """
    ways = [*_ways(found, usual)]
    # What is lost is not masqueraded either: that is one difference.
    for drift, differ in (
        (DriftKind.LOST_TO_RULES, _lost_differently),
        (DriftKind.OTHER_MASQUERADE, _masqueraded_differently),
    ):
        for network, ours, theirs in ways:
            if differ(ours, theirs, is_own):
                yield drift, _shown(ours) if network is None else f"{_shown(ours)} {network}"
                return


def differ_behind(
    at: Sequence[tuple[ServicePort, frozenset[str]]],
    owned_by: Callable[[frozenset[str]], Callable[[Address], bool]],
) -> bool:
    """Return whether `behind` yields anything for any two of several contents of a ServicePort.

    `at` has each with its nodes, and `owned_by` returns whether an address is one of some nodes'.
    """
    first: dict[Endpoint, tuple[ServicePort, frozenset[str]]] = {}
    for service, nodes in at:
        is_own = owned_by(nodes)
        # What happens to flows to an endpoint is equal for all contents that have it if it is equal
        # for each and the first of these: of a thousand nodes there would be too many pairs.
        others = [
            at[0],
            *(
                first.setdefault(e, (service, nodes))
                for e in service.endpoints
                if not is_own(e.address)
            ),
        ]
        for other, theirs in {id(each): (each, n) for each, n in others}.values():
            if other is not service and any(behind(service, other, owned_by(nodes | theirs))):
                return True
    return False


def is_open_behind(
    found: ServicePort, usual: ServicePort, is_own: Callable[[Address], bool]
) -> bool:
    """Return whether rules end flows to the node's own addresses, and other flows on most nodes.

    The same rules do that too, since flows to a node's own addresses traverse other chains there.
    """
    return any(
        lost and lost != _lost(theirs).get(end, lost)
        for _, ours, theirs in _ways(found, usual)
        for end, lost in _lost(ours).items()
        if is_own(end.address)
    )


def _ways(found: ServicePort, usual: ServicePort) -> Iterator[tuple[Network | None, Route, Route]]:
    """Yield the routes of the same sources to the same frontends, by networks that either has."""
    ours, theirs = _by_place(found), _by_place(usual)
    for way, routes in ours.items():
        for network, _, mine, other in by_network(routes, theirs.get(way, ())):
            yield network, mine, other


def _by_place(service: ServicePort) -> dict[tuple[Address | None, int | None, Source], list[Route]]:
    ways: dict[tuple[Address | None, int | None, Source], list[Route]] = {}
    for route in service.routes:
        way = *_place(route.frontend), route.source
        ways.setdefault(way, []).append(route)
    return ways


def _lost_differently(ours: Route, theirs: Route, is_own: Callable[[Address], bool]) -> bool:
    """Return whether other programs' rules end flows of one route that they do not of the other."""
    if _taken(ours) != _taken(theirs):
        return True
    mine, others = ours.losses(), theirs.losses()
    if not mine and not others:
        return False
    of_ours, of_theirs = (_lost(each) for each in (ours, theirs))
    return any(
        of_ours[end] != of_theirs[end]
        for end in of_ours.keys() & of_theirs.keys()
        if not is_own(end.address)
    )


def _taken(route: Route) -> frozenset[tuple[Ending, Bounds]]:
    """Return how other programs' rules end flows before an endpoint is drawn."""
    return frozenset(
        (ending, share)
        for ending, share in route.astray
        if ending.kind in _BY_RULES or (ending.kind is EndKind.UNCHANGED and ending.rule)
    )


def _lost(route: Route) -> dict[Endpoint, frozenset[tuple[Ending, Bounds]]]:
    """Return how rules end flows that are sent to each endpoint.

    Those that return to their endpoint with its own address are of no rule.
    """
    ends, _ = route.draws()
    lost = route.losses() or ((),) * len(ends)
    return {
        end: frozenset(each for each in endings if each[0] != OWN_SOURCE)
        for end, endings in zip(ends, lost, strict=True)
    }


def _masqueraded_differently(ours: Route, theirs: Route, is_own: Callable[[Address], bool]) -> bool:
    """Return whether flows of two routes to the same endpoint are not masqueraded alike."""
    if ours.source is Source.HAIRPIN:  # in nftables mode each node has those of its endpoints
        return False
    of_ours, of_theirs = (
        dict(zip(each.draws()[0], each.masquerades(), strict=True)) for each in (ours, theirs)
    )
    return any(
        of_ours[end] != of_theirs[end]
        for end in of_ours.keys() & of_theirs.keys()
        if not is_own(end.address)
    )
