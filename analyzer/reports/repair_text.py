"""A repair as input for iptables-restore or nft, with notes for people at the top.

Lines that begin with ``#`` are comments to both programs, so that the whole can be piped into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.failure.route_loss import greatness
from analyzer.model.text import printable
from analyzer.repair.witness import Repaired, RepairedOutcome
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count, named
from analyzer.reports.repair_answer import RepairAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.failure.route_loss import RouteLoss

#: Names in one line of the head.
_MOST: Final = 5
_WIDTH: Final = 96


def render(answer: RepairAnswer) -> Iterator[str]:
    """Yield the lines that the options select."""
    match answer.prints:
        case "undo":
            yield from (each.undo for each in answer.patches)
        case "conntrack":
            yield from (f"{each}\n" for each in answer.pinned)
        case _:
            yield from (f"{line}\n" for line in _head(answer))
            yield from (each.apply for each in answer.patches)


def _head(answer: RepairAnswer) -> Iterator[str]:
    """Yield the comments: what this is for, how to apply it and how to take it back."""
    node = f" of node {answer.view.node}" if answer.view.node else ""
    yield from _said(f"kubeodds repair: excludes {_dead(answer)} from new flows{node}.")
    by_fate = {fate: [s for s in answer.services if s.of(fate)] for fate in RepairedOutcome}
    if not any(each.apply for each in answer.patches):
        yield "# Nothing to change."
    covered = [each for each in answer.services if each.fate is RepairedOutcome.COVERED]
    if covered:
        yield from _said(
            f"No more losses to dead endpoints: {count(len(covered), 'ServicePort')} "
            f"({_names(covered)})."
        )
    yield from _still_lost(answer)
    for each in by_fate[RepairedOutcome.REFUSED][:_MOST]:
        routes = each.of(RepairedOutcome.REFUSED)
        which = (
            ""
            if len(routes) == len(each.routes)
            else f" on {_routes(each, RepairedOutcome.REFUSED)}"
        )
        yield from _said(
            f"No endpoint left, rejected at once: {named(each.before.service)}{which}."
        )
    if len(by_fate[RepairedOutcome.REFUSED]) > _MOST:
        more = len(by_fate[RepairedOutcome.REFUSED]) - _MOST
        yield from _said(
            f"The same applies to {count(more, 'more ServicePort')}; --format json lists all."
        )
    for name in answer.alone:
        yield from _said(
            f"Left alone: {name}. Its API servers come back at these addresses and must not be "
            f"refused then; --service {name} repairs it all the same."
        )
    for each in by_fate[RepairedOutcome.LEFT]:
        yield from _said(
            f"NOT COVERED: {named(each.before.service)} may still lose flows on "
            f"{_routes(each, RepairedOutcome.LEFT)}."
        )
    yield from (line for each in answer.problems for line in _said(f"NOT COVERED: {each}."))
    if answer.unplaced:
        yield from _said(
            f"Node unknown for {count(answer.unplaced, 'endpoint')}: they stay in the draws; pass "
            "--objects or --node-of."
        )
    yield from _how(answer)


def _still_lost(answer: RepairAnswer) -> Iterator[str]:
    """Yield which ServicePorts lose flows all the same, to rules that the repair leaves alone."""
    losing = [each for each in answer.services if each.still_lost]
    for each in losing[:_MOST]:
        worst = max(each.still_lost, key=lambda route: greatness(route.loss))
        yield from _said(
            f"STILL LOST: {named(each.before.service)} loses {bounds_percent(worst.loss)} of "
            f"new flows on {_by_frontend(each.still_lost)}, to other rules, which the repair "
            "leaves alone; kubeodds loss names them."
        )
    if losing[_MOST:]:
        more = count(len(losing) - _MOST, "more ServicePort")
        yield from _said(f"So do {more}; --format json lists all.")


def _how(answer: RepairAnswer) -> Iterator[str]:
    programs = dict.fromkeys(each.program for each in answer.patches if each.apply)
    for program in programs:
        # The undo of the one IP version is not to be overwritten by that of the other.
        own = "6" if program.startswith("ip6tables") else ""
        yield "#"
        yield from _said("On this node only, since other nodes' rules differ; save the undo first:")
        yield f"#   {printable(answer.undo)} > undo{own}.rules"
        yield f"#   {program} < repair{own}.rules"
        yield from _said(
            "Applying it twice fails and changes nothing. kube-proxy's syncs leave it alone. When "
            "the API is back, wait until kube-proxy's own rules no longer have the dead endpoints, "
            "then undo it, or these flows never reach new endpoints:"
        )
        yield f"#   {program} < undo{own}.rules"
    if answer.pinned and programs:
        yield from _said("Then free the flows that conntrack keeps at dead endpoints:")
        for each in answer.pinned[:_MOST]:
            yield f"#   {each}"
        if len(answer.pinned) > _MOST:
            yield f"#   and {len(answer.pinned) - _MOST:,} more: --print conntrack"


def _dead(answer: RepairAnswer) -> str:
    """Return what is dead, and how many addresses of it get no new flows any more."""
    dead = answer.dead
    named = [f"node {n}" for n in dead.nodes] + [f"zone {z}" for z in dead.zones]
    named += [*dead.named]
    left = {e.address for s in answer.services for e in s.before.dead if _is_left(s)}
    gone = {e.address for s in answer.services for e in s.before.dead} - left
    every = {each.address for each in dead.endpoints}
    of = f"{len(gone):,} of " if gone != every else ""
    addresses = count(len(every), "endpoint address", "endpoint addresses")
    return f"{', '.join(named)} ({of}{addresses})"


def _is_left(service: Repaired) -> bool:
    return service.fate is RepairedOutcome.LEFT


def _names(services: Iterable[Repaired]) -> str:
    names = [*dict.fromkeys(named(each.before.service) for each in services)]
    more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def _routes(service: Repaired, fate: RepairedOutcome) -> str:
    """Return routes by frontend: ``NodePort *:30302 (external, node)``."""
    return _by_frontend(service.of(fate))


def _by_frontend(routes: Iterable[RouteLoss]) -> str:
    sources: dict[str, list[str]] = {}
    for each in routes:
        frontend = f"{each.route.frontend.kind.value} {each.route.frontend}"
        sources.setdefault(frontend, []).append(each.route.source.value)
    return ", ".join(f"{f} ({', '.join(dict.fromkeys(s))})" for f, s in sources.items())


def _said(text: str) -> Iterator[str]:
    """Yield a sentence in lines of comments; no character of a name can end one."""
    line = "#"
    for word in printable(text).split(" "):
        if len(line) + 1 + len(word) > _WIDTH and line != "#":
            yield line
            line = "#"
        line += f" {word}"
    yield line
