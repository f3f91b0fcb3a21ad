"""The probability tree of a packet in a ruleset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, assert_never

from analyzer.model.diagnostics import Location
from analyzer.model.intervals import Intervals
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Accept, Dnat, Drop, Masquerade, Redirect, Reject, Snat
from analyzer.model.packet import Packet
from analyzer.model.probability import Dyadic
from analyzer.model.region import Region
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:  # not needed by most
    from analyzer.model.nft.ruleset import Rule as NftRule

#: A rule of iptables or of nft.
AnyRule: TypeAlias = "Rule | NftRule"


@value
class FellThrough:
    """No rule decided: the chain's policy, or its caller, does."""


@value
class Unresolved:
    """A target that we cannot parse may have decided anything.

    Attributes:
        is_lost: it is that of rules which the dump may have lost.
    """

    text: str
    is_lost: bool = False


@value
class PolicyDrop:
    """The packet reached the end of a base chain whose policy is DROP.

    Attributes:
        is_known: whether the dump says so; otherwise the policy may be DROP.
    """

    table: str
    chain: str
    place: Location | None = None
    is_known: bool = True

    @property
    def policy(self) -> str:
        """The policy, in words."""
        return "policy DROP" if self.is_known else "unknown policy"


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
