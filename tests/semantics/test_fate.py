from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Accept, Drop, Reject
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.semantics.fate import UNRESOLVED, Fate, PacketEnd, ends, fate_of
from analyzer.semantics.tree import (
    Chance,
    Delivered,
    Either,
    FellThrough,
    Leaf,
    Outcome,
    PolicyDrop,
    Unresolved,
)
from tests.support.strategies.iptables_rules import HERE

POD, OTHER = ip_address("10.1.0.1"), ip_address("10.1.0.2")
SENT = Packet(destination=POD, destination_port=80)
TRANSLATED = Packet(destination=POD, destination_port=8080, translated=True)
HALF, QUARTER, REST = Dyadic.of(1, 1), Dyadic.of(1, 2), Dyadic.of(3, 2)
AWAY, HERE_ = Delivered(here=False), Delivered(here=True)


@pytest.mark.parametrize(
    ("outcome", "packet", "fate"),
    [
        (Drop(), SENT, Fate("drop")),
        (
            PolicyDrop("filter", "FORWARD"),
            SENT,
            Fate("drop", how="policy of FORWARD in table filter"),
        ),
        (
            PolicyDrop("filter", "FORWARD", is_known=False),
            SENT,
            Fate("drop", how="unknown policy of FORWARD in table filter"),
        ),
        (Reject("tcp-reset"), SENT, Fate("reject", how="tcp-reset")),
        (AWAY, SENT, Fate("no-service", POD, 80)),
        (HERE_, SENT, Fate("local", POD, 80)),
        (AWAY, TRANSLATED, Fate("endpoint", POD, 8080)),
        (HERE_, TRANSLATED, Fate("endpoint", POD, 8080)),
        # Of a range of addresses nobody knows which.
        (AWAY, Packet(translated=True), Fate("no-service")),
        (Unresolved("x"), SENT, UNRESOLVED),
        (Accept(), SENT, UNRESOLVED),
        (FellThrough(), SENT, UNRESOLVED),
    ],
)
def test_a_leaf_stands_for_one_fate(outcome: Outcome, packet: Packet, fate: Fate) -> None:
    assert fate_of(Leaf(outcome, packet)) == fate


def rule(name: str) -> Rule:
    return Rule((), None, HERE, name)


def to(address: str, *rules: str, masqueraded: bool | None = False) -> Leaf:
    packet = Packet(destination=ip_address(address), translated=True, masqueraded=masqueraded)
    return Leaf(AWAY, packet, tuple(map(rule, rules)))


def test_the_likeliest_end_comes_first() -> None:
    tree = Chance(((QUARTER, to("10.1.0.1")), (REST, to("10.1.0.2"))))
    assert [end.fate.address for end in ends(tree)] == [OTHER, POD]


def test_ends_that_differ_by_rounding_only_stay_in_the_order_of_the_rules() -> None:
    little = Dyadic.of(2**31 - 1, 32)
    tree = Chance(((little, to("10.1.0.2")), (~little, to("10.1.0.1"))))
    assert [end.fate.address for end in ends(tree)] == [OTHER, POD]


def test_the_same_end_by_two_ways_is_told_once_by_the_first_way() -> None:
    tree = Chance(
        ((HALF, to("10.1.0.1", "first")), (HALF, to("10.1.0.1", "second"))), (rule("above"),)
    )
    (end,) = ends(tree)
    assert end.probability == Bounds(ALWAYS, ALWAYS)
    assert [each.raw for each in end.rules] == ["above", "first"]


def test_a_source_that_is_masqueraded_on_some_ways_only_is_not_known() -> None:
    def masquerade(*answers: bool | None) -> bool | None:
        leaves = [to("10.1.0.1", str(n), masqueraded=each) for n, each in enumerate(answers)]
        (end,) = ends(Chance(tuple((HALF, leaf) for leaf in leaves)))
        return end.masquerade

    assert masquerade(True, True) is True
    assert masquerade(False, False) is False
    assert masquerade(True, False) is None
    assert masquerade(None, None) is None


def test_what_goes_nowhere_has_no_source() -> None:
    (end,) = ends(Leaf(Drop(), SENT))
    assert end == PacketEnd(Fate("drop"), Bounds(ALWAYS, ALWAYS), None, ())


def test_what_is_not_known_comes_last_with_its_rules() -> None:
    open_ = Leaf(Unresolved("x"), SENT, (rule("unread"),))
    tree = Either("x", (Chance(((QUARTER, to("10.1.0.1")), (REST, open_))), to("10.1.0.2")))
    found = ends(tree)
    assert [end.fate.kind for end in found] == ["endpoint", "endpoint", "unresolved"]
    assert found[-1].probability == Bounds(NEVER, REST)
    assert [each.raw for each in found[-1].rules] == ["unread"]


def test_an_end_that_may_happen_beside_an_unread_target_has_the_whole_rest_as_upper_bound() -> None:
    tree = Chance(((QUARTER, to("10.1.0.1")), (REST, Leaf(Unresolved("x"), SENT))))
    assert ends(tree)[0].probability == Bounds(QUARTER, ALWAYS)
