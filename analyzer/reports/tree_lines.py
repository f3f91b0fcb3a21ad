"""A tree as lines, with branches indented."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, assert_never

from analyzer.model.probability import ALWAYS, Bounds, Dyadic, capped_sum
from analyzer.reports.document import Piece, Span, Style
from analyzer.reports.numbers import bounds_percent, fraction
from analyzer.reports.phrases import count
from analyzer.reports.rules import says, signed_place
from analyzer.semantics.depth import deep
from analyzer.semantics.onward import chain_of
from analyzer.semantics.tree import AnyRule, BySource, Chance, Either, Leaf, Tree

Pieces = tuple[Piece, ...]
#: What is said at the end of a way.
ShowLeaf = Callable[[Leaf], Pieces]

#: What is said of branches that are not shown one by one.
ShowRest = Callable[[Sequence[tuple[Dyadic, Tree]]], Iterator[Pieces]]

#: Every branch is shown; otherwise these many where there are more than twice as many.
ALL: Final = 1 << 30


@deep
def lines(
    tree: Tree,
    leaf: ShowLeaf,
    *,
    tables: bool = False,
    most: int = ALL,
    rest: ShowRest = lambda _: iter(()),
) -> list[Pieces]:
    """Return the lines of a tree; with `tables` each rule says which table it is in.

    Of more than twice `most` branches only the first `most` are shown, and what `rest` says about
    the others. A subtree that several branches share is shown once, and referred to from then on: a
    tree of n unknown rules may have 2**n branches.
    """
    return list(_Writer(tree, leaf, rest, tables=tables, most=most).lines(tree, ""))


class _Writer:
    """Writes one tree."""

    def __init__(
        self, tree: Tree, leaf: ShowLeaf, rest: ShowRest, *, tables: bool, most: int
    ) -> None:
        self._leaf = leaf
        self._rest = rest
        self._tables = tables
        self._most = most
        self._shared = _shared(tree)
        self._shown: dict[int, int] = {}

    def lines(self, tree: Tree, indent: str) -> Iterator[Pieces]:
        faint = Span(indent, Style.FAINT)
        if id(tree) in self._shown:
            yield (faint, Span(f"as after [{self._shown[id(tree)]}]", Style.FAINT))
            return
        if id(tree) in self._shared:
            number = self._shown[id(tree)] = len(self._shown) + 1
            yield (faint, Span(f"[{number}]", Style.FAINT))
        for rule in tree.rules:
            yield (faint, *_rule(rule, tables=self._tables))
        labelled: list[tuple[str, Tree]] = []
        left_out: Sequence[tuple[Dyadic, Tree]] = ()
        match tree:
            case Leaf():
                yield (faint, *self._leaf(tree))
            case Chance(branches):
                shown = len(branches) if len(branches) <= 2 * self._most else self._most
                labelled = [(_chance(weight), child) for weight, child in branches[:shown]]
                left_out = branches[shown:]
            case Either(because, each):
                yield (faint, Span(f"not known: {because}", Style.WARNING))
                labelled = [(f"case {number}", child) for number, child in enumerate(each, 1)]
            case BySource():
                raise TypeError("a tree is shown of one source")
            case _:
                assert_never(tree)
        for at, (label, child) in enumerate(labelled):
            last = at == len(labelled) - 1 and not left_out
            fork, line = ("└─ ", "   ") if last else ("├─ ", "│  ")
            yield (Span(indent + fork, Style.FAINT), Span(label, Style.STRONG))
            yield from self.lines(child, indent + line)
        if left_out:
            share = capped_sum(weight for weight, _ in left_out)
            more = count(len(left_out), "more branch", "more branches")
            text = f"{more}, together {_chance(share)}"
            yield (Span(f"{indent}└─ ", Style.FAINT), Span(text, Style.FAINT))
            for pieces in self._rest(left_out):
                yield (Span(f"{indent}   ", Style.FAINT), *pieces)


def _shared(tree: Tree) -> set[int]:
    """Return the identities of forks that several ways lead to."""
    seen: set[int] = set()
    found: set[int] = set()
    rest: list[Tree] = [tree]
    while rest:
        each = rest.pop()
        if id(each) in seen:
            if not isinstance(each, Leaf):
                found.add(id(each))
            continue
        seen.add(id(each))
        match each:
            case Chance(branches):
                rest += [child for _, child in branches]
            case Either(_, branches):
                rest += branches
            case _:
                pass
    return found


def _chance(weight: Dyadic) -> str:
    exact = Bounds(weight, weight)
    words = f"{fraction(weight):>8} {bounds_percent(exact):>7}".strip()
    return words if weight != ALWAYS else "always"


def _rule(rule: AnyRule, *, tables: bool) -> Pieces:
    table = f"{rule.location.table} " if tables else ""
    place = Span(f"  {signed_place(rule)}", Style.FAINT)
    return (Span(table, Style.FAINT), chain_of(rule), " ", says(rule), place)
