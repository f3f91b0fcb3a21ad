"""The probability tree that a ruleset gives a packet, and the folds over it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeAlias, TypeVar, assert_never

from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Distribution, Dyadic
from analyzer.model.rules import Rule
from analyzer.model.targets import Accept, Dnat, Drop, Masquerade, Redirect, Reject, Snat
from analyzer.model.value import replace, value

K = TypeVar("K", bound=Hashable)


@value
class FellThrough:
    """No rule decided: the chain's policy, or its caller, does."""

    chain: str


@value
class Unresolved:
    """A target that we cannot read may have decided anything."""

    text: str


Outcome: TypeAlias = (
    Accept | Drop | Reject | Dnat | Redirect | Masquerade | Snat | FellThrough | Unresolved
)


@value
class Leaf:
    """The traversal ended, with the packet as it is by then.

    Attributes:
        rules: the rules that matched since the node above, in order. So on every node.
    """

    outcome: Outcome
    packet: Packet
    rules: tuple[Rule, ...] = ()


@value
class Chance:
    """One branch is drawn; the probabilities sum to exactly 1."""

    branches: tuple[tuple[Dyadic, Tree], ...]
    rules: tuple[Rule, ...] = ()


@value
class Either:
    """One branch is taken, but we do not know which, nor how often."""

    because: str
    branches: tuple[Tree, ...]
    rules: tuple[Rule, ...] = ()


Tree: TypeAlias = Leaf | Chance | Either


def after(rule: Rule, tree: Tree) -> Tree:
    """Return `tree` as it goes on behind `rule`, which matched."""
    return replace(tree, rules=(rule, *tree.rules))


def graft(tree: Tree, grow: Callable[[Leaf], Tree]) -> Tree:
    """Return `tree` with what `grow` makes of each leaf in its place, its rules kept."""
    match tree:
        case Leaf():
            grown = grow(tree)
            return replace(grown, rules=(*tree.rules, *grown.rules))
        case Chance(branches):
            return replace(tree, branches=tuple((w, graft(t, grow)) for w, t in branches))
        case Either(_, branches):
            return replace(tree, branches=tuple(graft(t, grow) for t in branches))
        case _:
            assert_never(tree)


@value
class Shares(Mapping[K, Bounds]):
    """Bounds on how often each of several keys happens.

    Attributes:
        unresolved: how often, at most, something may happen that no key names.
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


def shares(tree: Tree, key: Callable[[Leaf], K]) -> Shares[K]:
    """Bound the probability of each key that a leaf of `tree` has.

    One pass, whatever the number of keys. An unresolved leaf may be any of them.
    """
    lower, upper, unresolved = _shares(tree, key)
    bounds = {
        k: Bounds(lower.get(k, NEVER), _at_most_one(high, unresolved)) for k, high in upper.items()
    }
    return Shares(bounds, unresolved)


def _at_most_one(high: Dyadic, more: Dyadic) -> Dyadic:
    return ALWAYS if ~high <= more else high + more


_Sums: TypeAlias = tuple[dict[K, Dyadic], dict[K, Dyadic], Dyadic]


def _shares(tree: Tree, key: Callable[[Leaf], K]) -> _Sums[K]:
    match tree:
        case Leaf(Unresolved()):
            return {}, {}, ALWAYS
        case Leaf():
            one = {key(tree): ALWAYS}
            return one, one, NEVER
        case Chance(branches):
            return _weighted([(weight, _shares(child, key)) for weight, child in branches])
        case Either(_, branches):
            return _widest([_shares(child, key) for child in branches])
        case _:
            assert_never(tree)


def _weighted(parts: list[tuple[Dyadic, _Sums[K]]]) -> _Sums[K]:
    lower: dict[K, Dyadic] = {}
    upper: dict[K, Dyadic] = {}
    unresolved = NEVER
    for weight, (low, high, open_) in parts:
        for into, each in ((lower, low), (upper, high)):
            for k, share in each.items():
                into[k] = into.get(k, NEVER) + weight * share
        unresolved += weight * open_
    return lower, upper, unresolved


def _widest(each: list[_Sums[K]]) -> _Sums[K]:
    keys = {k: None for _, high, _ in each for k in high}
    lower = {k: min(low.get(k, NEVER) for low, _, _ in each) for k in keys}
    upper = {k: max(high.get(k, NEVER) for _, high, _ in each) for k in keys}
    return lower, upper, max(unresolved for _, _, unresolved in each)


def bounds(tree: Tree, event: Callable[[Leaf], bool]) -> Bounds:
    """Bound the probability of `event`, whatever the unknown matches decide."""
    found = shares(tree, event)
    return found.get(True) or Bounds(NEVER, found.unresolved)


def distribution(tree: Tree) -> Distribution[Outcome]:
    """Return the exact distribution of a tree that holds nothing unknown.

    Raises:
        ValueError: the tree has an `Either`; ask for `bounds` instead.
    """
    return Distribution.collect((leaf.outcome, w) for leaf, w in leaves(tree, ALWAYS))


def leaves(tree: Tree, weight: Dyadic) -> Iterator[tuple[Leaf, Dyadic]]:
    """Give each leaf with its probability times `weight`.

    Raises:
        ValueError: the tree has an `Either`.
    """
    match tree:
        case Leaf():
            yield tree, weight
        case Chance(branches):
            for part, child in branches:
                yield from leaves(child, weight * part)
        case Either(because):
            raise ValueError(f"no single distribution: {because}")
        case _:
            assert_never(tree)
