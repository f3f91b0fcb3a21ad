"""``lab repair`` for people: each route before, with the repair, and after a sync."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.agreement import JudgedMeasurement
from analyzer.model.probability import Bounds, capped_sum
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.lab_answers import LabRepairAnswer, RepairedRoute
from analyzer.reports.lab_text import BACKENDS, judged, not_measured, verdict_of_all
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import assumed, count

_COLUMNS = (
    Column("SERVICE PORT", shortens=True),
    Column("FRONTEND"),
    Column("FROM"),
    Column("PREDICTED", right=True, spare=1),
    Column("LOST", right=True),
    Column("REPAIRED", right=True),
    Column("REFUSED", right=True, spare=2),
    Column("SYNCED", right=True),
    Column("VERDICT"),
)


def render(answer: LabRepairAnswer) -> Document:
    """Return a row for each route, what else was checked, and the verdict."""
    return Document([*_head(answer), *assumed(answer.diagnostics), *_end(answer)])


def _head(answer: LabRepairAnswer) -> Iterator[Block]:
    measured = answer.routes[0].before.measurement
    node = f" at node {answer.node}" if answer.node else ""
    yield Line(
        (
            Span(
                f"{count(len(answer.routes), 'route')} to dead endpoints{node}, "
                f"{measured.flows:,} new flows each, three times; dead: {answer.dead}",
                Style.STRONG,
            ),
        )
    )
    loaded = BACKENDS.get(measured.backend, measured.backend)
    yield Line((Span(f"{loaded} on Linux {measured.kernel}", Style.FAINT),))
    yield Line()
    yield TextTable(_COLUMNS, tuple(tuple(_row(each)) for each in answer.routes))
    yield Line()
    yield Line(
        (
            Span(
                "Of new flows on dead endpoints: predicted and lost before; with the repair; "
                "with kube-proxy's rules written again on top.",
                Style.FAINT,
            ),
        )
    )


def _row(each: RepairedRoute) -> Iterator[Cell]:
    before = each.before.measurement
    yield before.service
    yield before.frontend.removeprefix("ClusterIP ")
    yield before.source
    shares = [e.predicted for e in before.endpoints if e.dead]
    yield bounds_percent(
        Bounds(capped_sum(s.lower for s in shares), capped_sum(s.upper for s in shares))
    )
    yield f"{lost(each.before):,}"
    yield _none(lost(each.after))
    refused = each.after.measurement.rejected
    yield f"{refused:,}" if refused else ""
    yield _none(lost(each.synced))
    agrees = each.before.agrees and each.after.agrees and each.synced.agrees
    yield judged(agrees=agrees)


def lost(verdict: JudgedMeasurement) -> int:
    """Return how many flows went to dead endpoints."""
    return sum(e.landed for e in verdict.measurement.endpoints if e.dead)


def _none(number: int) -> Span:
    return Span(f"{number:,}", Style.BAD if number else Style.GOOD)


def _end(answer: LabRepairAnswer) -> Iterator[Line]:
    for check in answer.checks:
        sign = Span("holds", Style.GOOD) if check.holds else Span("FAILS", Style.BAD)
        yield Line((sign, f": {check.says}."))
    for each in answer.routes:
        for verdict in (each.before, each.after, each.synced):
            for fault in verdict.faults:
                yield Line((Span(f"{verdict.measurement.service}: {fault}", Style.BAD),))
    for out in answer.left_out:
        yield Line((f"Not replayed: {out.service} {out.frontend} from {out.source}: {out.reason}",))
    does = Span("the repair works", Style.GOOD)
    yield verdict_of_all(
        verdict=does if answer.agrees else judged(agrees=False),
        as_far=not_measured(len(answer.left_out)),
        rate=answer.rate,
    )
