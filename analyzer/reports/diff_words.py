"""Flows and their outcomes in the words of ``diff``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analyzer.kubeproxy.diff.changes import Otherwise, RouteIdentity, ServiceChange
from analyzer.kubeproxy.view import Frontend, FrontendKind, Source
from analyzer.model.addresses import Network
from analyzer.model.probability import ALWAYS
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.route_networks import MOST_NETWORKS, first_networks

_PODS: Final = frozenset({Source.POD, Source.POD_ELSEWHERE})
_ENDS: Final = {
    "endpoint": "sent to endpoints",
    "drop": "dropped",
    "reject": "rejected",
    "no-service": "forwarded unchanged",
    "unanswered": "not answered",
    "unresolved": "not known",
    "masqueraded": "masqueraded",
    "not-masqueraded": "not masqueraded",
}


def flows(ways: Sequence[RouteIdentity], change: ServiceChange) -> str:
    """Return which flows take these routes: ``from external to NodePort *:30001``."""
    if len(ways) == change.ways:
        return "all"
    by_frontend: dict[Frontend, list[RouteIdentity]] = {}
    for way in ways:
        by_frontend.setdefault(way.frontend, []).append(way)
    by_sources: dict[str, list[Frontend]] = {}
    for frontend, theirs in by_frontend.items():
        by_sources.setdefault(_sources(theirs), []).append(frontend)
    return "; ".join(f"from {told} to {_frontends(theirs)}" for told, theirs in by_sources.items())


def _frontends(frontends: Sequence[Frontend]) -> str:
    by_kind: dict[FrontendKind, list[str]] = {}
    for frontend in frontends:
        by_kind.setdefault(frontend.kind, []).append(str(frontend))
    return ", ".join(f"{kind.value} {', '.join(theirs)}" for kind, theirs in by_kind.items())


def _sources(ways: Sequence[RouteIdentity]) -> str:
    told = {(way.source, way.network) for way in ways}
    plain: dict[tuple[Network, ...], set[Source]] = {}
    for way in ways:
        if way.network is None:
            plain.setdefault(_excepted(way, told), set()).add(way.source)
    named = [f"{', '.join(_kinds(kinds))}{_but(but)}" for but, kinds in plain.items()]
    of_networks = [_network(way, told) for way in ways if way.network is not None]
    networks = [*dict.fromkeys(of_networks)]  # pods of any node may be in one
    return ", ".join([*named, *([first_networks(networks, len(networks))] if networks else [])])


def _kinds(kinds: set[Source]) -> list[str]:
    from_all = not set(Source) - kinds - {Source.HAIRPIN}
    return ["anywhere"] if from_all else sources(kinds)


def _network(way: RouteIdentity, told: set[tuple[Source, Network | None]]) -> str:
    """Return a network in words, with its exceptions that are not in `told`."""
    within = {Source.EXTERNAL: "", Source.NODE: "node in "}.get(way.source, "pods in ")
    return f"{within}{way.network}{_but(_excepted(way, told))}"


def _excepted(way: RouteIdentity, told: set[tuple[Source, Network | None]]) -> tuple[Network, ...]:
    return tuple([each for each in way.but if (way.source, each) not in told])


def _but(networks: Sequence[Network]) -> str:
    if not networks:
        return ""
    more = len(networks) - MOST_NETWORKS
    others = [] if more < 1 else [f"{more:,} {'other' if more == 1 else 'others'}"]
    return f" but not {' or '.join([*map(str, networks[:MOST_NETWORKS]), *others])}"


def sources(kinds: set[Source]) -> list[str]:
    """Return kinds of source in words, with both kinds of pods as one."""
    named = ["pods"] if kinds >= _PODS else [s.value for s in Source if s in kinds & _PODS]
    rest = [s for s in Source if s in kinds - _PODS]
    # Hairpin flows are only named if flows of other pods are not affected too.
    return named + [s.value for s in rest if s is not Source.HAIRPIN or not kinds & _PODS]


def ends(found: Otherwise) -> str:
    """Return how flows end: ``dropped``, ``33.3% rejected``; no ends: at endpoints."""
    if not found:
        return _ENDS["endpoint"]
    return ", ".join(
        _ENDS[kind] if share.lower == ALWAYS else f"{bounds_percent(share)} {_ENDS[kind]}"
        for kind, share in found
    )


def affinity(seconds: int | None) -> str:
    """Return the timeout of session affinity."""
    return "none" if seconds is None else f"{seconds:,} s"


def source_address(masqueraded: bool) -> str:
    """Return the source address that an endpoint sees."""
    return "the node's" if masqueraded else "the client's"
