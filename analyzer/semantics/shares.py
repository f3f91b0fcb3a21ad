"""The share of each end of a tree, folded in one pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar, assert_never

from analyzer.model.intervals import Intervals, common_of, joined
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import value
from analyzer.semantics.depth import deep
from analyzer.semantics.parts import Parts, combined, merged, of_all
from analyzer.semantics.sums import UNKNOWN, Sums, drawn
from analyzer.semantics.tree import (
    BySource,
    Chance,
    Either,
    Leaf,
    Tree,
    Unresolved,
)

K = TypeVar("K", bound=Hashable)


@value
class Shares(Mapping[K, Bounds]):
    """Bounds on the probability of each of several keys.

    Attributes:
        unresolved: an upper bound on the probability of anything that no key names.
    """

    bounds: Mapping[K, Bounds]
    unresolved: Dyadic

    def __getitem__(self, key: K) -> Bounds:
        return self.bounds[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds)

    @property
    def is_exact(self) -> bool:
        """Whether nothing unknown can change any of them."""
        return not self.unresolved and all(b.is_exact for b in self.bounds.values())


def any_of(found: Sequence[Shares[K]]) -> Shares[K]:
    """Return the bounds if one of several applies, but it is not known which."""
    keys = dict.fromkeys(key for each in found for key in each)
    bounds: dict[K, Bounds] = {}
    for key in keys:
        every = [each.get(key) or Bounds(NEVER, each.unresolved) for each in found]
        bounds[key] = Bounds(min(b.lower for b in every), max(b.upper for b in every))
    return Shares(bounds, max(each.unresolved for each in found))


@deep
def shares(tree: Tree, key: Callable[[Leaf], K]) -> Shares[K]:
    """Bound the probability of each key that a leaf of `tree` has, in the order of leaves.

    It takes one pass, whatever the number of keys. An unresolved leaf may have any of them.

    Raises:
        ValueError: it depends on the source; use `shares_by_source` instead.
    """
    found = shares_by_source(tree, key)
    if len(found) > 1:
        raise ValueError("rules distinguish sources")
    return found[0][1]


@deep
def shares_by_source(tree: Tree, key: Callable[[Leaf], K]) -> Parts[Shares[K]]:
    """Bound the same for each part of the sources with other results."""
    fold = _Fold(key)
    found = fold.of(tree)
    names = [*fold.keys]

    def told(sums: Sums) -> Shares[K]:
        held = sums.all()
        return Shares({names[at]: Bounds(*held[at]) for at in sorted(held)}, sums.other)

    return tuple([(where, told(sums)) for where, sums in found])


class _Fold(Generic[K]):
    """One pass over a tree, whose branches may share what is below them."""

    def __init__(self, key: Callable[[Leaf], K]) -> None:
        self._key = key
        #: The keys of the leaves, numbered in their order.
        self.keys: dict[K, int] = {}
        # By identity: the tree keeps its nodes alive, and comparing them would take as long.
        self._done: dict[int, Parts[Sums]] = {}
        self._alike: dict[Hashable, Sums] = {}
        self._numbers: dict[int, int | None] = {}
        #: By their keys.
        self._anythings: dict[int, Sums] = {}

    def of(self, tree: Tree) -> Parts[Sums]:
        # Paths that meet again differ in the rules before, and share their branches.
        node = id(tree if isinstance(tree, Leaf) else tree.branches)
        found = self._done.get(node)
        if found is None:
            made = self._fold(tree)
            # Trees that differ only in what no key shows, such as marks, are merged from here on.
            found = tuple([(w, self._alike.setdefault(s.told(), s)) for w, s in made])
            self._done[node] = found
        return found

    def _fold(self, tree: Tree) -> Parts[Sums]:
        match tree:
            case Leaf():
                return of_all(Sums.leaves([(self._number(tree), ALWAYS)]))
            case Chance(branches):
                ends: list[tuple[int | None, Dyadic]] = []
                weights: list[Dyadic] = []
                parts: list[Parts[Sums]] = []
                for weight, child in branches:
                    if isinstance(child, Leaf):
                        ends.append((self._number(child), weight))
                    else:
                        weights.append(weight)
                        parts.append(self.of(child))
                if ends:
                    weights.insert(0, ALWAYS)
                    parts.insert(0, of_all(Sums.leaves(ends)))
                return combined(parts, lambda sums: drawn(list(zip(weights, sums, strict=True))))
            case Either(_, branches):
                below = [self.of(child) for child in branches]
                if any(isinstance(c, Leaf) and isinstance(c.outcome, Unresolved) for c in branches):
                    return of_all(self._anything(below))
                return combined(below, _any_of)
            case BySource():
                return merged([(where, self.of(child)) for where, child in _apart(tree)])
            case _:
                assert_never(tree)

    def _anything(self, below: Sequence[Parts[Sums]]) -> Sums:
        """Return the bounds if one branch may be anything, with the keys of all of them."""
        keys = 0
        for parts in below:
            for _, sums in parts:
                keys |= sums.keys
        if keys not in self._anythings:
            self._anythings[keys] = Sums.anything(keys)
        return self._anythings[keys]

    def _number(self, leaf: Leaf) -> int | None:
        """Return the number of a leaf's key; None if it may be any key."""
        if id(leaf) not in self._numbers:
            unresolved = isinstance(leaf.outcome, Unresolved)
            number = None if unresolved else self.keys.setdefault(self._key(leaf), len(self.keys))
            self._numbers[id(leaf)] = number
        return self._numbers[id(leaf)]


def _apart(tree: BySource) -> Iterator[tuple[Intervals, Tree]]:
    """Yield what follows for sources after rules that match on these alone, and for which.

    Of a list of networks, row by row, each rule leaves the rest of the sources to the next one. To
    tell from the last to the first which sources come where would take the square of them.
    """
    reached: dict[int, list[Intervals]] = {}
    ends: dict[int, Tree] = {}
    for node in reversed(_in_a_row(tree)):
        came = reached.get(id(node.branches), ())
        where = _union(came)
        for region, child in node.branches:
            there = region.intervals if node is tree else common_of(region.intervals, where)
            if there:
                name = id(child if isinstance(child, Leaf) else child.branches)
                reached.setdefault(name, []).append(there)
                if not isinstance(child, BySource):
                    ends.setdefault(name, child)
    for name, child in ends.items():
        yield _union(reached[name]), child


def _union(sources: Sequence[Intervals]) -> Intervals:
    if len(sources) == 1:
        return sources[0]
    return joined(each for some in sources for each in some)


def _in_a_row(tree: BySource) -> list[BySource]:
    """Return the nodes below that are come to by sources alone, each after those below it."""
    found: list[BySource] = []
    seen: set[int] = set()
    rest: list[tuple[BySource, bool]] = [(tree, False)]
    while rest:
        node, is_done = rest.pop()
        if is_done:
            found.append(node)
        elif id(node.branches) not in seen:
            seen.add(id(node.branches))
            rest.append((node, True))
            rest += [(child, False) for _, child in node.branches if isinstance(child, BySource)]
    return found


def _any_of(branches: list[Sums]) -> Sums:
    """Return the bounds if one branch is taken, but it is not known which."""
    found, *rest = branches
    for each in rest:
        if each is not found:  # equal branches are the same object
            found = found.mixed(each, UNKNOWN)
    return found


def chance_of(shares: Shares[bool]) -> Bounds:
    """Bound the probability of the leaves for which the key is True."""
    return shares.get(True) or Bounds(NEVER, shares.unresolved)
