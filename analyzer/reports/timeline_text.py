"""``timeline`` for people: whether it heals, what happens when, what each ServicePort loses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from analyzer.model.ternary import Ternary
from analyzer.outage.causes import Replacement, by_cause
from analyzer.outage.clocks import DURATIONS, NEVER, TimeBounds
from analyzer.outage.eviction import RATES_SOURCE, Rates
from analyzer.outage.timeline import Played
from analyzer.reports.answers import TimelineAnswer
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.lost_now import sentences
from analyzer.reports.not_judged import lines
from analyzer.reports.phrases import SOURCES, assumed, at_node, count, named, proto
from analyzer.reports.timeline_plot import LOST, PERHAPS, plot
from analyzer.reports.times import amount, length, seconds, share, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: ServicePorts that are shown where not all are.
_MOST: Final = 5


def render(answer: TimelineAnswer) -> Document:
    """Return the summary, then events, losses, causes, and what they are based on."""
    lost = in_order(answer)
    shown = lost if answer.every else lost[:_MOST]
    now = [*sentences(answer.view.services)]
    if now and lost:
        says = "Below are the losses to dead endpoints alone; these add to them, and do not heal."
        now.append(Line((Span(says, Style.WARNING),)))
    blocks: list[Block] = [
        *now,
        *_summary(answer, lost),
        *lines(answer.view, answer.absent),
        Line(),
    ]
    events = tuple((span(each.when), each.what) for each in answer.scenario.events)
    blocks += [TextTable((Column("WHEN"), Column("WHAT", foldable=True)), events), Line()]
    if shown:
        blocks += [_losses(answer, shown), Line(), _causes(shown), Line(), *_plot(shown[0])]
    blocks += [*_totals(answer, lost, len(shown)), *_assumed(answer)]
    if answer.every:
        blocks += [Line(), *_durations(answer)]
    return Document([*blocks, *assumed(answer.diagnostics)])


def in_order(answer: TimelineAnswer) -> list[Played]:
    """Return the ServicePorts that may lose something, greatest loss first."""
    lost = [each for each in answer.played if each.curve.lost[1]]
    return sorted(
        lost,
        key=lambda each: (
            *(-bound for bound in reversed(each.curve.lost)),
            each.service.name.text,
            each.service.protocol,
        ),
    )


# --- the first lines -------------------------------------------------------


def _summary(answer: TimelineAnswer, lost: Sequence[Played]) -> Iterator[Line]:
    scenario = answer.scenario
    yield Line((Span(_healing(answer), Style.STRONG),))
    if scenario.outage.proxy_dead:
        says = "kube-proxy of this node is dead: its rules stay as they are, whatever heals."
        yield Line((Span(says, Style.WARNING),))
    if not lost:
        more = " that reaches an endpoint today" if _loses_today(answer) else ""
        yield Line((f"No ServicePort loses a new flow{more}.",))
        return
    worst = lost[0]
    name, (lower, upper) = named(worst.service), worst.curve.lost
    within = f"{length(lower, upper)} worth of its new flows within {seconds(answer.until)}"
    yield Line((f"{name} loses {share(*worst.first)} at once, and {within}.",))


def _loses_today(answer: TimelineAnswer) -> bool:
    """Return whether flows are lost with nothing dead, which an outage does not cost."""
    return any(sentences(answer.view.services))


def _healing(answer: TimelineAnswer) -> str:
    scenario = answer.scenario
    outage, why = scenario.outage, "; ".join(scenario.why)
    match outage.heals:
        case Ternary.TRUE:
            when = scenario.causes.not_ready + scenario.clocks.reaches_rules
            nodes = scenario.causes.nodes
            if not nodes or outage.proxy_dead:
                return "The control plane stays up."
            said = "" if outage.replaces is Ternary.TRUE else f"; but {why}"
            return f"It heals: endpoints of dead nodes leave the rules after {span(when)}{said}."
        case Ternary.FALSE:
            return f"Nothing heals{_until(outage.api_back)}: {why}."
        case Ternary.UNKNOWN:
            return f"It may or may not heal: {why}."


def _until(back: TimeBounds) -> str:
    """Return until when nothing heals."""
    if back.earliest is None:
        return ""
    when = f"{seconds(back.earliest, up=False)} or later" if back.latest is None else span(back)
    return f" until the control plane is back after {when}"


# --- tables ----------------------------------------------------------------


def _losses(answer: TimelineAnswer, shown: Sequence[Played]) -> TextTable:
    columns = [
        Column("SERVICE PORT", shortens=True),
        Column("PROTO", spare=4),
        Column("AT ONCE", right=True),
        Column(f"AFTER {seconds(answer.until)}", right=True, spare=5),
        Column("OVER AFTER", spare=2),
        Column("LOST", right=True, spare=3 if answer.rate is not None else 0),
    ]
    if answer.rate is not None:
        columns.append(Column("FAILED FLOWS", right=True))
    if answer.budget is not None:
        columns.append(Column("SLO BUDGET", right=True))
    return TextTable(tuple(columns), tuple(_loss(answer, each) for each in shown))


def _loss(answer: TimelineAnswer, played: Played) -> tuple[Cell, ...]:
    curve = played.curve
    last, (lower, upper) = curve.steps[-1], curve.lost
    cells: list[Cell] = [
        Span(played.service.name.text, Style.STRONG),
        proto(played.service.protocol, played.service.version),
        Span(share(*played.first), _style(*played.first)),
        Span(share(last.lower, last.upper), _style(last.lower, last.upper)),
        _over(curve.over),
        length(lower, upper),
    ]
    if answer.rate is not None:
        cells.append(amount(lower * answer.rate, upper * answer.rate))
    if answer.budget is not None:
        cells.append(_used(lower / answer.budget, upper / answer.budget))
    return tuple(cells)


def _over(when: TimeBounds) -> str:
    return "not by then" if when.earliest is None else span(when)


def _used(lower: Fraction, upper: Fraction) -> str:
    """Return how much of a budget is used up, which may be more than all of it."""
    return f"{amount(100 * lower, 100 * upper)}%"


def _style(lower: Fraction, upper: Fraction) -> Style:
    if not upper:
        return Style.GOOD
    return Style.BAD if lower == 1 else Style.WARNING


def _causes(shown: Sequence[Played]) -> TextTable:
    columns = (
        Column("SERVICE PORT", shortens=True),
        Column("DEAD", right=True),
        Column("WHY", foldable=True),
        Column("LEAVE RULES"),
        Column("REPLACED OR BACK", spare=1),
    )
    rows = [
        (
            named(each.service),
            f"{len(ends):,}",
            fate.cause.value,
            span(fate.removed),
            _comes(fate),
        )
        for each in shown
        for fate, ends in by_cause(each.fates)
    ]
    return TextTable(columns, tuple(rows))


def _comes(fate: Replacement) -> str:
    """Return when a pod replaces a dead one, or that one is back."""
    if fate.returns != NEVER:
        return f"back {span(fate.returns)}"
    return "no" if fate.replaced == NEVER else span(fate.replaced)


def _durations(answer: TimelineAnswer) -> Iterator[Line]:
    """Yield each duration, what it means, and below that where it stands."""
    clocks = answer.scenario.clocks
    for name, each in DURATIONS.items():
        value = clocks.of(name)
        shown = "not known" if value.latest is None else span(value)
        yield Line((Span(f"--{name} {shown}", Style.STRONG), f": {each.says}"))
        source = "as given" if name in clocks.said else each.source or "a guess: no source"
        for one in source.split("; "):
            yield Line((Span(f"    {one}", Style.FAINT),))
    yield from _rates(answer.scenario.causes.rates)


def _rates(rates: Rates) -> Iterator[Line]:
    """Yield how fast nodes are given up, and where the defaults of that stand."""
    usual = Rates()
    for option, shown, says, is_usual in (
        (
            "node-eviction-rate",
            f"{float(rates.normal):g}/s",
            "nodes of a zone that are tainted per second",
            rates.normal == usual.normal,
        ),
        (
            "secondary-node-eviction-rate",
            f"{float(rates.secondary):g}/s",
            "the same for an unhealthy zone",
            rates.secondary == usual.secondary,
        ),
        (
            "unhealthy-zone-threshold",
            f"{float(100 * rates.threshold):g}%",
            "a zone is unhealthy if this share of its nodes is",
            rates.threshold == usual.threshold,
        ),
        (
            "large-cluster-size-threshold",
            f"{rates.large:,}",
            "in an unhealthy zone of up to this many nodes none is tainted",
            rates.large == usual.large,
        ),
    ):
        yield Line((Span(f"--{option} {shown}", Style.STRONG), f": {says}"))
        source = RATES_SOURCE if is_usual else "as given"
        yield Line((Span(f"    {source}", Style.FAINT),))


# --- the picture and the last lines ----------------------------------------


def _plot(played: Played) -> Iterator[Line]:
    way = "" if played.route is None else f", from {SOURCES[played.route.source]}"
    yield Line((f"{named(played.service)}{way}: {LOST} lost, {PERHAPS} perhaps",))
    for line in plot(played.curve):
        yield Line((line,), whole=True)
    yield Line()


def _totals(answer: TimelineAnswer, lost: Sequence[Played], shown: int) -> Iterator[Line]:
    number = count(len(answer.played), "ServicePort")
    more = f" {len(lost) - shown:,} not shown: --all." if len(lost) > shown else ""
    today = "" if lost or not _loses_today(answer) else " that reach an endpoint today"
    says = f"{number}{at_node(answer.view)}: {len(lost):,} may lose new flows{today}.{more}"
    yield Line((says,))


def _assumed(answer: TimelineAnswer) -> Iterator[Line]:
    """Yield what the answer rests on besides the dump and the objects."""
    clocks, outage = answer.scenario.clocks, answer.scenario.outage
    told = ["what is marked dead stays dead", *answer.scenario.assumed]
    if outage.api_back != NEVER:
        told[0] += ", except for the control plane, which is back"
    heals = outage.heals is not Ternary.FALSE or outage.api_back != NEVER
    if heals and "latency" not in clocks.said:
        told.append("a watch and a controller's work take up to 1s each; --latency")
    if answer.scenario.unsettled and "settle" not in clocks.said:
        told.append("living nodes are ready again within 1m of reaching the API; --settle")
    comes = any(fate.replaced != NEVER for each in answer.played for fate in each.fates.values())
    if heals and comes and "start-up" not in clocks.said:
        told.append("nothing about how long a pod takes to start elsewhere; --start-up 10s-1m")
    if heals and answer.scenario.causes.nodes:
        grace = clocks.of("node-monitor-grace-period")
        if grace.earliest != grace.latest and "node-monitor-grace-period" not in clocks.said:
            told.append("either default of the grace period; --node-monitor-grace-period 40s")
    for each in told:
        yield Line((Span(f"Assumed: {each}.", Style.FAINT),))
