"""A tree as lines, branches indented below what they branch from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, assert_never

from analyzer.model.probability import ALWAYS, Bounds, Dyadic, capped_sum
from analyzer.model.rules import Rule
from analyzer.parsers.xt.rule import render_target
from analyzer.reports.document import Piece, Span, Style
from analyzer.reports.numbers import bounds_percent, fraction
from analyzer.reports.outcomes import chain_of
from analyzer.reports.phrases import count
from analyzer.semantics.tree import Chance, Either, Leaf, Tree

Pieces = tuple[Piece, ...]
#: What is said at the end of a way.
ShowLeaf = Callable[[Leaf], Pieces]

#: Every branch is shown; otherwise these many where there are more than twice as many.
ALL: Final = 1 << 30


def lines(
    tree: Tree, leaf: ShowLeaf, *, tables: bool = False, most: int = ALL, indent: str = ""
) -> Iterator[Pieces]:
    """Give the lines of a tree; with `tables` each rule says which table it is in.

    Of more than twice `most` branches only the first `most` are shown.
    """
    for rule in tree.rules:
        yield (Span(indent, Style.FAINT), *_rule(rule, tables=tables))
    labelled: list[tuple[str, Tree]] = []
    left_out: list[Dyadic] = []
    match tree:
        case Leaf():
            yield (Span(indent, Style.FAINT), *leaf(tree))
        case Chance(branches):
            shown = len(branches) if len(branches) <= 2 * most else most
            labelled = [(_chance(weight), child) for weight, child in branches[:shown]]
            left_out = [weight for weight, _ in branches[shown:]]
        case Either(because, each):
            yield (Span(indent, Style.FAINT), Span(f"not known: {because}", Style.WARNING))
            labelled = [("either", child) for child in each]
        case _:
            assert_never(tree)
    for at, (label, child) in enumerate(labelled):
        last = at == len(labelled) - 1 and not left_out
        fork, line = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield (Span(indent + fork, Style.FAINT), Span(label, Style.STRONG))
        yield from lines(child, leaf, tables=tables, most=most, indent=indent + line)
    if left_out:
        share = capped_sum(left_out)
        more = f"{count(len(left_out), 'more branch', 'more branches')}, together {_chance(share)}"
        yield (Span(f"{indent}└─ ", Style.FAINT), Span(more, Style.FAINT))


def _chance(weight: Dyadic) -> str:
    exact = Bounds(weight, weight)
    words = f"{fraction(weight):>8} {bounds_percent(exact):>8}".strip()
    return words if weight != ALWAYS else "always"


def _rule(rule: Rule, *, tables: bool) -> Pieces:
    says = render_target(rule.target) if rule.target is not None else "(counts)"
    table = f"{rule.location.table} " if tables else ""
    place = Span(f"  line {rule.location.line}", Style.FAINT)
    return (Span(table, Style.FAINT), chain_of(rule), " ", says, place)
