from __future__ import annotations

from analyzer.model.diagnostics import Location
from analyzer.model.endings import UNKNOWN_END, Ending, EndKind
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Drop, Reject
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.semantics.onward import UNKNOWN, Onward, one_of, onward
from analyzer.semantics.tree import (
    Chance,
    Delivered,
    Either,
    Leaf,
    PolicyDrop,
    Tree,
    Unresolved,
)

HALF = Dyadic.of(1, 1)
RULE = Rule((), Drop(), Location("dump", 7, "filter"), "[0:0] -A FORWARD -j DROP")
DROPPED = Leaf(Drop(), Packet(), (RULE,))
BY_RULE = Ending(kind=EndKind.DROPPED, rule=RULE.raw, chain="FORWARD", table="filter")
KEPT, MASKED = (Leaf(Delivered(here=False), Packet(masqueraded=m)) for m in (False, True))


def of(tree: Tree) -> Onward:
    ((_, found),) = onward(tree, Packet())
    return found


def test_what_decides_is_named_with_its_chain_and_place() -> None:
    ((ending, share),) = of(DROPPED).lost
    assert (ending, share) == (BY_RULE, Bounds(ALWAYS, ALWAYS))
    assert str(ending.place) == "dump:7"
    ((policy, _),) = of(Leaf(PolicyDrop("filter", "FORWARD"), Packet())).lost
    assert (policy.kind, policy.how, policy.chain) == (
        EndKind.DROPPED,
        "policy DROP of FORWARD",
        "FORWARD",
    )
    unknown = PolicyDrop("filter", "FORWARD", is_known=False)
    ((perhaps, _),) = of(Either("", (KEPT, Leaf(unknown, Packet())))).lost
    assert (perhaps.kind, perhaps.how) == (EndKind.DROPPED, "unknown policy of FORWARD")
    ((rejected, _),) = of(Leaf(Reject("tcp-reset"), Packet(), (RULE,))).lost
    assert (rejected.kind, rejected.how) == (EndKind.REJECTED, "tcp-reset")


def test_the_source_is_told_of_those_that_are_not_lost() -> None:
    drawn = Chance(((HALF, DROPPED), (HALF, MASKED)))
    assert of(drawn) == Onward(Ternary.TRUE, ((BY_RULE, Bounds(HALF, HALF)),))
    assert of(Either("", (KEPT, MASKED))) == Onward(Ternary.UNKNOWN)
    assert of(DROPPED).masquerade is Ternary.UNKNOWN


def test_what_is_not_resolved_may_be_lost() -> None:
    found = of(Either("", (KEPT, Leaf(Unresolved("?"), Packet()))))
    assert found == Onward(Ternary.UNKNOWN, ((UNKNOWN_END, Bounds(NEVER, ALWAYS)),))


def test_what_is_certain_needs_no_second_look() -> None:
    assert of(KEPT).is_certain
    assert of(DROPPED).is_certain
    assert not UNKNOWN.is_certain
    assert not of(Either("", (KEPT, DROPPED))).is_certain


def test_of_several_that_may_hold_only_what_they_share_is_told() -> None:
    assert one_of([of(KEPT), of(KEPT)]) == of(KEPT)
    found = one_of([of(KEPT), of(DROPPED)])
    assert found == Onward(Ternary.UNKNOWN, ((BY_RULE, Bounds(NEVER, ALWAYS)),))
