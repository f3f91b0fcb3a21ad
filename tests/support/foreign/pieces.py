"""Pieces of a dump, and dumps with holes: what is answered of them must hold of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

from analyzer.errors import AnalyzerError
from analyzer.kubeproxy.rows.holes import is_whole
from analyzer.kubeproxy.view import Route, ServicePort, View, each_network
from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers.survey import survey
from tests.support.foreign.ground import Ground, rules_of
from tests.support.foreign.judging import faults


def pieces_faults(ground: Ground, random: Random) -> tuple[str, list[str]]:
    """Return a part of a dump, and what its answers say otherwise than those of the whole."""
    text = _part(ground.text.splitlines(keepends=True), random)
    try:
        view = ground.view(text)
    except AnalyzerError:  # no rule can be read from it: nothing is answered
        return text, []
    if not looks_whole(text):
        return text, list(faults_between(_whole(ground), view))
    # Somebody may have deleted just these rules from the kernel: such a dump is the same text, and
    # then what is answered of the text as it stands is the truth.
    found = list(faults(ground, (text,), view, random))
    if not are_drawn_elsewhere(ground.text, text) and all(
        each.code != "lost-rows" for each in view.diagnostics
    ):
        # Nobody was warned that it might be only a part.
        found += faults_between(_whole(ground), view)
    return text, found


def looks_whole(text: str) -> bool:
    """Tell whether iptables-save may have printed a text just so."""
    ruleset = rules_of(text)
    if not isinstance(ruleset, Ruleset) or not is_whole(ruleset):
        return False
    # No rule of the kernel's leads to a chain that is not there.
    return all(each.code != "missing-chain" for each in survey(ruleset))


def are_drawn_elsewhere(whole: str, part: str) -> bool:
    """Tell whether a part lacks nothing but draws of endpoints that other chains of it draw.

    Nobody can tell that: one endpoint of several that a Local policy takes as well may be hinted to
    another zone, or not be ready.
    """
    lost = {*whole.splitlines()} - {*part.splitlines()}
    drawn = {row.rpartition(" -j ")[2] for row in lost if " -j KUBE-SEP-" in row}
    return len(drawn) == len(lost) and all(f" -j {each}\n" in part for each in drawn)


@cache
def _whole(ground: Ground) -> View:
    return ground.view(ground.text)


def _part(lines: list[str], random: Random) -> str:
    """Return lines that follow each other, or all but some that do, or both."""
    kind = random.choice(("piece", "hole", "both"))
    start, end = sorted(random.sample(range(len(lines) + 1), 2))
    if kind == "piece":
        return "".join(lines[start:end])
    if kind == "both":
        lines = lines[start:end]
    at = random.randrange(len(lines) or 1)
    return "".join([*lines[:at], *lines[at + random.randint(1, 12) :]])


def faults_between(whole: View, part: View) -> Iterator[str]:
    """Give what a part of a dump answers otherwise than the whole."""
    known = {(s.name.text, s.protocol): s for s in whole.services}
    for service in part.services:
        real = known.get((service.name.text, service.protocol))
        if real is not None:
            yield from _of_service(real, service)


def _of_service(real: ServicePort, told: ServicePort) -> Iterator[str]:
    routes = {(r.frontend, r.source, r.network): r for r in each_network(real.routes)}
    for route in each_network(told.routes):
        theirs = routes.get((route.frontend, route.source, route.network))
        if theirs is not None:
            place = f"{told.name.text} {route.frontend} from {route.source.value} {route.network}"
            yield from _of_route(place, theirs, route, filled=route.frontend not in told.unfilled)


def _of_route(place: str, real: Route, told: Route, *, filled: bool) -> Iterator[str]:
    shares = {share.endpoint: share for share in told.shares}
    for share in real.shares:
        low, high = share.share.lower.as_fraction(), share.share.upper.as_fraction()
        found = shares.pop(share.endpoint, None)
        if found is None:
            if high > told.unresolved.as_fraction() and filled:
                yield f"{place}: {share.endpoint} is drawn for {high}, and not told"
            continue
        lower, upper = found.share.lower.as_fraction(), found.share.upper.as_fraction()
        if not lower <= low <= high <= upper:
            yield f"{place}: {share.endpoint} is drawn for {low}, told is {lower} to {upper}"
        masks = share.masquerade, found.masquerade
        if None not in masks and masks[0] is not masks[1]:
            yield f"{place}: {share.endpoint} is masqueraded: {masks[0]}, told is {masks[1]}"
    for endpoint, other in shares.items():
        if other.share.lower:
            yield f"{place}: {endpoint} is never drawn, told is at least {other.share.lower}"
