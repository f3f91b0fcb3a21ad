"""The probability tree of a packet in a ruleset, and folds over it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar, assert_never

from analyzer.model.diagnostics import Location
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Accept, Dnat, Drop, Masquerade, Redirect, Reject, Snat
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.region import Intervals, Region, common_of, joined
from analyzer.model.value import value
from analyzer.semantics.depth import deep
from analyzer.semantics.parts import Parts, combined, merged, of_all
from analyzer.semantics.sums import UNKNOWN, Sums, drawn

TYPE_CHECKING = False
if TYPE_CHECKING:  # not needed by most
    from analyzer.model.distribution import Distribution
    from analyzer.model.nft.ruleset import Rule as NftRule

K = TypeVar("K", bound=Hashable)


#: A rule of iptables or of nft.
AnyRule: TypeAlias = "Rule | NftRule"


@value
class FellThrough:
    """No rule decided: the chain's policy, or its caller, does."""


@value
class Unresolved:
    """A target that we cannot parse may have decided anything."""

    text: str


@value
class PolicyDrop:
    """The packet reached the end of a base chain whose policy is DROP."""

    table: str
    chain: str
    place: Location | None = None


@value
class Delivered:
    """The packet passed all hooks.

    Attributes:
        here: it is delivered to the node itself, not sent out of one of its interfaces.
    """

    here: bool


@value
class OtherZone:
    """Conntrack looks for the flow of an answer in another zone than it is in."""


@value
class OwnSource:
    """The packet returns to its sender, which does not answer packets from its own address."""


@value
class Unanswered:
    """The packet passed all hooks, and the answer to it does not come back to its sender.

    Attributes:
        by: what ends the answer; None: conntrack does not track it, so that its addresses are not
            put back.
    """

    by: Drop | Reject | PolicyDrop | OtherZone | OwnSource | None


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
    | Unanswered
    | Unresolved
)


@value
class Leaf:
    """The traversal ended, with the packet as it is then.

    Attributes:
        rules: the rules that matched since the node above, in order; every kind of node has them.
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
    """One branch is taken, but it is not known which, nor how often."""

    because: str
    branches: tuple[Tree, ...]
    rules: tuple[AnyRule, ...] = ()


@value
class BySource:
    """A rule matches on the packet's source: each branch is for some of its sources.

    Attributes:
        asked: the addresses that it matches.
    """

    asked: Intervals
    branches: tuple[tuple[Region, Tree], ...]
    rules: tuple[AnyRule, ...] = ()


Tree: TypeAlias = Leaf | Chance | Either | BySource


def after(rule: AnyRule, tree: Tree) -> Tree:
    """Return `tree` as it continues after `rule`, which matched."""
    return after_all((rule,), tree)


def after_all(matched: Sequence[AnyRule], tree: Tree) -> Tree:
    """Return `tree` as it continues after rules that matched."""
    rules = (*matched, *tree.rules)
    # Each is made as such, which takes a fifth of the time of `replace`.
    match tree:
        case Leaf():
            return Leaf(tree.outcome, tree.packet, rules)
        case Either():
            return Either(tree.because, tree.branches, rules)
        case Chance():
            return Chance(tree.branches, rules)
        case BySource():
            return BySource(tree.asked, tree.branches, rules)
        case _:
            assert_never(tree)


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


def bounds(tree: Tree, event: Callable[[Leaf], bool]) -> Bounds:
    """Bound the probability of `event`, whatever the unknown matches decide."""
    return chance_of(shares(tree, event))


def chance_of(shares: Shares[bool]) -> Bounds:
    """Bound the probability of the leaves for which the key is True."""
    return shares.get(True) or Bounds(NEVER, shares.unresolved)


def distribution(tree: Tree) -> Distribution[Outcome]:
    """Return the exact distribution of a tree that contains nothing unknown.

    Raises:
        ValueError: the tree has an `Either`; use `bounds` instead.
    """
    from analyzer.model.distribution import Distribution

    return Distribution.collect((leaf.outcome, w) for leaf, w in leaves(tree, ALWAYS))


def every_leaf(tree: Tree) -> Iterator[Leaf]:
    """Yield each leaf once, however many paths lead there."""
    return (each for each in every_node(tree) if isinstance(each, Leaf))


def every_node(tree: Tree) -> Iterator[Tree]:
    """Yield each node once, however many paths lead there, in the order of rules."""
    seen: set[int] = set()
    rest: list[Tree] = [tree]
    while rest:
        each = rest.pop()
        # Paths that meet again differ in the rules before, and share their branches.
        node = id(each if isinstance(each, Leaf) else each.branches)
        if node in seen:
            continue
        seen.add(node)
        yield each
        match each:
            case Chance(branches):
                rest += [child for _, child in reversed(branches)]
            case Either(_, branches):
                rest += reversed(branches)
            case BySource(_, parts):
                rest += [child for _, child in reversed(parts)]
            case _:
                pass


def leaves(tree: Tree, weight: Dyadic) -> Iterator[tuple[Leaf, Dyadic]]:
    """Yield each leaf with its probability times `weight`.

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
        case BySource():
            raise ValueError("no single distribution: rules distinguish sources")
        case _:
            assert_never(tree)
