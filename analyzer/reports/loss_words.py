"""Words of ``loss`` for people: what is dead, states, and the routes of a number."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from analyzer.failure.loss import HARM, LossState, ServiceLoss
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import RouteLoss
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Source
from analyzer.model.addresses import IPV6, Network, network_from_text
from analyzer.reports.document import Style
from analyzer.reports.phrases import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

STYLES: Final = {
    LossState.UNTOUCHED: Style.GOOD,
    LossState.DEGRADED: Style.WARNING,
    LossState.SILENCED: Style.BAD,
    LossState.UNKNOWN: Style.WARNING,
    LossState.NO_ENDPOINTS: Style.FAINT,
}
#: Networks of one kind of source that are listed one by one.
_MOST_NETWORKS: Final = 3
#: The networks of routes, by the identity of what is kept with them: to hash them takes a while.
_KNOWN: Final[dict[int, tuple[tuple[Network, ...], AbstractSet[Network]]]] = {}
_MOST_KNOWN: Final = 64
#: What states are called in text; JSON has them by their values.
WORDS: Final = {
    LossState.UNTOUCHED: "untouched",
    LossState.DEGRADED: "partial loss",
    LossState.SILENCED: "total loss",
    LossState.UNKNOWN: "unknown",
    LossState.NO_ENDPOINTS: "without endpoints",
}
#: Pods of other nodes are pods, unless they have results of their own.
_AS_POD: Final = {Source.POD_ELSEWHERE: Source.POD}
#: Services of a list that are named one by one.
_MOST_NAMED: Final = 3


def by_harm(losses: Iterable[ServiceLoss]) -> list[ServiceLoss]:
    """Return the losses, total ones first, then the greatest, equal ones by name."""
    name = sorted(losses, key=lambda each: (each.service.name.text, each.service.protocol))
    return sorted(
        name,
        key=lambda e: (HARM[e.state], -float(e.worst.upper), -float(e.worst.lower)),
    )


def dead_words(dead: Dead) -> str:
    """Return what is dead, as named by the options, and how many endpoint addresses are."""
    named = [f"node {n}" for n in dead.nodes] + [f"zone {z}" for z in dead.zones]
    named += [named_words(e) for e in dead.named]
    addresses = len({e.address for e in dead.endpoints})
    listed = ", ".join(named[:_MOST_NAMED]) or "nothing"
    if more := named[_MOST_NAMED:]:
        listed += f" and {len(more):,} more"
    return f"{listed} ({count(addresses, 'endpoint address', 'endpoint addresses')})"


def named_words(name: str) -> str:
    """Return what a value of ``--dead`` is, with it: an endpoint, a network, or a pod."""
    if "/" not in name:
        return f"endpoint {name}"
    return f"pod {name}" if network_from_text(name) is None else f"network {name}"


def services_named(losses: Sequence[ServiceLoss]) -> tuple[str, str]:
    """Return ``ns/a, ns/dns (3 ports)`` and `` and 5 more``, a Service's ports as one."""
    ports: dict[str, list[ServicePort]] = {}
    for loss in losses:
        name = loss.service.name
        whole = name.text if name.service is None else f"{name.namespace}/{name.service}"
        ports.setdefault(whole, []).append(loss.service)
    shown = list(ports.items())[:_MOST_NAMED]
    told = [_named_once(whole, services) for whole, services in shown]
    more = len(losses) - sum(len(services) for _, services in shown)
    return ", ".join(told), f" and {more:,} more" if more > 0 else ""


def _named_once(whole: str, services: Sequence[ServicePort]) -> str:
    """Return ``ns/app``, ``ns/app (IPv6)``, ``ns/dns (3 ports, IPv4 and IPv6)``."""
    names = {each.name.text for each in services}
    versions = sorted({each.version for each in services if each.version is not None})
    marks = [f"{len(names)} ports"] if len(names) > 1 else []
    if IPV6 in versions:
        marks.append(" and ".join(f"IPv{version}" for version in versions))
    only = whole if len(names) > 1 else services[0].name.text
    return f"{only} ({', '.join(marks)})" if marks else only


def routes_judged(losses: Iterable[ServiceLoss]) -> str:
    """Return which new flows the numbers describe: ``pod, node to ClusterIP``."""
    found = {(r.route.source, r.route.frontend.kind) for e in losses for r in e.routes if r.leads}
    plain = {_AS_POD.get(source, source) for source, _ in found}
    sources = ", ".join(each.value for each in Source if each in plain)
    kinds = {kind: None for _, kind in sorted(found, key=lambda each: each[1].value)}
    return f"{sources} to {', '.join(kind.value for kind in kinds)}"


def worst_routes(loss: ServiceLoss) -> str:
    """Return the routes with the loss in `loss.worst`: ``every route``, or the first ones."""
    leading = [each for each in loss.routes if each.leads]
    worst = [each for each in leading if each.loss == loss.worst]
    if len(worst) == len(leading):
        return "every route"
    first: Frontend = worst[0].route.frontend
    sources = sources_of(
        [each for each in worst if each.route.frontend == first],
        [each for each in leading if each.route.frontend == first],
    )
    others = len({each.route.frontend for each in worst} - {first})
    more = f" and {count(others, 'more frontend')}" if others else ""
    return f"{sources} to {first.kind.value} {first}{more}"


def sources_of(some: Sequence[RouteLoss], among: Sequence[RouteLoss]) -> str:
    """Return the sources of some routes: a kind by its name if all its networks are of them."""
    found: list[str] = []
    for source in dict.fromkeys(each.route.source for each in some):
        name = source.value
        mine = _networks_from(source, some)
        if mine >= _networks_from(source, among):
            found.append(name)
            continue
        found += [name] if None in mine else []
        networks = len(mine) - (None in mine)
        first = _first_networks(source, some)
        more = f" and {count(networks - len(first), 'other network')}"
        if networks:
            found.append(f"{name} {', '.join(first)}{more if networks > len(first) else ''}")
    return ", ".join(found)


def _networks_from(source: Source, routes: Iterable[RouteLoss]) -> AbstractSet[Network | None]:
    """Return the networks of a kind of source that have routes; None: all other sources."""
    found: AbstractSet[Network | None] = frozenset()
    for each in routes:
        if each.route.source is source:
            found |= _networks_of(each.route)
    return found


def _first_networks(source: Source, routes: Iterable[RouteLoss]) -> Collection[str]:
    """Return some of these networks, the first ones, as they are printed."""
    every = (n for each in routes if each.route.source is source for n in each.route.networks)
    found: dict[str, None] = {}
    for network in every:
        found[str(network)] = None
        if len(found) == _MOST_NETWORKS:
            break
    return found


def _networks_of(route: Route) -> AbstractSet[Network | None]:
    """Return the networks of a route as a set; many routes have the same further ones."""
    if route.network is None or not route.also:
        return frozenset({route.network})
    key = id(route.also)
    if key not in _KNOWN:
        if len(_KNOWN) == _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = route.also, frozenset(route.also)
    return _KNOWN[key][1] | {route.network}
