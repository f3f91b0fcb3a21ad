"""``lab run`` and ``lab verify`` for people: predicted and measured, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from analyzer.failure.agreement import JudgedEndpoint, JudgedMeasurement
from analyzer.failure.binomial import noticed_deviation
from analyzer.kubeproxy.view import Source
from analyzer.model.flow_trace import FlowTrace
from analyzer.model.measurement import ANSWERED, Measurement
from analyzer.model.probability import Bounds, Dyadic, capped_sum
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.lab_answers import LabAnswer
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.phrases import SOURCES, assumed, count

_COLUMNS = (
    Column("ENDPOINT"),
    Column("NODE", spare=1),
    Column("", right=True, spare=4),
    Column("PREDICTED", right=True),
    Column("COUNT", right=True),
    Column("MEASURED", right=True),
    Column("RULE COUNTER", right=True, spare=3),
    Column("ANSWERED", right=True),
    Column("P-VALUE", right=True, spare=2),
    Column("VERDICT"),
)

#: What loaded the rules.
BACKENDS: Final[Mapping[str, str]] = {"legacy": "iptables-legacy", "nft": "iptables-nft"}


def render(answer: LabAnswer) -> Document:
    """Return a table for each measurement, and the evidence against the prediction."""
    blocks: list[Block] = []
    for verdict in answer.verdicts:
        blocks += _measurement(verdict, answer.dead)
    for trace in answer.traces:
        blocks += _trace(trace)
    return Document([*blocks, *assumed(answer.diagnostics), *_end(answer)])


def _trace(each: FlowTrace) -> Iterator[Line]:
    says = f"Trace of {each.flow} ({each.service}, from {SOURCES[Source(each.source)]}): "
    number = count(len(each.matched), "rule")
    if each.differs is None:
        good = Span("agrees", Style.GOOD)
        yield Line((f"{says}the kernel matched {number}, ", good, " with `kubeodds trace`."))
    else:
        yield Line((f"{says}the kernel matched {number}, ", Span("DISAGREES", Style.BAD), "."))
        yield Line((Span(f"    {each.differs}", Style.BAD),))
    for rule in each.matched:
        yield Line((f"    {rule}",), whole=True)
    yield Line()


def _measurement(verdict: JudgedMeasurement, dead: str) -> list[Block]:
    measured = verdict.measurement
    node = f" at node {measured.node}" if measured.node else ""
    head = (
        f"{count(measured.flows, 'new flow')} from {SOURCES[Source(measured.source)]} to "
        f"{measured.service} ({measured.protocol}, {measured.frontend}){node}, dead: {dead}"
    )
    loaded = BACKENDS.get(measured.backend, measured.backend)
    where = f"{loaded} on Linux {measured.kernel}, in {measured.seconds:.2f} s"
    rows = tuple(tuple(_row(v, measured)) for v in verdict.endpoints)
    return [
        Line((Span(head, Style.STRONG),)),
        Line((Span(where, Style.FAINT),)),
        Line(),
        *((TextTable(_COLUMNS, rows), Line()) if rows else ()),
        *_summary(verdict),
        Line(),
    ]


def _row(verdict: JudgedEndpoint, measured: Measurement) -> Iterator[Cell]:
    each = verdict.endpoint
    style = Style.BAD if each.dead else Style.PLAIN
    yield Span(each.name, style)
    how = f" DEAD: {each.death}" if each.death else " DEAD"
    late = f" {each.death}" if each.death else ""
    yield (each.node or "?", Span(how, Style.BAD) if each.dead else Span(late, Style.WARNING))
    yield bounds_fraction(each.predicted)
    yield bounds_percent(each.predicted)
    yield f"{each.landed:,}"
    yield _percent(each.landed, measured.flows)
    yield "-" if each.counted is None else f"{each.counted:,}"
    told = f"{each.answered:,}" + (f" (+{each.refused:,} refused)" if each.refused else "")
    yield told if measured.protocol in ANSWERED else "-"
    yield f"{verdict.p_value:.2g}"
    yield judged(agrees=verdict.agrees)


def judged(*, agrees: bool) -> Span:
    """Return a verdict in a word."""
    return Span("agrees", Style.GOOD) if agrees else Span("DISAGREES", Style.BAD)


def verdict_of_all(
    *,
    verdict: Span,
    as_far: str,
    rate: float,
    of: str = "the whole run",
    tests: str = "exact binomial tests, Holm-corrected",
    more: str = "",
) -> Line:
    """Return the verdict on all measurements.

    `of` says what that is, `as_far` what was not judged, and `more` what else there is to say of
    the tests, if anything.
    """
    how = Span(f" ({tests}; false-alarm rate {rate:.0e} for {of}{more})", Style.FAINT)
    return Line(("Verdict: ", verdict, Span(as_far, Style.WARNING), how))


def not_measured(routes: int) -> str:
    """Return of how many routes a verdict says nothing; empty if there are none."""
    return f"; {count(routes, 'route')} not measured" if routes else ""


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}%"


def _summary(verdict: JudgedMeasurement) -> Iterator[Line]:
    measured = verdict.measurement
    dead = [e for e in measured.endpoints if e.dead]
    if dead:
        lost = sum(e.landed for e in dead)
        predicted = Bounds(capped_sum(e.predicted.lower for e in dead), _upper(measured))
        yield Line(
            (
                "On dead endpoints: predicted ",
                Span(bounds_percent(predicted), Style.STRONG),
                ", measured ",
                Span(_percent(lost, measured.flows), Style.STRONG),
                f" ({lost:,} of {measured.flows:,}).",
            )
        )
    if measured.passed:
        yield Line((f"{count(measured.passed, 'flow')} left the node unchanged.",))
    yield from _ended(measured)
    if measured.repeated:
        stayed = measured.repeated - measured.strayed
        yield Line((f"Session affinity: {stayed:,} of {measured.repeated:,} second flows stayed.",))
    if measured.repeated_ended:
        nowhere = f"{count(measured.repeated_ended, 'second flow')} arrived nowhere."
        yield Line((f"Session affinity: {nowhere}",))
    if verdict.endpoints:
        yield Line((Span(_sharpness(verdict), Style.FAINT),))
    difference = measured.counter_difference
    counters = "not read" if difference is None else str(difference)
    lost = 0 if measured.ended.upper else measured.unaccounted
    yield Line((f"Unaccounted for: {lost}. Counters minus captures: {counters}.",))


def _ended(measured: Measurement) -> Iterator[Line]:
    """Yield the flows that rules drop or reject."""
    if measured.ended_at is not None:
        yield Line((f"A flow that was traced ended at {measured.ended_at}",))
    if not measured.ended.upper:
        return
    ended = measured.rejected + measured.unaccounted
    how = f"{measured.rejected:,} rejected, {measured.unaccounted:,} dropped"
    if measured.source == Source.NODE.value:
        # Its own stack refuses what OUTPUT drops, and of what INPUT rejects the lab hears nothing.
        how = f"{ended:,} of {measured.flows:,}"
    yield Line(
        (
            "Rejected or dropped: predicted ",
            Span(bounds_percent(measured.ended), Style.STRONG),
            ", measured ",
            Span(_percent(ended, measured.flows), Style.STRONG),
            f" ({how}).",
        )
    )
    for packets, rule in measured.ended_by or ():
        yield Line((f"{count(packets, 'packet')}: {rule}",))


def _sharpness(verdict: JudgedMeasurement) -> str:
    """Return what a wrong prediction would have had to be wrong by, to be noticed."""
    measured, rate = verdict.measurement, verdict.false_alarm_rate / len(verdict.endpoints)
    each = [noticed_deviation(measured.flows, e.predicted, rate) for e in measured.endpoints]
    noticed = [deviation for deviation in each if deviation is not None]
    if len(noticed) < len(each):
        return "With so few flows, or such wide bounds, some wrong shares would not be noticed."
    return f"Smallest deviation this run detects: {100 * max(noticed):.2f} percentage points."


def _upper(measured: Measurement) -> Dyadic:
    alive = capped_sum(e.predicted.lower for e in measured.endpoints if not e.dead)
    dead = capped_sum(e.predicted.upper for e in measured.endpoints if e.dead)
    return min(dead, ~alive)


def _end(answer: LabAnswer) -> Iterator[Line]:
    for verdict in answer.verdicts:
        for fault in verdict.faults:
            yield Line((Span(f"{verdict.measurement.service}: {fault}", Style.BAD),))
    as_far = not_measured(len(answer.left_out))
    yield verdict_of_all(verdict=judged(agrees=answer.agrees), as_far=as_far, rate=answer.rate)
