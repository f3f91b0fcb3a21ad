"""``gate`` for people: a line for each Service, and each threshold exceeded in full."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.whatif import FailureKind
from analyzer.gate.evaluation import EvaluatedService, WorstCase
from analyzer.model.probability import ALWAYS
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.gate_answer import (
    GateAnswer,
    allowed_words,
    failing_names,
    fix_words,
    loss_words,
    pending_words,
    placed_words,
    unknown_words,
    violation_words,
)
from analyzer.reports.numbers import bounds_percent, limit_percent
from analyzer.reports.phrases import count, listed
from analyzer.reports.predicted_text import grounds, head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_HEADINGS: Final = {
    FailureKind.NODE: "A NODE",
    FailureKind.ZONE: "A ZONE",
    FailureKind.CONTROL_PLANE: "CONTROL PLANE",
}
#: Most Services that are shown in full unless all are requested.
_MOST: Final = 10


def render(answer: GateAnswer) -> Document:
    """Return the verdict, a table of all Services, and the faults of those that fail."""
    broken = [n for n, each in enumerate(answer.evaluated) if each.violations or each.pending]
    shown = broken if answer.every else broken[:_MOST]
    blocks: list[Block] = [*_summary(answer), *_scope(answer), *head(answer.prediction)]
    if answer.evaluated:
        blocks += [Line(), _table(answer)]
    for number in shown:
        blocks += [Line(), *_broken(answer, number)]
    if len(broken) > len(shown):
        blocks += [Line(), Line((f"{len(broken) - len(shown):,} more in full: --all.",))]
    blocks += [Line(), *_rest(answer), *grounds(answer.prediction)]
    return Document(blocks)


def _summary(answer: GateAnswer) -> Iterator[Line]:
    broken = [each.service.name for each in answer.evaluated if each.violations]
    stuck = [each.group.name for each in answer.pending if each.least]
    number = len(answer.evaluated)
    if broken:
        says = f"{len(broken):,} of {count(number, 'Service')} fail: {listed(broken)}."
        says = says.replace(" fail:", " fails:") if len(broken) == 1 else says
        yield Line((Span(says, Style.BAD),))
    elif answer.is_empty and answer.thresholds.are_any:
        says = "The manifests have no Service, so the gate fails."
        yield Line((Span(says, Style.BAD),))
    elif not answer.evaluated:
        yield Line((Span("No Service was judged.", Style.WARNING),))
    elif answer.not_judged and answer.thresholds.are_any:
        yield Line((Span("Not every Service was judged, so the gate fails.", Style.BAD),))
    elif answer.unknown and answer.thresholds.are_any:
        says = "Some fields of the manifests are unknown, so the gate fails."
        yield Line((Span(says, Style.BAD),))
    elif answer.thresholds.are_any and not stuck:
        says = f"{number:,} Services pass, wherever the scheduler puts their pods."
        if number == 1:
            says = "1 Service passes, wherever the scheduler puts its pods."
        if any(each.dropping for each in answer.evaluated):
            says = f"{says[:-1]}; but some nodes drop flows even if nothing fails, see below."
            yield Line((Span(says, Style.WARNING),))
        else:
            yield Line((Span(says, Style.GOOD),))
    else:
        yield Line((Span(_worst_of_all(answer), Style.STRONG),))
    if stuck:
        says = f"Pods stay Pending: {listed(stuck)}."
        yield Line((Span(says, Style.BAD),))
    for each in answer.not_judged:
        says = f"Not judged: {'/'.join(each.manifest.key)}: {each.why}."
        yield Line((Span(says, Style.WARNING),))
    for field in answer.unknown:
        yield Line((Span(f"Not judged: {unknown_words(field)}", Style.WARNING),))


def _worst_of_all(answer: GateAnswer) -> str:
    every = [(f, each) for each in answer.evaluated for f in each.worst if f.kind and f.case.found]
    if not every and answer.failing.kinds:
        return "No Service has a running pod."
    if not every:
        return "There is only one node, so there is no failure to judge."
    found, evaluated = max(every, key=lambda e: e[0].case.loss(e[0].kind or FailureKind.NODE).upper)
    kind = found.kind or FailureKind.NODE
    if not found.case.loss(kind).upper:
        return "No failure causes any loss, wherever the pods are."
    what = failing_names(found.case, kind)
    return f"Worst: {evaluated.service.name} loses {loss_words(found)} if {what}."


def _scope(answer: GateAnswer) -> Iterator[Line]:
    zones = len(answer.failing.zones)
    where = f" in {count(zones, 'zone')}" if zones else ""
    asked = []
    if answer.thresholds.max_loss is not None:
        asked.append(f"at most {limit_percent(answer.thresholds.max_loss)} lost")
    if answer.thresholds.min_survives is not None:
        asked.append(f"survives the loss of any {count(answer.thresholds.min_survives, 'node')}")
    told = f" Required: {', '.join(asked)}." if asked else ""
    says = (
        "Share of new flows lost on the worst route, at the worst placement that is allowed on "
        f"{count(len(answer.problem.nodes), 'node')}{where}.{told}"
    )
    yield Line((Span(says, Style.FAINT),))


# --- the table ---------------------------------------------------------------


def _table(answer: GateAnswer) -> TextTable:
    kinds = answer.failing.kinds
    headings = [_HEADINGS.get(kind) or f"{answer.failing.depth} NODES" for kind in kinds]
    columns = (
        Column("SERVICE", shortens=True),
        Column("PODS", right=True, spare=2),
        *[Column(each, right=True) for each in headings],
        Column("SURVIVES", right=True),
        Column("EXPECTED", right=True, spare=1),
        Column("VERDICT"),
    )
    return TextTable(columns, tuple(_row(answer, each) for each in answer.evaluated))


def _row(answer: GateAnswer, evaluated: EvaluatedService) -> tuple[Cell, ...]:
    return (
        evaluated.service.name,
        _pods(answer, evaluated),
        *[_loss(each) for each in evaluated.worst],
        _survives(evaluated.fewest),
        _expected(answer, evaluated),
        _verdict(answer, evaluated),
    )


def _pods(answer: GateAnswer, evaluated: EvaluatedService) -> str:
    """Return how many pods are placed; if scaled, the least and the greatest number."""
    scales = [s for s in answer.problem.scales if s.groups.keys() & {*evaluated.service.groups}]
    if not scales:
        return f"{sum(evaluated.fewest.case.held):,}"
    fullest = answer.problem.fullest
    of = evaluated.service.groups
    least, most = (sum(each.groups[g].asked for g in of) for each in (answer.problem, fullest))
    return f"{least:,} to {most:,}"


def _loss(found: WorstCase) -> Span:
    assert found.kind is not None  # of a failure
    upper = found.case.loss(found.kind).upper
    if found.case.found is None or upper == ALWAYS:
        return Span(loss_words(found), Style.BAD)
    style = Style.WARNING if upper or found.most is not None else Style.GOOD
    return Span(loss_words(found), style)


def _survives(found: WorstCase) -> Span:
    survives = found.case.survives
    if survives < 0:
        return Span("no pods", Style.BAD)
    if found.is_proven:
        return Span(count(survives, "node"), Style.PLAIN if survives else Style.BAD)
    return Span(f"{found.surely:,} to {count(survives, 'node')}", Style.WARNING)


def _expected(answer: GateAnswer, evaluated: EvaluatedService) -> str:
    """Return what the failure costs that costs most, at the expected placement."""
    losses = [evaluated.expected.loss(kind) for kind in answer.failing.kinds]
    if evaluated.expected.found is None:
        return "no pods"
    return bounds_percent(max(losses, key=lambda each: each.upper)) if losses else ""


def _verdict(answer: GateAnswer, evaluated: EvaluatedService) -> Span:
    if evaluated.pending:
        return Span("Pending", Style.BAD)
    if evaluated.violations:
        proven = any(each.breach for each in evaluated.violations)
        return Span("fails" if proven else "not proven", Style.BAD)
    return Span("passes" if answer.thresholds.are_any else "", Style.GOOD)


# --- one Service -------------------------------------------------------------


def _broken(answer: GateAnswer, number: int) -> Iterator[Line]:
    evaluated = answer.evaluated[number]
    place = evaluated.service.manifest.place
    yield Line((Span(evaluated.service.name, Style.STRONG), f" ({place})"))
    told: set[str] = set()
    for each in evaluated.violations:
        says = violation_words(answer, evaluated, each)
        if says in told:  # without any pod all failures are the same
            continue
        told.add(says)
        yield Line((Span(f"  {says}.", Style.BAD),))
        where = placed_words(answer, each.found.case)
        if where and where not in told:
            told.add(where)
            yield Line((f"    pods on {where}",))
    if evaluated.pending:
        pods = evaluated.pending + sum(evaluated.fewest.case.held)
        says = f"  {evaluated.pending:,} of its {count(pods, 'pod')} stay Pending."
        yield Line((Span(says, Style.BAD),))
    elif evaluated.placements.pending[1] != 0:
        says = "  Some of its pods may stay Pending: other pods may take the room first."
        yield Line((Span(says, Style.WARNING),))
    for says in allowed_words(answer, evaluated):
        yield Line((f"  {says}.",))
    where = placed_words(answer, evaluated.expected)
    if where:
        lost = _expected(answer, evaluated) or "nothing"
        yield Line((f"  Expected: pods on {where}; at most {lost} lost.",))
    if number in answer.fixes:
        yield Line((Span(f"  Fix: {fix_words(answer.fixes[number])}.", Style.GOOD),))
    else:
        yield Line(("  No fix found: nothing that was tried is proven to lose less.",))


# --- the last lines ----------------------------------------------------------


def _rest(answer: GateAnswer) -> Iterator[Line]:
    for stuck in answer.pending:
        style = Style.BAD if stuck.least else Style.WARNING
        yield Line((Span(f"Pending: {pending_words(stuck)}.", style),))
    for other in answer.unjudged:
        if not other.matters:
            yield Line((f"Left out: {'/'.join(other.manifest.key)}: {other.why}.",))
    for each in answer.evaluated:
        number = each.dropping
        if number:
            nodes = count(len(answer.problem.nodes), "node")
            says = (
                f"{each.service.name}: up to {number:,} of {nodes} "
                "have no local endpoint and drop its flows even if nothing fails (Local policies)."
            )
            yield Line((Span(says, Style.WARNING),))
    if answer.ignored:
        told = [f"{kind} ({number:,})" for kind, number in sorted(answer.ignored.items())]
        yield Line((Span(f"Not considered: {listed(told)}.", Style.FAINT),))
    for says in answer.assumed:
        yield Line((Span(f"Assumed: {says}.", Style.FAINT),))
