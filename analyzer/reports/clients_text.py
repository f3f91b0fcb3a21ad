"""``lab clients`` for people."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.agreement import client_agrees, clients_agree, rate_of_trials
from analyzer.model.measurement import ClientTrial
from analyzer.reports.document import Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.lab_answers import ClientsAnswer
from analyzer.reports.lab_text import not_measured, verdict_of_all
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import assumed, count

_COLUMNS = (
    Column("COMMAND", foldable=True),
    Column("TARGET", foldable=True),
    Column("PREDICTED", right=True),
    Column("SUCCEEDED", right=True),
    Column("", right=True, spare=3),
    Column("A FAILURE TAKES", right=True, spare=1),
    Column("SHOULD TAKE", right=True, spare=2),
    Column("VERDICT"),
)

_VERDICTS = {
    True: Span("agrees", Style.GOOD),
    False: Span("DISAGREES", Style.BAD),
    None: Span("not predicted"),
}


def render(answer: ClientsAnswer) -> Document:
    """Return a line for each client and target."""
    node = f" on node {answer.node}" if answer.node else ""
    head = f"Real clients in a pod{node}, dead: {answer.dead}"
    rate = rate_of_trials(answer.trials)
    rows = tuple(_row(trial, rate) for trial in answer.trials)
    told = assumed(answer.diagnostics)
    exits = [line for trial in answer.trials if trial.exits for line in _exits(trial)]
    first = Line((Span(head, Style.STRONG),))
    return Document([first, Line(), TextTable(_COLUMNS, rows), *exits, *told, Line(), _end(answer)])


def _end(answer: ClientsAnswer) -> Line:
    unknown = sum(trial.succeeds is None for trial in answer.trials)
    as_far = f"; {count(unknown, 'target')} not predicted" if unknown else ""
    return verdict_of_all(
        verdict=_VERDICTS[clients_agree(answer.trials)],
        as_far=as_far + not_measured(len(answer.left_out)),
        rate=answer.rate,
        tests="exact binomial tests",
    )


def _row(trial: ClientTrial, rate: float) -> tuple[Cell, ...]:
    agrees = client_agrees(trial, rate)
    return (
        trial.command,
        trial.target,
        "-" if trial.succeeds is None else bounds_percent(trial.succeeds),
        f"{trial.succeeded} of {trial.runs}",
        f"{100 * trial.succeeded / trial.runs:.0f}%",
        _seconds(trial.failure_seconds),
        _predicted(trial),
        _VERDICTS[agrees],
    )


def _exits(trial: ClientTrial) -> Iterator[Line]:
    """Yield how the runs of a program without a known model ended."""
    yield Line()
    yield Line((Span(f"{trial.command}: {trial.target}"),))
    for each in trial.exits:
        least, median, most = each.seconds
        ended = f"exit status {each.status}" if each.status >= 0 else f"signal {-each.status}"
        took = f"{median:.2f} s ({least:.2f} to {most:.2f})"
        says = f": {each.says}" if each.says else ""
        yield Line((Span(f"  {each.runs} of {trial.runs}  {ended}, {took}{says}"),))


def _predicted(trial: ClientTrial) -> str:
    if trial.failure_takes is None:
        return "-"
    one, other = (f"{each:.1f}" for each in trial.failure_takes)
    return f"{one} s" if one == other else f"{one} to {other} s"


def _seconds(seconds: tuple[float, ...]) -> str:
    if not seconds:
        return "-"
    return f"{seconds[len(seconds) // 2]:.1f} s"
