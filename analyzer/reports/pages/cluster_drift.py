"""``cluster drift`` as a page: which nodes differ in what, with filters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from analyzer.cluster.drift_kinds import WORDS, DriftKind
from analyzer.model.text import printable
from analyzer.reports.cluster_drift_answer import DriftAnswer
from analyzer.reports.cluster_drift_text import ages, differences, grounds, summary, undecided
from analyzer.reports.document import Cell, Column, Span, Style, TextTable
from analyzer.reports.json_values import encode
from analyzer.reports.pages.blocks import table
from analyzer.reports.pages.frame import Page, rendered
from analyzer.reports.phrases import proto

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Nodes, and differences, that a page shows without scripts; with them all are reached.
_MOST: Final = 200
_KINDS: Final = (Column("DRIFT"), Column("NODES", right=True), Column("MEANS", foldable=True))


def render(answer: DriftAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    kinds = _kinds(answer)
    yield from rendered(
        Page(
            title="Which nodes' rules differ from those of the cluster",
            head=[*summary(answer), *ages(answer), *undecided(answer)],
            figures=_sections(answer, kinds) if kinds else (),
            rest=[*grounds(answer)],
            diagnostics=answer.diagnostics,
            data={"drift": _data(answer, kinds)} if kinds else {},
        )
    )


def _kinds(answer: DriftAnswer) -> dict[DriftKind, int]:
    """Return the kinds that were found, in their order, with how many nodes have one."""
    nodes: defaultdict[DriftKind, set[str]] = defaultdict(set)
    for each in answer.drifted.findings:
        nodes[each.drift].add(each.node)
    return {kind: len(nodes[kind]) for kind in DriftKind if kind in nodes}


def _sections(answer: DriftAnswer, kinds: dict[DriftKind, int]) -> Iterator[str]:
    rows = tuple(
        (Span(kind.value, Style.BAD), f"{number:,}", WORDS[kind]) for kind, number in kinds.items()
    )
    yield '<section class="kinds" aria-labelledby="kinds-title">\n'
    yield '<h2 id="kinds-title">What differs</h2>\n'
    yield from table(TextTable(_KINDS, rows), name="kinds", caption="Kinds of difference")
    yield '</section>\n<section aria-label="Differences">\n<div id="drift" hidden></div>\n'
    yield '<div class="replaced">\n<h2>Which node differs in what</h2>\n'
    yield from _some(_matrix(answer, tuple(kinds)), "nodes", "Nodes by kinds of difference")
    yield "<h2>Each difference</h2>\n"
    yield from _some(differences(answer.alike), "each", "Each difference")
    yield "</div>\n</section>\n"


def _some(found: TextTable, name: str, caption: str) -> Iterator[str]:
    yield from table(found, name=name, caption=caption, sorts=False, most=_MOST)
    if len(found.rows) > _MOST:
        yield f"<p>The first {_MOST:,} of {len(found.rows):,}; scripts show all.</p>\n"


def _matrix(answer: DriftAnswer, kinds: tuple[DriftKind, ...]) -> TextTable:
    """Return how many differences of each kind each node has, those with most first."""
    counted: defaultdict[str, Counter[DriftKind]] = defaultdict(Counter)
    for each in answer.drifted.findings:
        counted[each.node][each.drift] += 1
    order = sorted(counted.items(), key=lambda each: (-each[1].total(), each[0]))
    rows: list[tuple[Cell, ...]] = [
        (name, *(f"{of[kind]:,}" if of[kind] else "" for kind in kinds)) for name, of in order
    ]
    heads = (Column("NODE"), *(Column(kind.value, right=True) for kind in kinds))
    return TextTable(heads, tuple(rows))


def _data(answer: DriftAnswer, kinds: dict[DriftKind, int]) -> Iterator[str]:
    """Yield kinds, names of nodes, and every difference with the places of its nodes."""
    nodes = {name: at for at, name in enumerate(answer.drifting)}
    places = {kind: at for at, kind in enumerate(kinds)}
    told = [[kind.value, WORDS[kind]] for kind in kinds]
    names = [printable(name) for name in nodes]
    yield f'{{"kinds":{encode(told)},"nodes":{encode(names)},"differences":['
    before = ""
    for each in answer.alike:
        texts = map(printable, (each.service, proto(each.protocol, each.version), each.what))
        row = [places[each.drift], *texts, [nodes[name] for name in each.nodes]]
        yield before + encode(row)
        before = ",\n"
    yield "]}"
