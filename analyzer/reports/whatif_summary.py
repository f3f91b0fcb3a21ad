"""The first lines of ``whatif``: who is nearest to total loss, and what the numbers rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analyzer.failure.costs import losses_with
from analyzer.failure.incidence import rank
from analyzer.failure.smallest import Survival
from analyzer.failure.whatif import Failure
from analyzer.model.ternary import Ternary
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.not_judged import lines
from analyzer.reports.numbers import bounds_percent, percent
from analyzer.reports.phrases import WITHOUT_ZONES, at_node, count, listed, named, unplaced
from analyzer.reports.whatif_breaches import MOST_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Of a ServicePort without a flow that reaches an endpoint.
_LOST: Final = {
    Ternary.TRUE: "Lost already, whatever fails",
    Ternary.UNKNOWN: "May be lost already, whatever fails",
}


def summary(answer: WhatIfAnswer) -> Iterator[Line]:
    """Yield who is nearest to total loss, and what the worst node costs."""
    if not answer.found.nodes.counted:
        says = "No ServicePort has endpoints: nothing can be lost."
        if answer.lost_now:
            says = "No new flow reaches an endpoint: nothing more can be lost."
        if Ternary.UNKNOWN in answer.lost_now.values():
            says = "No new flow is known to reach an endpoint: what failures cost is not known."
        yield Line((says,))
        return
    said = [each for each in (_nearest(answer), _costliest(answer)) if each]
    yield Line((Span(f"{'; '.join(said)}.", Style.STRONG),))


def _nearest(answer: WhatIfAnswer) -> str:
    """Return who survives least: for certain before perhaps, wholly before on one route."""
    found = answer.found
    numbers = {at: found.survives(at) for at in range(len(found.services))}
    least = min(number for number in numbers.values() if number is not None)
    alike = [
        (at, survival)
        for at, number in numbers.items()
        if number == least and (survival := found.survival(at)) is not None
    ]
    certain = [each for each in alike if each[1].at_most == least]
    total = [each for each in certain if each[1].is_total]
    told = total or certain or alike
    at, survival = told[0]
    who = named(found.services[at]) + (f" and {len(told) - 1:,} more" if told[1:] else "")
    is_ = ("are" if told[1:] else "is") if certain else "may be"
    from_ = "total loss" if total or not certain else "losing all flows on a route"
    nodes = ""
    if certain and len({each.sets for _, each in told}) == 1 and least < MOST_NAMES:
        nodes = f" ({names_of(answer, survival.sets[0])})"
    return f"{who} {is_} {count(least + 1, 'node')} from {from_}{nodes}"


def _costliest(answer: WhatIfAnswer) -> str:
    """Return what the worst node costs."""
    worst = next(iter(answer.found.of_nodes), None)
    if worst is None:
        return ""
    cost, all_of_them = worst.cost, answer.found.nodes.counted
    losing = f"losing {worst.names[0]}"
    partial = cost.degraded + cost.unknown
    if not cost.silenced and not partial:
        return f"losing any one node costs none of {count(all_of_them, 'ServicePort')} anything"
    of = f"of {count(all_of_them, 'ServicePort')}"
    parts = []
    if cost.silenced:
        parts.append(f"puts {len(cost.silenced):,} {of} in total loss")
        of = "other" if partial == 1 else "others"
    if partial:
        its = "its" if partial == 1 else "their"
        costs = "costs" if cost.degraded else "may cost"
        parts.append(f"{costs} {partial:,} {of} {_partial(answer, worst, its)}")
    return f"{losing} {' and '.join(parts)}"


def _partial(answer: WhatIfAnswer, failure: Failure, its: str) -> str:
    """Return what the ServicePorts lose at most that a failure does not silence; `its`: whose."""
    losses = losses_with(answer.found.incidence_of(failure), failure.groups)
    gone = set(failure.cost.silenced)
    partial = {at: each for at, each in losses.items() if at not in gone}
    rows = {rank(most): row for most, row in partial.values()}
    worst = rows[max(rows)].loss(failure.groups)
    told = (
        bounds_percent(worst)
        if len(rows) == 1
        else f"up to {percent(worst.upper, up=None if worst.is_exact else True)}"
    )
    every = answer.found.incidence_of(failure).services
    route = "worst route at the worst node" if answer.found.vantages else "worst route"
    where = "" if all(len(every[at]) == 1 for at in partial) else f", on {its} {route}"
    return f"{told} of {its} new flows{where}"


def totals(answer: WhatIfAnswer, services: Sequence[tuple[int, Survival]]) -> Iterator[Line]:
    """Yield how many ServicePorts survive how many failures, and of which routes that is."""
    if not services:
        return
    counts = Counter(each.survives for _, each in services)
    doubtful = sum(each.survives == 0 and each.at_most != 0 for _, each in services)
    told = [*_numbers(sorted(counts.items()), doubtful)]
    where = at_node(answer.view)
    if answer.found.vantages:
        where = f" at every one of {count(len(answer.found.vantages), 'node')}"
    yield Line((f"{count(len(services), 'ServicePort')}{where}: {', '.join(told)}.",))
    kinds = {each.kind: None for at, _ in services for each in answer.found.services[at].frontends}
    to = ", ".join(sorted(kind.value for kind in kinds))
    says = f"Of new flows, by the worst route (from any source to {to})."
    if answer.found.vantages:
        says += " Total loss: no node's rules lead to a living endpoint."
    yield Line((Span(says, Style.FAINT),))


def _numbers(counts: Sequence[tuple[int, int]], doubtful: int) -> Iterator[str]:
    """Yield how many survive the loss of how many nodes; the verb is said once.

    `doubtful`: of those that do not certainly survive the loss of one, how many may survive it.
    """
    is_first = True
    for nodes, number in counts[:MOST_NAMES]:
        if not nodes:
            certain, of_one = number - doubtful, "survive the loss of some single node"
            if certain:
                yield f"{certain:,} {'does' if certain == 1 else 'do'} not {of_one}"
            if doubtful:
                yield f"{doubtful:,} may not{'' if certain else f' {of_one}'}"
            continue
        of = f"any {'one' if nodes == 1 else f'{nodes:,}'}"
        if is_first:
            verb = "survives" if number == 1 else "survive"
            yield f"{number:,} {verb} the loss of {of} node{'' if nodes == 1 else 's'}"
        else:
            yield f"{number:,} of {of}"
        is_first = False
    rest = sum(number for _, number in counts[MOST_NAMES:])
    if rest:
        yield f"{rest:,} of more"


def without_flows(answer: WhatIfAnswer) -> Iterator[Line]:
    """Yield the ServicePorts without a flow that reaches an endpoint, and why."""
    names: dict[Ternary, list[str]] = {each: [] for each in Ternary}
    for at, service in answer.found.uncounted():
        names[answer.lost_now.get(at, Ternary.FALSE)].append(named(service))
    for lost, says in _LOST.items():
        if names[lost]:
            yield Line((Span(f"{says}: {listed(names[lost])}.", Style.BAD),))
    yield from _without_endpoints(names[Ternary.FALSE])


def _without_endpoints(names: Sequence[str]) -> Iterator[Line]:
    if names:
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        every = " All: kubeodds services." if more else ""
        told = ", ".join(names[:MOST_NAMES])
        yield Line((f"Without endpoints, whatever fails: {told}{more}.{every}",))


def doubts(answer: WhatIfAnswer) -> Iterator[Line]:
    """Yield what the numbers rest on, as far as where endpoints are is not certain."""
    found = answer.found
    if found.unplaced:
        yield Line((Span(unplaced(len(found.unplaced), answer.cluster), Style.WARNING),))
    elif found.unzoned and found.of_zones:
        number = count(len(found.unzoned), "endpoint")
        yield Line((Span(f"Zone unknown for {number}: losses by zone are ranges.", Style.WARNING),))
        yield Line((Span(WITHOUT_ZONES, Style.WARNING),))
    if found.is_interrupted:
        says = "Interrupted: not all sets of several nodes were judged."
        yield Line((Span(says, Style.WARNING),))
    yield from lines(answer.view, answer.absent)


def names_of(answer: WhatIfAnswer, groups: Sequence[int]) -> str:
    """Return the names of nodes, or how many they are."""
    names = [answer.found.nodes.groups[each] for each in groups]
    return ", ".join(names) if len(names) <= MOST_NAMES else count(len(names), "node")
