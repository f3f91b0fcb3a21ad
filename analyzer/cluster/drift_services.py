"""Differences between a ServicePort on a node and what it should be there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from analyzer.cluster.drift_kinds import DriftKind
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, ServicePort, Source, each_network
from analyzer.model.endings import EndKind
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from analyzer.model.addresses import Address, Network
    from analyzer.model.probability import Bounds
    from analyzer.model.services import ApiEndpoint, ApiServicePort

    #: A difference, and what of the ServicePort it is of.
    DriftAndDetail: TypeAlias = tuple[DriftKind, str]
    #: The source of flows, and the frontend; kinds of addresses are not distinguished.
    SourceAndFrontend: TypeAlias = tuple[Address | None, int | None, Source, Network | None]


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
    found: ServicePort, usual: ServicePort, is_nodes: Callable[[Address], bool]
) -> Iterator[DriftAndDetail]:
    """Yield differences from most nodes in the rules that flows traverse after DNAT.

    Objects contain neither flags of kube-proxy nor other programs' rules. Endpoints that nodes
    distinguish (`is_nodes`) are left out, and so are those that only one of both has.
    """
    ours, theirs = _behind(found, is_nodes), _behind(usual, is_nodes)
    # What is lost is not masqueraded either: that is one difference.
    for what, drift in ((1, DriftKind.LOST_TO_RULES), (0, DriftKind.OTHER_MASQUERADE)):
        for way, answers in ours.items():
            others = theirs.get(way, {})
            differing = any(
                answer[what] != others[end][what]
                for end, answer in answers.items()
                if end in others
            )
            if differing:
                address, port, source = way
                shown = "*" if address is None else str(address)
                yield drift, f"{shown}:{port} from {source.value}"
                return


def differ_behind(services: Iterable[ServicePort], is_nodes: Callable[[Address], bool]) -> bool:
    """Return whether `behind` yields anything for any two of these contents of a ServicePort."""
    seen: dict[object, object] = {}
    for service in services:
        for way, answers in _behind(service, is_nodes).items():
            for end, answer in answers.items():
                if seen.setdefault((way, end), answer) != answer:
                    return True
    return False


def _behind(
    service: ServicePort, is_nodes: Callable[[Address], bool]
) -> dict[
    tuple[Address | None, int | None, Source],
    dict[Endpoint | None, tuple[frozenset[bool | None], frozenset[str]]],
]:
    """Return of each frontend and source how each endpoint's flows are masqueraded and lost."""
    masked: dict[tuple[object, ...], set[bool | None]] = {}
    lost: dict[tuple[object, ...], set[str]] = {}
    ways: dict[tuple[Address | None, int | None, Source], dict[Endpoint | None, None]] = {}
    for route in service.routes:
        if route.source is Source.HAIRPIN:
            continue
        way = route.frontend.address, route.frontend.port, route.source
        ends, _ = route.draws()
        gone: Sequence[object] = route.losses() or ((),) * len(ends)
        for end, masquerade, endings in zip(ends, route.masquerades(), gone, strict=True):
            if is_nodes(end.address):
                continue
            ways.setdefault(way, {})[end] = None
            masked.setdefault((way, end), set()).add(masquerade)
            if endings:
                lost.setdefault((way, end), set()).add(str(endings))
        ways.setdefault(way, {})[None] = None
        taken = [
            ending
            for ending, _ in route.astray
            if ending.kind in {EndKind.DROPPED, EndKind.REJECTED}
        ]
        if taken:
            lost.setdefault((way, None), set()).update(map(str, taken))
    return {
        way: {
            end: (frozenset(masked.get((way, end), ())), frozenset(lost.get((way, end), ())))
            for end in ends
        }
        for way, ends in ways.items()
    }
