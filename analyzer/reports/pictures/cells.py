"""A probability tree as cells, each next to its parent: rules, draws, and ends.

A cell is as high as its share of the new flows. Where it is not known whether a rule matches, the
shares of both branches are unknown: these are drawn equally high, with their bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic, capped_sum
from analyzer.model.text import printable
from analyzer.reports.document import Piece, Style, spans
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.phrases import count
from analyzer.reports.rules import says, signed_place
from analyzer.semantics.onward import chain_of
from analyzer.semantics.tree import AnyRule, BySource, Chance, Either, Leaf, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: The text at the end of a path: its style shows whether a flow is lost there.
EndOf = Callable[[Leaf], tuple[Piece, ...]]

_KINDS: Final = {Style.GOOD: "alive", Style.BAD: "dead"}
#: Cells of a picture: what follows is left out, and said to be.
_MOST_CELLS: Final = 6_000


class TreeCell:
    """One cell; `low` and `high` bound its share of the new flows, `size` is its height.

    Attributes:
        title: the chain of a rule, or what an end is.
        says: what a rule does.
        place: where it stands.
        kind: branch, alive, dead or other.
    """

    __slots__ = ("below", "bounds", "kind", "place", "says", "size", "title")

    def __init__(
        self, title: str, says: str, place: str, kind: str, bounds: Bounds, size: float
    ) -> None:
        self.title = printable(title)
        self.says = printable(says)
        self.place = place
        self.kind = kind
        self.bounds = bounds
        self.size = size
        self.below: list[TreeCell] = []

    @property
    def share(self) -> str:
        """Its share of the new flows, as the command line prints it."""
        return f"{bounds_fraction(self.bounds)} {bounds_percent(self.bounds)}".strip()

    def encoded(self) -> dict[str, Any]:
        """Return it and its children as pages need them."""
        found: dict[str, Any] = {}
        rest: list[tuple[TreeCell, dict[str, Any]]] = [(self, found)]
        while rest:
            cell, told = rest.pop()
            told |= {"t": cell.title, "r": cell.says, "p": cell.place, "k": cell.kind}
            told |= {"s": cell.share, "v": cell.size}
            if cell.below:
                told["c"] = [{} for _ in cell.below]
                rest += zip(cell.below, told["c"], strict=True)
        return found


def cells(title: str, tree: Tree, end_of: EndOf, most: int) -> TreeCell:
    """Return the first cell, of all new flows; a draw has at most so many branches."""
    root = TreeCell(title, "", "", "branch", Bounds(ALWAYS, ALWAYS), 1.0)
    left = _MOST_CELLS
    last: list[tuple[TreeCell, TreeCell]] = []  # what is below the branches that are shown
    rest: list[tuple[TreeCell, Tree, Bounds, float]] = [(root, tree, root.bounds, 1.0)]
    while rest:
        parent, each, bounds, size = rest.pop()
        for rule in each.rules:
            parent = _below(parent, _rule(rule, bounds, size))  # the next one is after it
            left -= 1
        if left < 0:
            _below(parent, TreeCell("not drawn: too many paths", "", "", "other", bounds, size))
            continue
        match each:
            case Leaf():
                _below(parent, _end(end_of(each), bounds, size))
                left -= 1
            case Chance(branches):
                shown = branches if len(branches) <= most else branches[: most - 1]
                told = [
                    (parent, child, _times(bounds, weight), size * float(weight))
                    for weight, child in shown
                ]
                rest += reversed(told)
                if hidden := branches[len(shown) :]:
                    last.append((parent, _hidden([w for w, _ in hidden], bounds, size)))
            case Either(because, branches):
                open_ = Bounds(NEVER, bounds.upper)
                asked = _below(parent, TreeCell("not known", because, "", "other", bounds, size))
                told = [(asked, child, open_, size / len(branches)) for child in branches]
                rest += reversed(told)
            case BySource():
                raise TypeError("a tree is drawn of one source")
            case _:
                assert_never(each)
    for parent, cell in last:
        _below(parent, cell)
    return root


def _below(parent: TreeCell, cell: TreeCell) -> TreeCell:
    parent.below.append(cell)
    return cell


def _rule(rule: AnyRule, bounds: Bounds, size: float) -> TreeCell:
    return TreeCell(chain_of(rule), says(rule), signed_place(rule), "branch", bounds, size)


def _end(pieces: Sequence[Piece], bounds: Bounds, size: float) -> TreeCell:
    told = spans(tuple(pieces))
    words = "".join(each.text for each in told).removeprefix("=> ")
    style = next((each.style for each in told if each.style is not Style.PLAIN), Style.PLAIN)
    return TreeCell(words, "", "", _KINDS.get(style, "other"), bounds, size)


def _hidden(weights: Sequence[Dyadic], bounds: Bounds, size: float) -> TreeCell:
    share = capped_sum(weights)
    words = count(len(weights), "more branch", "more branches")
    return TreeCell(words, "", "", "other", _times(bounds, share), size * float(share))


def _times(bounds: Bounds, weight: Dyadic) -> Bounds:
    return Bounds(bounds.lower * weight, bounds.upper * weight)


def every(root: TreeCell) -> Iterator[tuple[TreeCell, int, float]]:
    """Yield each cell with its depth and its start, from 0 to 1."""
    rest = [(root, 0, 0.0)]
    while rest:
        cell, depth, begins = rest.pop()
        yield cell, depth, begins
        at = begins
        for each in cell.below:
            rest.append((each, depth + 1, at))
            at += each.size
