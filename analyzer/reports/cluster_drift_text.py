"""``cluster drift`` for people: which nodes differ, in what, and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analyzer.cluster.drift_kinds import WORDS
from analyzer.reports.cluster_drift_answer import DriftAnswer, SharedDifference
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.freshness import long
from analyzer.reports.phrases import count, listed, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_COLUMNS: Final = (
    Column("DRIFT"),
    Column("SERVICE PORT", shortens=True),
    Column("WHAT", shortens=True),
    Column("AT", shortens=True),
)
_MOST: Final = 20
_MOST_NAMED: Final = 2
#: Most nodes whose age is shown.
_MOST_AGES: Final = 5


def render(answer: DriftAnswer) -> Document:
    """Return how many nodes drift and in what, then each difference with its nodes."""
    rows = answer.alike
    shown = rows if answer.every else rows[:_MOST]
    blocks: list[Block] = [*summary(answer), *_kinds(answer), *ages(answer)]
    if shown:
        blocks += [Line(), differences(shown)]
    if len(rows) > len(shown):
        more = f"{count(len(rows) - len(shown), 'more difference')}: --all"
        blocks.append(Line((Span(more, Style.FAINT),)))
    return Document([*blocks, Line(), *undecided(answer), *grounds(answer)])


def differences(rows: Sequence[SharedDifference]) -> TextTable:
    """Return a table of differences, each with its nodes."""
    return TextTable(_COLUMNS, tuple(map(_row, rows)))


def summary(answer: DriftAnswer) -> Iterator[Line]:
    """Yield how many nodes drift."""
    nodes, drifting = answer.drifted.nodes, answer.drifting
    if not drifting:
        among = " among what was judged" if answer.drifted.not_judged else ""
        says = f"No difference{among} at {count(len(nodes), 'node')}."
        is_whole = not (answer.diagnostics or answer.drifted.not_judged)
        yield Line((Span(says, Style.GOOD if is_whole else Style.WARNING),))
        return
    verb = "differs" if len(drifting) == 1 else "differ"
    yield Line(
        (
            Span(f"{len(drifting):,} of {count(len(nodes), 'node')}", Style.STRONG),
            f" {verb}: {listed(drifting)}.",
        )
    )


def _kinds(answer: DriftAnswer) -> Iterator[Line]:
    """Yield what each kind of difference means, and how many nodes it is at."""
    nodes: dict[str, set[str]] = {}
    words = {}
    for each in answer.drifted.findings:
        nodes.setdefault(each.drift.value, set()).add(each.node)
        words[each.drift.value] = WORDS[each.drift]
    counted = Counter({code: len(each) for code, each in nodes.items()})
    for code, number in counted.most_common():
        yield Line((f"{code}: {words[code]} ({count(number, 'node')}).",))


def ages(answer: DriftAnswer) -> Iterator[Line]:
    """Yield for how long rules may have been wrong, if kube-proxy's metrics are known."""
    found = sorted(answer.behind(), key=lambda each: -each[1])
    for row, seconds in found[:_MOST_AGES]:
        says = f"{row.node}: its rules were last written {long(seconds)} before the dump"
        yield Line(
            (Span((f"{says}, so they have been wrong for no longer than that."), Style.FAINT),)
        )


def _row(each: SharedDifference) -> tuple[Cell, ...]:
    names = ", ".join(each.nodes[:_MOST_NAMED])
    more = len(each.nodes) - _MOST_NAMED
    return (
        Span(each.drift.value, Style.BAD),
        Span(name_of(each.service, each.version), Style.STRONG),
        each.what,
        names + (f" and {more:,} more" if more > 0 else ""),
    )


def undecided(answer: DriftAnswer) -> Iterator[Line]:
    """Yield what is not evaluated."""
    if answer.drifted.not_judged:
        names = listed(answer.drifted.not_judged)
        says = f"Not judged, since it is not known what is right: {names}."
        yield Line((Span(says, Style.WARNING),))
    if answer.drifted.cut:
        nodes = listed(answer.drifted.cut)
        whose = "whose dump is" if len(answer.drifted.cut) == 1 else "whose dumps are"
        services = answer.drifted.cut_services
        told = f" ({listed(services)})" if services else ""
        says = f"Not judged: rules missing at {nodes}, {whose} incomplete{told}."
        yield Line((Span(says, Style.WARNING),))


def grounds(answer: DriftAnswer) -> Iterator[Line]:
    """Yield what was compared with what."""
    compared = f"{count(answer.drifted.compared, 'ServicePort')}, counted at each node,"
    if not answer.drifted.by_objects:
        says = f"Compared {compared} with what more than half of the nodes have."
        yield Line((Span(says, Style.FAINT),))
        return
    says = f"Compared {compared} with what kube-proxy writes there for the objects"
    when = "" if answer.objects_taken is None else f", of {answer.objects_taken:%Y-%m-%d %H:%M %Z}"
    yield Line((Span(f"{says}{when}.", Style.FAINT),))
    yield Line((Span(f"Assumed: {'; '.join(answer.assumed)}.", Style.FAINT),))
