"""``whatif`` for people: a sentence, the costliest failures, the most fragile ServicePorts.

Both tables fit on a screen: of each kind of failure the worst few are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analyzer.failure.smallest import Survival
from analyzer.failure.whatif import Failure, FailureKind
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.reports.affinity import affinity_note
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.control_plane_text import lines as control_plane
from analyzer.reports.control_plane_text import word
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.freshness import freshness_line
from analyzer.reports.lost_now import sentences
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import assumed, count, named, proto
from analyzer.reports.predicted_text import dropped, grounds, head
from analyzer.reports.whatif_breaches import breaches, some
from analyzer.reports.whatif_order import mean, services_in_order, shown_failures
from analyzer.reports.whatif_summary import doubts, names_of, summary, totals, without_flows
from analyzer.reports.whatif_vantages import at_cell, dead_nodes, mean_cell
from analyzer.reports.whatif_ways import brief_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_FAILURES: Final = (
    Column("IF THIS FAILS", shortens=True),
    Column("WORST", right=True),
    Column("OF SERVICE PORT", shortens=True),
    Column("AT", shortens=True),
    Column("MEAN", right=True, spare=3),
    Column("TOTAL LOSS", right=True),
    Column("PARTIAL", right=True, spare=4),
    Column("API", right=True),
)
_SERVICES: Final = (
    Column("SERVICE PORT", shortens=True),
    Column("PROTO", spare=2),
    Column("SURVIVES", right=True),
    Column("ZONES", right=True, spare=3),
    Column("LOST WITH", foldable=True),
    Column("WORST NODE", spare=4, shortens=True),
    Column("COSTS", right=True, spare=5),
    Column("AT", shortens=True),
    Column("MEAN OVER NODES", right=True, spare=6),
)
#: ServicePorts that are shown where not all are.
_MOST_SERVICES: Final = 5


def render(answer: WhatIfAnswer) -> Document:
    """Return the summary, then both tables, then what was not evaluated."""
    services = services_in_order(answer)
    blocks: list[Block] = [
        *freshness_line(answer.freshness),
        *sentences(answer.view.services),
        *summary(answer),
        *breaches(answer),
        *totals(answer, services),
        *without_flows(answer),
        *dropped(answer.every_node),
        *doubts(answer),
        *([] if answer.prediction is None else head(answer.prediction)),
        Line(),
    ]
    failures = shown_failures(answer)
    if failures:
        rows = tuple(_failure(answer, each) for each in failures)
        table = _table(_FAILURES, rows)
        blocks += [table, *_footnotes(answer, failures), Line()]
    shown = services if answer.every else services[:_MOST_SERVICES]
    if shown:
        rows = tuple(_service(answer, at, survival) for at, survival in shown)
        table = _table(_SERVICES, rows)
        blocks += [table, *_hidden(len(services) - len(shown)), Line()]
    pinned = [answer.found.services[at] for at, _ in services]
    notes = [
        *_sets(answer),
        *affinity_note(pinned, answer.view.mode, lost=True),
        *([] if answer.prediction is None else grounds(answer.prediction)),
        *assumed(answer.diagnostics),
    ]
    if notes:
        blocks += [*notes, Line()]
    return Document([*blocks, *control_plane(answer, failures)])


# --- failures --------------------------------------------------------------


def _failure(answer: WhatIfAnswer, failure: Failure) -> tuple[Cell, ...]:
    cost, bounds = failure.cost, failure.worst
    service = "" if cost.row is None else named(answer.found.service(cost.row))
    style = _style(bounds)
    own = "*" if failure.takes_own else ""
    return (
        Span(f"{_title(failure)}{own}", Style.STRONG),
        Span("0.0%" if bounds is None else bounds_percent(bounds), style),
        service if bounds is not None and bounds.upper else "",
        at_cell(answer, cost.row, dead_nodes(answer, failure)),
        mean(answer, cost),
        Span(f"{len(cost.silenced):,}", Style.BAD if cost.silenced else Style.PLAIN),
        f"{cost.degraded:,}" + (f" to {cost.degraded + cost.unknown:,}" if cost.unknown else ""),
        word(answer.control_plane_after(failure)),
    )


def _title(failure: Failure) -> str:
    names = failure.names
    match failure.kind:
        case FailureKind.NODE:
            return f"node {names[0]}"
        case FailureKind.ZONE:
            return f"zone {names[0]}"
        case FailureKind.CONTROL_PLANE:
            return f"control plane ({names[0] if len(names) == 1 else count(len(names), 'node')})"
        case FailureKind.SET:
            return " + ".join(names)


def _style(bounds: Bounds | None) -> Style:
    if bounds is None or not bounds.upper:
        return Style.GOOD
    return Style.BAD if bounds.lower == ALWAYS else Style.WARNING


def _footnotes(answer: WhatIfAnswer, shown: Sequence[Failure]) -> Iterator[Line]:
    if any(each.takes_own for each in shown):
        says = "* includes the node that the dump is from: once dead it sends no flows itself."
        yield Line((Span(says, Style.FAINT),))
    found = answer.found
    kinds = Counter(each.kind for each in shown)
    told = [
        f"{kinds[kind]:,} of {count(len(every), noun)}"
        for kind, every, noun in (
            (FailureKind.ZONE, found.of_zones, "zone"),
            (FailureKind.NODE, found.of_nodes, "node"),
        )
        if len(every) > kinds[kind]
    ]
    for sets in found.sets:
        here = sum(each.kind is FailureKind.SET and len(each.groups) == sets.size for each in shown)
        if sets.number > here:
            told.append(f"{here:,} of {sets.number:,} sets of {sets.size} nodes")
    if told:
        says = f"The worst: {', '.join(told)}. More: --all, --top N."
        yield Line((Span(says, Style.FAINT),))


# --- ServicePorts ----------------------------------------------------------


def _service(answer: WhatIfAnswer, at: int, survival: Survival) -> tuple[Cell, ...]:
    found = answer.found
    service = found.services[at]
    lost: Bounds | None = None
    if survival.worst is not None and survival.worst_row is not None:
        lost = survival.worst_row.loss((survival.worst,))
    few = Style.BAD if not survival.survives else Style.PLAIN
    return (
        Span(service.name.text, Style.STRONG),
        proto(service.protocol, service.version),
        Span(_survives(survival), few),
        _zones(answer, at),
        _lost_with(answer, survival),
        "" if survival.worst is None else found.nodes.groups[survival.worst],
        "" if lost is None else Span(bounds_percent(lost), _style(lost)),
        at_cell(answer, survival.worst_row, _worst_node(answer, survival)),
        mean_cell(answer, at, survival),
    )


def _worst_node(answer: WhatIfAnswer, survival: Survival) -> Sequence[str]:
    return () if survival.worst is None else (answer.found.nodes.groups[survival.worst],)


def _table(columns: Sequence[Column], rows: Sequence[tuple[Cell, ...]]) -> TextTable:
    """Return a table without a column that no row has anything in."""
    kept = [at for at in range(len(columns)) if any(row[at] != "" for row in rows)]
    return TextTable(
        tuple(columns[at] for at in kept), tuple(tuple(row[at] for at in kept) for row in rows)
    )


def _survives(survival: Survival) -> str:
    """Return ``1 node``; with a sign where it may be more."""
    more = "" if survival.at_most == survival.survives else ">="
    return f"{more}{count(survival.survives, 'node')}"


def _zones(answer: WhatIfAnswer, at: int) -> str:
    zones = answer.found.survival_of_zones(at) if answer.found.of_zones else None
    if zones is None:
        return ""
    return f"{'' if zones.at_most == zones.survives else '>='}{zones.survives:,}"


def _lost_with(answer: WhatIfAnswer, survival: Survival) -> str:
    row = survival.set_row
    if not survival.sets:
        return "not known"
    told = names_of(answer, survival.sets[0])
    if survival.sets[1:]:
        told += f", or {count(len(survival.sets) - 1, 'other set')}"
    return told if survival.is_total or row is None else f"{told}: {brief_way(row)}"


def _hidden(number: int) -> Iterator[Line]:
    if number:
        says = f"{count(number, 'more ServicePort')} that survive as much or more: --all"
        yield Line((Span(says, Style.FAINT),))


def _may_be_more(answer: WhatIfAnswer, size: int) -> bool:
    """Return whether sets of so many nodes may put a ServicePort in total loss that is not known.

    One that certainly survives as many, or of which it is certain how many, is no such ServicePort.
    """
    found = map(answer.found.survival, range(len(answer.found.services)))
    return any(
        each is not None and each.survives < size and each.at_most != each.survives
        for each in found
    )


# --- the last lines --------------------------------------------------------


def _sets(answer: WhatIfAnswer) -> Iterator[Line]:
    """Yield what sets of several nodes silence."""
    for sets in answer.found.sets:
        if sets.silencing is not None:
            put = "puts" if sets.silencing == 1 else "put"
            if sets.silencing < sets.number and _may_be_more(answer, sets.size):
                put = f"certainly {put}"
            of = f"{sets.silencing:,} of {count(sets.number, 'pair')} of nodes"
            yield Line((f"{of} {put} a ServicePort in total loss.",))
        most = sets.most
        if most.silenced:
            names = some([answer.found.nodes.groups[each] for each in most.groups])
            bound = f", at most {most.at_most:,} can be" if most.at_most > most.silenced else ""
            total = count(most.silenced, "ServicePort")
            yield Line(
                (f"Most in total loss without {sets.size} nodes: {total} ({names}){bound}.",)
            )
        if not sets.is_complete:
            says = (
                f"Of sets of {sets.size} nodes, only those worst for one ServicePort were judged."
            )
            yield Line((Span(says, Style.FAINT),))
