"""``cluster timeline`` for people: losses, differences, and the changes of each sync."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from analyzer.cluster.course import Length, Stood
from analyzer.model.addresses import VERSIONS
from analyzer.parsers.clock_times import time_at
from analyzer.reports.cluster_timeline_answer import (
    ChangedService,
    LostAt,
    TimelineOfDumpsAnswer,
    Wrong,
)
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count, listed, name_of, proto
from analyzer.reports.times import length, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_MOST: Final = 20
_MOST_NAMED: Final = 3
_LOST: Final = (
    Column("SERVICE PORT", shortens=True),
    Column("PROTO"),
    Column("NODE", shortens=True),
    Column("LOSS", right=True),
    Column("FOR", right=True),
    Column("FULL LOSS FOR", right=True),
)
_WRONG: Final = (
    Column("NODE", shortens=True),
    Column("SERVICE PORT", shortens=True),
    Column("DRIFT"),
    Column("WHAT", shortens=True),
    Column("FOR", right=True),
)
_CHANGES: Final = (
    Column("BETWEEN"),
    Column("AND"),
    Column("NODE", shortens=True),
    Column("SERVICE PORT", shortens=True),
    Column("CHANGED", foldable=True),
    Column("BEFORE FOR", right=True),
)


def render(answer: TimelineOfDumpsAnswer) -> Document:
    """Return the summary, and a table for each kind of finding."""
    blocks: list[Block] = [*_head(answer)]
    if answer.lost is not None:
        blocks += _table(_LOST, [_lost_row(each) for each in _losing(answer)], answer, "loss")
    if answer.wrong is not None:
        wrong = sorted(answer.wrong, key=lambda e: (-e.lasted.upper, e.node, e.service))
        blocks += _table(_WRONG, [_wrong_row(each) for each in wrong], answer, "difference")
    rows = [_changed_row(each, answer) for each in answer.changes]
    blocks += _table(_CHANGES, rows, answer, "change")
    blocks.append(Line())
    for node, names in answer.not_judged.items():
        if names:
            says = f"Not completely judged at {node}: {listed(names)}."
            blocks.append(Line((Span(says, Style.WARNING),)))
    if answer.why_not_compared and answer.objects:
        says = f"Not compared with the objects: {answer.why_not_compared}."
        blocks.append(Line((Span(says, Style.WARNING),)))
    blocks += [Line((Span(f"Assumed: {each}.", Style.FAINT),)) for each in answer.assumed]
    return Document(blocks)


def _head(answer: TimelineOfDumpsAnswer) -> Iterator[Line]:
    good = [each.at for node in answer.nodes for each in node.good]
    dumps = sum(len(each.looks) for each in answer.nodes)
    first, last = min(good), max(good)
    yield Line(
        (
            f"{count(dumps, 'dump')} of {count(len(answer.nodes), 'node')}, from {_day(first)} to "
            f"{_day(last)} UTC: {count(len(answer.changes), 'change')} of ServicePorts.",
        )
    )
    failed = dumps - len(good)
    if failed:
        says = f"{count(failed, 'dump')} could not be read: the state at those times is not known."
        yield Line((Span(says, Style.WARNING),))
    if answer.dead:
        yield Line((f"Dead: {listed(answer.dead)}.",))
    if answer.lost is None:
        return
    losing = _losing(answer)
    if not losing and answer.is_whole:
        yield Line((Span("No ServicePort lost new flows.", Style.GOOD),))
    elif not losing:
        says = "No loss of new flows is known; not everything was judged."
        yield Line((Span(says, Style.WARNING),))
    for each in losing[:_MOST_NAMED]:
        lost = each.lost
        says = (
            f" at {each.node}: lost {bounds_percent(lost.most)} for {_length(lost.lossy)}: the "
            f"same as losing all new flows for {_length(lost.total)}."
        )
        yield Line((Span(each.service, Style.STRONG), says))
    yield from _absent(answer)


def _losing(answer: TimelineOfDumpsAnswer) -> list[LostAt]:
    """Return those that may have lost flows; others were not in the rules all the while."""
    return [each for each in answer.lost or () if each.lost.most.upper]


def _absent(answer: TimelineOfDumpsAnswer) -> Iterator[Line]:
    absent = [each for each in answer.lost or () if each.absent]
    shown = absent if answer.every else absent[:_MOST_NAMED]
    for each in shown:
        says = (
            f"{each.service} at {each.node}: not in the rules for {_length(each.absent)}; what "
            "that cost is not counted."
        )
        yield Line((Span(says, Style.WARNING),))
    if more := len(absent) - len(shown):
        says = f"{count(more, 'more ServicePort')} not in the rules all the time: --all"
        yield Line((Span(says, Style.FAINT),))


def _table(
    columns: tuple[Column, ...],
    rows: Sequence[tuple[Cell, ...]],
    answer: TimelineOfDumpsAnswer,
    noun: str,
) -> Iterator[Block]:
    if not rows:
        return
    shown = rows if answer.every else rows[:_MOST]
    yield Line()
    yield TextTable(columns, tuple(shown))
    more = len(rows) - len(shown)
    if more:
        plural = "more losses" if noun == "loss" else f"more {noun}s"
        says = count(more, f"more {noun}", plural)
        yield Line((Span(f"{says}: --all", Style.FAINT),))


def _lost_row(each: LostAt) -> tuple[Cell, ...]:
    return (
        Span(each.service, Style.STRONG),
        proto(each.protocol, VERSIONS.get(each.family)),
        each.node,
        Span(bounds_percent(each.lost.most), Style.BAD),
        _length(each.lost.lossy),
        _length(each.lost.total),
    )


def _wrong_row(each: Wrong) -> tuple[Cell, ...]:
    return (
        each.node,
        Span(name_of(each.service, each.version), Style.STRONG),
        Span(each.drift.value, Style.BAD),
        each.what,
        _length(each.lasted),
    )


def _changed_row(each: ChangedService, answer: TimelineOfDumpsAnswer) -> tuple[Cell, ...]:
    good = [look.at for node in answer.nodes for look in node.good]
    form = _clock if time_at(min(good)).date() == time_at(max(good)).date() else _day
    return (
        form(each.after),
        form(each.before),
        each.node,
        Span(name_of(each.service, each.version), Style.STRONG),
        in_words(each),
        _stood(each.stood),
    )


def in_words(each: ChangedService) -> str:
    """Return what has changed about a ServicePort."""
    said = [f"all of it {each.whole}"] if each.whole else []
    for names, what in (
        (each.gone, "gone"),
        (each.added, "added"),
        (each.frontends_gone, "no longer at"),
        (each.frontends_added, "also at"),
    ):
        if names and what in {"gone", "added"}:
            said.append(f"{listed(names)} {what}")
        elif names:
            said.append(f"{what} {listed(names)}")
    if each.moved:
        said.append(f"{count(each.moved, 'share')} moved")
    said += each.other
    return "; ".join(said) if each.is_certain else f"perhaps: {'; '.join(said)}"


def _length(found: Length) -> str:
    return length(found.lower, found.upper) or "0s"


def _stood(found: Stood) -> str:
    if found.upper is None:
        return f"at least {seconds(found.lower, up=False)}"
    return length(found.lower, found.upper)


def _day(at: Fraction) -> str:
    return f"{time_at(at):%Y-%m-%d %H:%M:%S}"


def _clock(at: Fraction) -> str:
    return f"{time_at(at):%H:%M:%S}"
