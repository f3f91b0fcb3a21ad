"""``lab run --pcap`` for people: expected and measured, and where flows went."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.agreement import JudgedMeasurement, passing
from analyzer.kubeproxy.view import Source
from analyzer.model.lab_pcap import PassedOver, ReplayedFlow, StandIn
from analyzer.model.measurement import ANSWERED, Measurement
from analyzer.model.probability import Bounds
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.lab_pcap_answer import LabPcapAnswer
from analyzer.reports.lab_text import BACKENDS, judged, verdict_of_all
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import SOURCES, assumed, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ROUTES: Final = (
    Column("SERVICE PORT"),
    Column("PROTO", spare=3),
    Column("FRONTEND"),
    Column("FROM", spare=1),
    Column("LANDED AT", begins=True),
    Column("EXPECTED", right=True),
    Column("COUNT", right=True),
    Column("ANSWERED", right=True, spare=2),
    Column("P-VALUE", right=True, spare=4),
    Column("VERDICT"),
)
_CLIENTS: Final = (
    Column("CLIENT"),
    Column("IS", spare=1),
    Column("STANDS AS"),
    Column("FLOWS", right=True),
)
_FLOWS: Final = (
    Column("PACKET", right=True),
    Column("SECOND", right=True, spare=1),
    Column("CLIENT"),
    Column("TO"),
    Column("LANDED AT", begins=True),
    Column("PREDICTED", right=True),
    Column("CLIENT SAW", spare=2),
)
_PASSED: Final = (
    Column("PACKETS", right=True),
    Column("NOT REPLAYED"),
    Column("FOR EXAMPLE", foldable=True),
)
#: Clients and flows that are shown; JSON has all.
_MOST: Final = 20


def render(answer: LabPcapAnswer) -> Document:
    """Return the outcomes of a capture's flows, and the evidence against the prediction."""
    return Document([*_blocks(answer), *assumed(answer.diagnostics), *_end(answer)])


def _blocks(answer: LabPcapAnswer) -> Iterator[Block]:
    measured = answer.verdicts[0].measurement
    node = f" at node {answer.node}" if answer.node else ""
    how = "at the captured intervals" if answer.timing == "kept" else "one right after the other"
    yield Line(
        (
            Span(
                f"{count(len(answer.flows), 'flow')} of {answer.file}{node}, {how}, "
                f"dead: {answer.dead}",
                Style.STRONG,
            ),
        )
    )
    loaded = BACKENDS.get(measured.backend, measured.backend)
    where = f"{loaded} on Linux {measured.kernel}, in {measured.seconds:.2f} s"
    yield Line((Span(where, Style.FAINT),))
    yield Line()
    yield TextTable(_ROUTES, tuple(row for each in answer.verdicts for row in _route(each)))
    yield Line()
    yield TextTable(_CLIENTS, tuple(_client(each) for each in answer.stand_ins[:_MOST]))
    yield from _more(len(answer.stand_ins), "client")
    yield Line()
    yield TextTable(_FLOWS, tuple(_flow(each) for each in answer.flows[:_MOST]))
    yield from _more(len(answer.flows), "flow")
    yield Line()
    if answer.passed_over:
        yield TextTable(_PASSED, tuple(_passed(each) for each in answer.passed_over))
        yield Line()


def _more(number: int, noun: str) -> Iterator[Line]:
    if number > _MOST:
        yield Line((f"... and {count(number - _MOST, f'more {noun}')}: --format json has all.",))


def _route(verdict: JudgedMeasurement) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each end that flows of a route have, or should have."""
    measured = verdict.measurement
    name = measured.service, measured.protocol, measured.frontend, measured.source
    rows: list[tuple[Cell, ...]] = []
    for each in verdict.endpoints:
        endpoint = each.endpoint
        style = Style.BAD if endpoint.dead else Style.PLAIN
        told = f"{endpoint.answered:,}" if measured.protocol in ANSWERED else "-"
        where: Cell = (endpoint.name, Span(" dead", style) if endpoint.dead else "")
        expected = _expected(endpoint.predicted, measured)
        p_value = f"{each.p_value:.2g}"
        rows.append((where, expected, f"{endpoint.landed:,}", told, p_value))
    ended = measured.rejected + measured.unaccounted
    if ended or measured.ended.upper:
        rows.append(
            ("rejected or dropped", _expected(measured.ended, measured), f"{ended:,}", "-", "-")
        )
    unchanged = passing(measured)
    if measured.passed or unchanged.lower:
        expected = _expected(unchanged, measured)
        rows.append(("nowhere: unchanged", expected, f"{measured.passed:,}", "-", "-"))
    if measured.repeated or measured.strayed:
        stayed = measured.repeated - measured.strayed
        rows.append(("stayed: affinity", f"{measured.repeated:,}", f"{stayed:,}", "-", "-"))
    for at, row in enumerate(rows):
        first = at == 0
        verdict_cell: Cell = judged(agrees=verdict.agrees) if first else ""
        yield (*(name if first else ("", "", "", "")), *row, verdict_cell)


def _expected(share: Bounds, measured: Measurement) -> str:
    return _range(float(share.lower) * measured.flows, float(share.upper) * measured.flows)


def _range(low: float, high: float) -> str:
    return f"{low:,.1f}" if low == high else f"{low:,.1f} to {high:,.1f}"


def _client(each: StandIn) -> tuple[Cell, ...]:
    return each.client, SOURCES[Source(each.source)], each.stands_as, f"{each.flows:,}"


def _flow(each: ReplayedFlow) -> tuple[Cell, ...]:
    bad = each.outcome in ("dead-endpoint", "dropped", "rejected", "ended")
    where = {
        "dead-endpoint": f"{each.endpoint} dead",
        "endpoint": each.endpoint or "?",
        "ended": "rejected or dropped",
    }
    landed = where.get(each.outcome, each.outcome)
    saw = {None: "nothing", False: "a refusal", True: "an answer"}[each.answered]
    if each.answered is None and each.outcome in ("rejected", "ended"):
        saw = "-"  # the node's own stack did not send it: a refusal is not listened for
    client = f"[{each.client}]" if ":" in each.client else each.client
    return (
        f"{each.packet:,}",
        f"{each.at:.3f}",
        f"{client}:{each.client_port}",
        f"{each.to} ({each.service})",
        Span(landed, Style.BAD if bad else Style.PLAIN),
        "stays" if each.repeated else bounds_percent(each.predicted),
        saw,
    )


def _passed(each: PassedOver) -> tuple[Cell, ...]:
    style = Style.PLAIN if each.judged else Style.WARNING
    return f"{each.packets:,}", Span(each.reason, style), ", ".join(each.examples)


def _dead(answer: LabPcapAnswer) -> Iterator[Line]:
    """Yield how many flows reached dead endpoints, if any is dead."""
    ends = [(v.measurement, e.endpoint) for v in answer.verdicts for e in v.endpoints]
    dead = [(measured, each) for measured, each in ends if each.dead]
    if dead:
        low = sum(float(each.predicted.lower) * measured.flows for measured, each in dead)
        high = sum(float(each.predicted.upper) * measured.flows for measured, each in dead)
        landed = sum(each.landed for _, each in dead)
        drawn = sum(verdict.measurement.flows for verdict in answer.verdicts)
        kept = sum(verdict.measurement.repeated for verdict in answer.verdicts)
        of = f" of {count(drawn, 'flow')}."
        if kept:
            of = f" of {count(drawn, 'drawn flow')}; session affinity decides the other {kept:,}."
        yield Line(
            (
                "On dead endpoints: expected ",
                Span(_range(low, high), Style.STRONG),
                ", measured ",
                Span(f"{landed:,}", Style.STRONG),
                of,
            )
        )


def _end(answer: LabPcapAnswer) -> Iterator[Line]:
    yield from _dead(answer)
    for verdict in answer.verdicts:
        measured = verdict.measurement
        for fault in verdict.faults:
            where = f"{measured.service} ({measured.frontend} from {measured.source})"
            yield Line((Span(f"{where}: {fault}", Style.BAD),))
    over = sum(each.packets for each in answer.passed_over)
    yield Line(
        (
            f"{count(answer.packets, 'packet')}: {len(answer.flows):,} began flows that were "
            f"replayed, {over:,} did not.",
        )
    )
    if answer.cut is not None:
        yield Line((Span(f"The capture is incomplete: {answer.cut}.", Style.WARNING),))
    read = (("Rule counters", answer.counters), ("conntrack", answer.conntrack))
    says = " ".join(
        f"{name}: not read." if off is None else f"{name}: off by {off:,} from what was seen."
        for name, off in read
    )
    yield Line((says,))
    yield verdict_of_all(
        verdict=judged(agrees=answer.agrees),
        as_far=_as_far(answer),
        rate=answer.false_alarm_rate,
        of="all routes together",
    )


def _as_far(answer: LabPcapAnswer) -> str:
    """Return of how many flows the verdict says nothing; empty where it is of all."""
    number = answer.not_judged  # packets, of which some may begin no flow
    return f"; up to {count(number, 'flow')} to Services not judged" if number else ""
