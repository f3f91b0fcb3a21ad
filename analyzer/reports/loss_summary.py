"""The start of ``loss``: at most ten lines on which Services lose how much, on which routes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from analyzer.failure.limits import Threshold, is_broken
from analyzer.failure.loss import LossState, ServiceLoss
from analyzer.failure.models import Dead
from analyzer.model.probability import ALWAYS
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.freshness import freshness_line
from analyzer.reports.loss_words import (
    STYLES,
    WORDS,
    dead_words,
    routes_judged,
    services_named,
    worst_routes,
)
from analyzer.reports.lost_now import sentences
from analyzer.reports.numbers import bounds_percent, limit_percent
from analyzer.reports.phrases import WITHOUT_ZONES, at_node, count, named, unplaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.cluster import Cluster

#: States whose ServicePorts are named, the greatest harm first.
_NAMED: Final = {
    LossState.SILENCED: "Total loss",
    LossState.DEGRADED: "Partial loss",
    LossState.UNKNOWN: "Unknown",
    LossState.NO_ENDPOINTS: "Without endpoints, whatever is dead",
}


def summary(answer: LossAnswer, losses: Sequence[ServiceLoss]) -> Iterator[Line]:
    """Yield the lines; `losses` are all that were evaluated, greatest loss first."""
    yield from freshness_line(answer.freshness)
    yield Line((f"Dead{at_node(answer.view)}: ", Span(dead_words(answer.dead), Style.STRONG)))
    yield from sentences(each.service for each in losses)
    yield from doubts(answer.dead, answer.cluster)
    yield from harm(losses, is_whole=answer.is_whole)
    yield from threshold(answer.threshold)


def harm(
    losses: Sequence[ServiceLoss],
    *,
    is_whole: bool,
    at: Mapping[int, str] | None = None,
    everywhere: Collection[int] = (),
) -> Iterator[Line]:
    """Yield which Services lose how much, and on which routes.

    `at` is set where dumps of several nodes are judged: it maps each loss, by identity, to the
    nodes that have it. `everywhere`: the losses with a total loss at every living node.
    """
    where = "" if at is None else " at its worst node"
    yield totals(losses, WORDS, is_whole=is_whole, each=where)
    is_cut = False
    for state, says in _NAMED.items():
        found = [each for each in losses if each.state is state]
        parts = {says: found}
        if at is not None and state is LossState.NO_ENDPOINTS:
            parts = {says.replace(",", " at a node,"): found}
        if at is not None and state is LossState.SILENCED:
            whole = [each for each in found if id(each) in everywhere]
            part = [each for each in found if id(each) not in everywhere]
            parts = {says: whole, f"{says} at some nodes": part}
        for words, those in parts.items():
            if those:
                names, more = services_named(those)
                is_cut = is_cut or bool(more)
                yield Line((Span(words, STYLES[state]), f": {names}{more}."))
    every = " All names: --summary." if is_cut else ""
    hit = [each for each in losses if each.worst.upper]
    if not losses:
        return
    if not hit:
        to = "" if is_whole else " to a ServicePort that is judged"
        style = Style.GOOD if is_whole else Style.PLAIN
        yield Line((Span(f"No new flow{to} goes to a dead endpoint.", style), every))
        return
    yield _worst(hit, at)
    by = "route" if at is None else "route at the worst node"
    of = f"Of new flows, by the worst {by} ({routes_judged(hit)})."
    yield Line((Span(f"{of}{every}", Style.FAINT),))


def threshold(asked: Threshold | None) -> Iterator[Line]:
    """Yield why ``--max-loss`` is broken, if it is."""
    if asked is None or not is_broken(asked):
        return
    says = "Not everything was judged: that breaks --max-loss."
    if asked.beyond:
        names, more = services_named(asked.beyond)
        number = count(len(asked.beyond), "ServicePort")
        says = f"--max-loss {limit_percent(asked.most)}: {number} may lose more: {names}{more}."
    yield Line((Span(says, Style.BAD),))


def doubts(dead: Dead, cluster: Cluster) -> Iterator[Line]:
    """Yield what losses are based on where the nodes of endpoints are not certain."""
    if placeless := len(dead.uncertain) - len(dead.zoneless):
        yield Line((Span(unplaced(placeless, cluster), Style.WARNING),))
    if dead.zoneless:
        number = count(len(dead.zoneless), "endpoint")
        yield Line((Span(f"Zone unknown for {number}: losses are ranges.", Style.WARNING),))
        yield Line((Span(WITHOUT_ZONES, Style.WARNING),))
    if dead.assumed:
        addresses = len({each.address for each in dead.assumed})
        number = count(addresses, "endpoint address", "endpoint addresses")
        yield Line((Span(f"Node of {number} taken from podCIDRs.", Style.FAINT),))


def totals(
    losses: Sequence[ServiceLoss], words: Mapping[LossState, str], *, is_whole: bool, each: str = ""
) -> Line:
    """Return how many ServicePorts are in which state; `each` says where."""
    counts = Counter(loss.state for loss in losses)
    told = [f"{counts[state]:,} {words[state]}" for state in LossState if counts[state]]
    more = "" if is_whole else " Not everything is judged, see below."
    where = f", each{each}" if each and told else ""
    states = f": {', '.join(told)}" if told else ""
    return Line((f"{count(len(losses), 'ServicePort')}{where}{states}.{more}",))


def _worst(hit: Sequence[ServiceLoss], at: Mapping[int, str] | None) -> Line:
    """Return the greatest loss as a sentence, and who has it."""
    first = hit[0]
    places = at or {}
    place = places.get(id(first), "")
    alike = [
        each
        for each in hit
        if (each.state, each.worst, each.nowhere) == (first.state, first.worst, first.nowhere)
        and places.get(id(each), "") == place
    ]
    who = named(first.service) + (f" and {len(alike) - 1:,} more" if alike[1:] else "")
    where = worst_routes(first)
    on = "on every route" if where == "every route" else f"from {where}"
    on += f", at {place}" if place else ""
    sentence = (
        f"{who} {'lose' if alike[1:] else 'loses'} {bounds_percent(first.worst)} of new flows, {on}"
    )
    route = first.worst_route
    if route is not None and route.otherwise and route.on_dead != route.loss:
        sentence += f", {bounds_percent(route.on_dead)} on dead endpoints"
    elif first.nowhere.lower:
        sentence += f", and {bounds_percent(first.nowhere)} reach no endpoint anyway"
    style = Style.BAD if first.worst.upper == ALWAYS else Style.WARNING
    return Line(("Worst: ", Span(f"{sentence}.", style)))
