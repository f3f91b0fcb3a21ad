"""The probability tree that a ruleset gives a packet, and the folds over it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeAlias, TypeVar, assert_never

from analyzer.model.distribution import Distribution
from analyzer.model.nft import Rule as NftRule
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.rules import Rule
from analyzer.model.targets import Accept, Dnat, Drop, Masquerade, Redirect, Reject, Snat
from analyzer.model.value import replace, value
from analyzer.semantics.depth import deep
from analyzer.semantics.sums import UNKNOWN, Sums, drawn

K = TypeVar("K", bound=Hashable)


#: A rule of iptables or of nft.
AnyRule: TypeAlias = Rule | NftRule


@value
class FellThrough:
    """No rule decided: the chain's policy, or its caller, does."""

    chain: str


@value
class Unresolved:
    """A target that we cannot read may have decided anything."""

    text: str


@value
class PolicyDrop:
    """A base chain was passed to its end, and its policy is DROP."""

    table: str
    chain: str


@value
class Delivered:
    """The packet got through all hooks.

    Attributes:
        here: to the node itself, not out of one of its interfaces.
    """

    here: bool


Outcome: TypeAlias = (
    Accept
    | Drop
    | Reject
    | Dnat
    | Redirect
    | Masquerade
    | Snat
    | FellThrough
    | PolicyDrop
    | Delivered
    | Unresolved
)


@value
class Leaf:
    """The traversal ended, with the packet as it is by then.

    Attributes:
        rules: the rules that matched since the node above, in order. So on every node.
    """

    outcome: Outcome
    packet: Packet
    rules: tuple[AnyRule, ...] = ()


@value
class Chance:
    """One branch is drawn; the probabilities sum to exactly 1."""

    branches: tuple[tuple[Dyadic, Tree], ...]
    rules: tuple[AnyRule, ...] = ()


@value
class Either:
    """One branch is taken, but we do not know which, nor how often."""

    because: str
    branches: tuple[Tree, ...]
    rules: tuple[AnyRule, ...] = ()


Tree: TypeAlias = Leaf | Chance | Either


def after(rule: AnyRule, tree: Tree) -> Tree:
    """Return `tree` as it goes on behind `rule`, which matched."""
    return replace(tree, rules=(rule, *tree.rules))


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


@deep
def shares(tree: Tree, key: Callable[[Leaf], K]) -> Shares[K]:
    """Bound the probability of each key that a leaf of `tree` has, in the order of leaves.

    One pass, whatever the number of keys. An unresolved leaf may be any of them.
    """
    fold = _Fold(key)
    found = fold.of(tree)
    held = found.all()
    return Shares({k: Bounds(*held[at]) for k, at in fold.keys.items()}, found.other)


class _Fold(Generic[K]):
    """One pass over a tree, whose branches may share what is below them."""

    def __init__(self, key: Callable[[Leaf], K]) -> None:
        self._key = key
        #: The keys of the leaves, numbered in their order.
        self.keys: dict[K, int] = {}
        # By identity: the tree keeps its nodes alive, and to compare them would take as long.
        self._done: dict[int, Sums] = {}
        self._alike: dict[Hashable, Sums] = {}
        self._numbers: dict[int, int | None] = {}

    def of(self, tree: Tree) -> Sums:
        # Ways that meet again differ in the rules before, and share their branches.
        node = id(tree if isinstance(tree, Leaf) else tree.branches)
        found = self._done.get(node)
        if found is None:
            made = self._fold(tree)
            # Trees that differ in what no key tells, as in marks, are one from here on.
            found = self._done[node] = self._alike.setdefault(made.told(), made)
        return found

    def _fold(self, tree: Tree) -> Sums:
        match tree:
            case Leaf():
                return Sums.leaves([(self._number(tree), ALWAYS)])
            case Chance(branches):
                ends: list[tuple[int | None, Dyadic]] = []
                parts: list[tuple[Dyadic, Sums]] = []
                for weight, child in branches:
                    if isinstance(child, Leaf):
                        ends.append((self._number(child), weight))
                    else:
                        parts.append((weight, self.of(child)))
                return drawn([(ALWAYS, Sums.leaves(ends)), *parts]) if ends else drawn(parts)
            case Either(_, branches):
                found, *rest = [self.of(child) for child in branches]
                for each in rest:
                    found = found.mixed(each, UNKNOWN)
                return found
            case _:
                assert_never(tree)

    def _number(self, leaf: Leaf) -> int | None:
        """Return the number of a leaf's key; None: it may be any."""
        if id(leaf) not in self._numbers:
            unresolved = isinstance(leaf.outcome, Unresolved)
            number = None if unresolved else self.keys.setdefault(self._key(leaf), len(self.keys))
            self._numbers[id(leaf)] = number
        return self._numbers[id(leaf)]


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
