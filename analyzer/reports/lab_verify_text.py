"""``lab verify`` for people: a line for each ServicePort, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from analyzer.failure.agreement import JudgedMeasurement
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.lab_answers import LabAnswer
from analyzer.reports.lab_text import judged, not_measured, verdict_of_all
from analyzer.reports.phrases import assumed, count

_COLUMNS: Final = (
    Column("SERVICE PORT"),
    Column("PROTO", spare=2),
    Column("MEASURED", right=True),
    Column("FLOWS", right=True),
    Column("FARTHEST OFF", right=True, spare=1),
    Column("LEAST P-VALUE", right=True, spare=3),
    Column("VERDICT"),
)

#: Reasons' routes that are named.
_FEW: Final = 3


def render(answer: LabAnswer) -> Document:
    """Return the table, the evidence against the prediction, and what was not measured."""
    by_service: dict[tuple[str, str], list[JudgedMeasurement]] = {}
    for verdict in answer.verdicts:
        measured = verdict.measurement
        by_service.setdefault((measured.service, measured.protocol), []).append(verdict)
    rows = tuple(tuple(_row(*key, verdicts)) for key, verdicts in by_service.items())
    blocks: list[Block] = [Line((f"Dead: {answer.dead}",)), Line()]
    if rows:
        blocks += [TextTable(_COLUMNS, rows), Line()]
    return Document([*blocks, *_faults(answer), *_left_out(answer), *_end(answer)])


def _row(name: str, protocol: str, verdicts: list[JudgedMeasurement]) -> Iterator[Cell]:
    ends = [each for verdict in verdicts for each in verdict.endpoints]
    off = [_off(verdict) for verdict in verdicts]
    yield name
    yield protocol
    yield f"{len(verdicts):,}"
    yield f"{sum(verdict.measurement.flows for verdict in verdicts):,}"
    yield f"{100 * max(off):.2f}%"
    yield f"{min((each.p_value for each in ends), default=1.0):.2g}"
    agrees = all(verdict.agrees for verdict in verdicts)
    yield judged(agrees=agrees)


def _off(verdict: JudgedMeasurement) -> float:
    """Return by how much the count farthest off its share is, of all flows."""
    flows = verdict.measurement.flows
    return max(
        (
            max(
                float(each.predicted.lower) - each.landed / flows,
                each.landed / flows - float(each.predicted.upper),
                0.0,
            )
            for each in (v.endpoint for v in verdict.endpoints)
        ),
        default=0.0,
    )


def _faults(answer: LabAnswer) -> Iterator[Line]:
    for verdict in answer.verdicts:
        measured = verdict.measurement
        for fault in verdict.faults:
            where = f"{measured.service} ({measured.frontend} from {measured.source})"
            yield Line((Span(f"{where}: {fault}", Style.BAD),))


def _left_out(answer: LabAnswer) -> Iterator[Line]:
    reasons = Counter(each.reason for each in answer.left_out)
    for reason, number in reasons.most_common():
        some = dict.fromkeys(e.service for e in answer.left_out if e.reason == reason)
        names = ", ".join(list(some)[:_FEW]) + (", ..." if len(some) > _FEW else "")
        yield Line((f"Not measured: {count(number, 'route')} of {names}: {reason}.",))


def _end(answer: LabAnswer) -> Iterator[Line]:
    measured = answer.routes or 0
    predicted = measured + len(answer.left_out)
    yield Line(
        (
            f"{count(predicted, 'route')} predicted: {measured:,} measured, "
            f"{len(answer.left_out):,} not.",
        )
    )
    yield from assumed(answer.diagnostics)
    sharp = ""
    if answer.resolution is not None:
        sharp = f"; deviations of {100 * answer.resolution:g} percentage points are noticed"
    agrees, as_far = judged(agrees=answer.agrees), not_measured(len(answer.left_out))
    yield verdict_of_all(verdict=agrees, as_far=as_far, rate=answer.rate, more=sharp)
