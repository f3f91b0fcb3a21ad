"""``lab run --for`` for people: phases, endpoints, seconds, and connections."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy.view import Source
from analyzer.model.lab_phases import Bucket, OpenConnection
from analyzer.model.measurement import ANSWERED
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.lab_phases_answer import FollowedRoute, LabPhasesAnswer, Phase, lost_of
from analyzer.reports.lab_text import BACKENDS, judged, not_measured, verdict_of_all
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import SOURCES, assumed, count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_PHASES: Final = (
    Column("FROM", right=True),
    Column("TO", right=True),
    Column("DEAD", shortens=True),
    Column("FLOWS", right=True),
    Column("PREDICTED LOST", right=True),
    Column("LOST", right=True),
    Column("99% INTERVAL", spare=2),
    Column("VERDICT"),
)
_ENDPOINTS: Final = (
    Column("FROM", right=True),
    Column("ENDPOINT"),
    Column("", spare=1),
    Column("PREDICTED", right=True),
    Column("COUNT", right=True),
    Column("MEASURED", right=True),
    Column("ANSWERED", right=True),
    Column("P-VALUE", right=True, spare=2),
)
_BUCKETS: Final = (
    Column("SECOND", right=True),
    Column("FLOWS", right=True),
    Column("LOST", right=True),
    Column("", spare=2),
    Column("AT", foldable=True),
)
_ROUTE: Final = Column("ROUTE", right=True)
_CONNECTIONS: Final = (
    Column("CONNECTION", right=True),
    Column("ENDPOINT"),
    Column("BYTES", right=True, spare=1),
    Column("MEASURED", foldable=True),
    Column("PREDICTED", foldable=True),
    Column("VERDICT"),
)
#: Signs of a bar that is full.
_WIDE: Final = 20


def render(answer: LabPhasesAnswer) -> Document:
    """Return the events, phase by phase, and the evidence against the prediction."""
    return Document([*_blocks(answer), *assumed(answer.diagnostics), *_end(answer)])


def _blocks(answer: LabPhasesAnswer) -> Iterator[Block]:
    measured = answer.phases[0].verdict.measurement
    node = f" at node {measured.node}" if measured.node else ""
    several = len(answer.routes) > 1
    on = f", in turn on {len(answer.routes):,} routes" if several else f" {_to(answer.routes[0])}"
    head = (
        f"{answer.rate:g} new flows a second for {answer.seconds:g}s{on}{node}, dead at first: "
        f"{answer.dead}"
    )
    loaded = BACKENDS.get(measured.backend, measured.backend)
    yield Line((Span(head, Style.STRONG),))
    yield Line((Span(f"{loaded} on Linux {measured.kernel}", Style.FAINT),))
    yield Line()
    for event in answer.events:
        took = 1000 * (event.ended - event.begun)
        yield Line((f"{event.begun:.2f}s: {event.says}, done in {took:.0f} ms",))
    if answer.events:
        yield Line()
    for at, route in enumerate(answer.routes):
        if several:
            yield Line((Span(f"Route {at + 1}: {_to(route)}", Style.STRONG),))
            yield Line()
        phases = answer.phases_of(at)
        yield TextTable(_PHASES, tuple(tuple(_phase(each)) for each in phases))
        yield Line()
        rows = (tuple(row) for each in phases for row in _endpoints(each))
        yield TextTable(_ENDPOINTS, tuple(rows))
        yield Line()
    if all(each.protocol in ANSWERED for each in answer.routes):
        yield TextTable(_BUCKETS, tuple(tuple(_bucket(each)) for each in answer.buckets))
        yield Line()
    if answer.connections:
        columns = (_ROUTE, *_CONNECTIONS) if several else _CONNECTIONS
        of = (each.route for each in answer.connections)
        rows = (tuple(_connection(each)) for each in answer.connections)
        if several:
            rows = ((f"{at + 1}", *row) for at, row in zip(of, rows, strict=True))
        yield TextTable(columns, tuple(rows))
        yield Line()
    yield from _without(answer, several=several)


def _to(route: FollowedRoute) -> str:
    source = SOURCES[Source(route.source)] if route.sender is None else f"{route.sender} itself"
    return f"from {source} to {route.service} ({route.protocol}, {route.frontend})"


def _without(answer: LabPhasesAnswer, *, several: bool) -> Iterator[Line]:
    """Yield the routes on which no connection was followed, if others have some."""
    none = [at for at, each in enumerate(answer.routes, 1) if not each.connections]
    if several and answer.connections and none:
        numbers = listed([f"{at} ({_kind(answer.routes[at - 1])})" for at in none])
        yield Line((f"No connections stayed open on {count(len(none), 'route')}: {numbers}.",))


def _kind(route: FollowedRoute) -> str:
    return route.protocol if route.sender is None else route.source


def _phase(each: Phase) -> Iterator[Cell]:
    measured = each.verdict.measurement
    yield f"{each.begins:.2f}s"
    yield f"{each.ends:.2f}s"
    yield (each.dead, Span(" (between phases)", Style.FAINT) if each.at_event else "")
    yield f"{measured.flows:,}"
    lost = each.lost_predicted
    yield "not predicted" if lost is None else bounds_percent(lost)
    yield f"{100 * lost_of(measured) / measured.flows:.2f}%"
    low, high = each.interval or (0.0, 1.0)
    yield f"{100 * low:.1f} to {100 * high:.1f}%"
    if not each.predicted:
        yield Span("not judged", Style.WARNING)
    else:
        yield judged(agrees=each.verdict.agrees)


def _endpoints(each: Phase) -> Iterator[tuple[Cell, ...]]:
    measured = each.verdict.measurement
    for verdict in each.verdict.endpoints:
        endpoint = verdict.endpoint
        style = Style.BAD if endpoint.dead else Style.PLAIN
        how = f"dead: {endpoint.death}" if endpoint.dead else endpoint.death or ""
        yield (
            f"{each.begins:.2f}s",
            Span(endpoint.name, style),
            Span("between phases" if each.at_event else how, style),
            bounds_percent(endpoint.predicted) if each.predicted else "-",
            f"{endpoint.landed:,}",
            f"{100 * endpoint.landed / measured.flows:.2f}%",
            f"{endpoint.answered:,}",
            f"{verdict.p_value:.2g}" if each.predicted else "-",
        )


def _bucket(each: Bucket) -> Iterator[Cell]:
    lost = each.flows - each.answered
    yield f"{each.begins:g}s"
    yield f"{each.flows:,}"
    yield f"{100 * lost / each.flows:.0f}%"
    yield Span("#" * -(-_WIDE * lost // each.flows), Style.BAD)
    yield ", ".join(f"{to.name} {to.landed:,}" for to in each.endpoints)


def _connection(each: OpenConnection) -> Iterator[Cell]:
    yield f"{each.number + 1}"
    yield each.endpoint or "?"
    yield f"{each.answered:,}"
    yield _fared(each)
    yield each.expected or "not predicted"
    yield judged(agrees=each.agrees) if each.agrees is not None else "-"


def _fared(each: OpenConnection) -> str:
    hung = [
        f"hung from {h.begins:.1f}s on"
        if h.ends is None
        else f"hung from {h.begins:.1f}s to {h.ends:.1f}s"
        for h in each.hangs
    ]
    if each.fate == "not-opened":
        return "was not opened"
    if each.ended is not None:
        hung.append(f"reset at {each.ended:.1f}s")
    return ", ".join(hung) or "survived"


def _end(answer: LabPhasesAnswer) -> Iterator[Line]:
    if answer.interrupted is not None:
        says = f"Interrupted at {answer.interrupted:.2f}s of {answer.seconds:g}s"
        yield Line((Span(f"{says}: all this is of that part.", Style.WARNING),))
    for each in answer.phases:
        of = f"Route {each.route + 1}, " if len(answer.routes) > 1 else ""
        for fault in each.verdict.faults if each.predicted else ():
            when = f"{of}{each.begins:.2f}s to {each.ends:.2f}s"
            yield Line((Span(f"{when}: {fault}", Style.BAD),))
    sent = sum(each.verdict.measurement.flows for each in answer.phases)
    between = sum(each.verdict.measurement.flows for each in answer.phases if each.at_event)
    endpoints = [e for each in answer.phases for e in each.verdict.measurement.endpoints]
    waiting = sum(each.in_flight for each in endpoints)
    yield Line(
        (
            f"{count(sent, 'new flow')}, {between:,} of them between phases, {waiting:,} cut off "
            f"in flight; unaccounted for: {answer.unaccounted}.",
        )
    )
    yield verdict_of_all(
        verdict=judged(agrees=answer.agrees),
        as_far=_as_far(answer),
        rate=answer.false_alarm_rate,
        of=_all(answer),
    )


def _all(answer: LabPhasesAnswer) -> str:
    return f"all {'routes and ' if len(answer.routes) > 1 else ''}phases together"


def _as_far(answer: LabPhasesAnswer) -> str:
    """Return of how many flows and routes the verdict says nothing; empty where it is of all."""
    untold = [each for each in answer.phases if not each.predicted]
    number = sum(each.verdict.measurement.flows for each in untold)
    flows = f"; {count(number, 'flow')} not judged" if number else ""
    return flows + not_measured(len(answer.left_out))
