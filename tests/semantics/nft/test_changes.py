"""What statements of nft make of a packet, and where they end a rule."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

import pytest

from analyzer.model.iptables import targets as t
from analyzer.model.iptables.options import Range
from analyzer.model.packet import UNKNOWN_MARK, Mark, Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.region import Region
from analyzer.model.value import replace
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.shares import shares
from analyzer.semantics.situation import Situation
from analyzer.semantics.translation import masqueraded
from analyzer.semantics.tree import FellThrough, Leaf, Tree, Unresolved
from tests.support.nft.packets import (
    BEFORE,
    HERE,
    LOST,
    MARKED,
    NODE,
    PACKET,
    PING,
    POD,
    SERVICE,
    SIX,
    UDP,
    dropped,
    table_of,
)
from tests.support.odds import bounds, leaves

HALF: Final = Dyadic.of(1, 1)


def walked(rules: str, packet: Packet = PACKET, situation: Situation = HERE) -> Tree:
    address = packet.destination or packet.source
    family = "ip6" if address is not None and address.version == 6 else "ip"
    return NftTraversal(table_of(rules), family, situation).tree("c", packet)


def passed(rules: str, packet: Packet = PACKET, situation: Situation = HERE) -> Packet:
    """The packet behind rules that decide nothing."""
    tree = walked(rules, packet, situation)
    assert isinstance(tree, Leaf)
    assert isinstance(tree.outcome, FellThrough)
    return tree.packet


@pytest.mark.parametrize(
    ("rule", "packet", "mark", "flow_mark"),
    [
        ("meta mark set 0x5", PACKET, Mark(5), Mark()),
        ("meta mark set meta mark | 0x10", MARKED, Mark(0x4011), Mark(2)),
        ("meta mark set meta mark & 0xffff0000 | 0x10", MARKED, Mark(0x10), Mark(2)),
        ("meta mark set meta mark ^ 0x1", MARKED, Mark(0x4000), Mark(2)),
        ("meta mark set meta mark << 4", MARKED, Mark(0x40010), Mark(2)),
        ("meta mark set meta mark >> 4", MARKED, Mark(0x400), Mark(2)),
        ("meta mark set meta mark << 31", MARKED, Mark(0x80000000), Mark(2)),
        ("meta mark set ct mark", MARKED, Mark(2), Mark(2)),
        ("ct mark set meta mark", MARKED, Mark(0x4001), Mark(0x4001)),
        ("ct mark set ct mark | 0x1", MARKED, Mark(0x4001), Mark(3)),
        ("meta mark set ip daddr map { 10.2.3.4 : 0x7 }", PACKET, Mark(7), Mark()),
        ("meta mark set ip daddr map @marks", PACKET, Mark(1), Mark()),
        ("meta mark set ip daddr map { 10.9.9.9 : 0x7 }", PACKET, Mark(), Mark()),
        ("meta mark set ip daddr map { 10.9.9.9 : 0x7, * : 0x8 }", PACKET, Mark(8), Mark()),
        ("meta mark set jhash ip saddr mod 4", PACKET, UNKNOWN_MARK, Mark()),
        ("meta mark set numgen inc mod 4", PACKET, UNKNOWN_MARK, Mark()),
        ("meta priority set 1:2", PACKET, Mark(), Mark()),
        # A mark of what conntrack does not see is not set, and cannot be read.
        ("ct mark set 0x5 meta mark set 0x1", LOST, Mark(1), Mark()),
        ("ct mark set ct mark | 0x1 meta mark set 0x1", LOST, Mark(), Mark()),
        ("meta mark set ct mark meta mark set 0x1", LOST, Mark(), Mark()),
        (
            "meta mark set meta mark | ct mark",
            replace(MARKED, tracked=False),
            Mark(0x4001),
            Mark(2),
        ),
        # What a rule has done stays done where it ends.
        ("meta mark set 0x5 tcp dport 81", PACKET, Mark(5), Mark()),
        ("meta mark set 0x5 udp dport 80 meta mark set 0x6", PACKET, Mark(5), Mark()),
        ("tcp dport 81 meta mark set 0x5", PACKET, Mark(), Mark()),
        ("ip daddr 10.2.3.4 meta mark set 0x5", SIX, Mark(), Mark()),
        ("meta priority set tcp dport map { 81 : 1:2 } meta mark set 0x1", PACKET, Mark(), Mark()),
        ("add @banned { ip saddr } meta mark set 0x1", PACKET, Mark(1), Mark()),
        ("add @banned { ip saddr } meta mark set 0x1", SIX, Mark(), Mark()),
        ("update @ports { udp dport } meta mark set 0x1", PACKET, Mark(), Mark()),
        ("counter log continue meta mark set 0x1", PACKET, Mark(1), Mark()),
    ],
)
def test_marks(rule: str, packet: Packet, mark: Mark, flow_mark: Mark) -> None:
    behind = passed(rule, packet)
    assert (behind.mark, behind.flow_mark) == (mark, flow_mark)


def test_marks_may_be_drawn() -> None:
    tree = walked("meta mark set numgen random mod 2 offset 1\nmeta mark 1 drop")
    assert {(leaf.packet.mark.value, weight) for leaf, weight in leaves(tree, ALWAYS)} == {
        (1, HALF),
        (2, HALF),
    }


@pytest.mark.parametrize(
    ("rule", "target", "destination", "port"),
    [
        ("dnat ip to 10.1.0.9", t.Dnat(t.NatRange(POD)), POD, 80),
        ("tcp dport 80 dnat ip to 10.1.0.9:53", t.Dnat(t.NatRange(POD, None, 53)), POD, 53),
        ("meta l4proto tcp dnat to :53", t.Dnat(t.NatRange(first_port=53)), SERVICE, 53),
        (
            "meta l4proto tcp dnat ip to ip daddr . tcp dport map "
            "{ 10.2.3.4 . 80 : 10.1.0.9 . 53 }",
            t.Dnat(t.NatRange(POD, None, 53)),
            POD,
            53,
        ),
        (
            "dnat ip to 10.1.0.9-10.1.0.10",
            t.Dnat(t.NatRange(POD, ip_address("10.1.0.10"))),
            None,
            80,
        ),
        (
            "dnat ip prefix to ip daddr map { 10.2.3.0/24 : 10.8.0.0/24 }",
            t.Dnat(t.NatRange(ip_address("10.8.0.4"))),
            ip_address("10.8.0.4"),
            80,
        ),
        ("redirect", t.Redirect(), None, 80),
        ("meta l4proto tcp redirect to :53", t.Redirect(Range(53, 53)), None, 53),
        ("masquerade", t.Masquerade(), SERVICE, 80),
        ("snat ip to 172.16.0.1", t.Snat(t.NatRange(NODE)), SERVICE, 80),
    ],
)
def test_translations(rule: str, target: t.Target, destination: Any, port: int) -> None:
    tree = walked(f"{rule}\ndrop")
    assert isinstance(tree, Leaf)
    assert tree.outcome == target
    assert (tree.packet.destination, tree.packet.destination_port) == (destination, port)
    sources = isinstance(target, t.Masquerade | t.Snat)
    assert tree.packet.masqueraded is sources
    assert tree.packet.translated is not sources


@pytest.mark.parametrize(
    ("rule", "packet"),
    [
        ("dnat ip to 10.1.0.9", SIX),
        ("dnat ip6 to fd00::1", PACKET),
        ("dnat ip to ip daddr map { 10.9.9.9 : 10.1.0.9 }", PACKET),
        ("dnat ip to ip daddr map { 10.9.9.9 : 10.1.0.9 }", SIX),
        ("tcp dport 80 dnat ip to 10.1.0.9", UDP),
        # In tables of both families nft leaves `meta nfproto` out when it lists these.
        ("reject with icmp port-unreachable", SIX),
        ("reject with icmpv6 no-route", PACKET),
        ('counter name ip daddr map { 10.9.9.9 : "x" } drop', PACKET),
        ("ip daddr vmap { 10.9.9.9 : drop }", PACKET),
        ("ip daddr vmap { 10.2.3.4 : continue }", PACKET),
        ("ip daddr vmap { 10.2.3.4 : return }\ndrop", PACKET),
        ("tcp dport 81 drop", PACKET),
    ],
)
def test_a_rule_that_is_not_for_a_packet_lets_it_pass(rule: str, packet: Packet) -> None:
    assert passed(rule, packet) == packet


def test_behind_a_translation_for_another_family_the_rule_goes_on() -> None:
    tree = walked("dnat ip to 10.1.0.9 drop", SIX)
    assert bounds(tree, lambda leaf: isinstance(leaf.outcome, t.Drop)).lower == ALWAYS


@pytest.mark.parametrize(
    ("rule", "packet", "how"),
    [
        ("reject", PACKET, "icmp-port-unreachable"),
        ("reject", SIX, "icmp6-port-unreachable"),
        ("reject with icmpx admin-prohibited", SIX, "icmp6-adm-prohibited"),
        ("reject with icmpx no-route", PACKET, "icmp-net-unreachable"),
        ("reject with icmp host-prohibited", PACKET, "icmp-host-prohibited"),
        ("reject with icmpv6 addr-unreachable", SIX, "icmp6-addr-unreachable"),
        ("meta l4proto tcp reject with tcp reset", PACKET, "tcp-reset"),
    ],
)
def test_what_rejects_say(rule: str, packet: Packet, how: str) -> None:
    tree = walked(rule, packet)
    assert isinstance(tree, Leaf)
    assert tree.outcome == t.Reject(how)


@pytest.mark.parametrize(
    ("rule", "packet", "tracked"),
    [
        ("notrack", PACKET, False),
        ("notrack ct state untracked drop", replace(PACKET, protocol=None), False),
        # A zone puts a template there, which undoes a notrack and keeps others from it.
        ("ct zone set 1 notrack", PACKET, True),
        ("notrack ct zone set 1", PACKET, True),
    ],
)
def test_what_conntrack_is_told(rule: str, packet: Packet, tracked: bool) -> None:
    tree = walked(rule, packet, BEFORE)
    assert {leaf.packet.tracked for leaf, _ in leaves(tree, ALWAYS)} == {tracked}


def test_later_there_is_an_entry_whatever_is_said() -> None:
    assert passed("notrack").tracked


@pytest.mark.parametrize("rule", ["queue", "tproxy to :80", "synproxy mss 1460", "fwd to eth1"])
def test_who_decides_elsewhere_may_do_anything(rule: str) -> None:
    found = shares(walked(f"meta l4proto tcp {rule}"), lambda leaf: type(leaf.outcome).__name__)
    assert found.unresolved == ALWAYS


@pytest.mark.parametrize(
    "rule",
    [
        # The table has the value of one moment.
        "ip daddr map @added",
        "ip saddr map @added",
    ],
)
def test_maps_that_packets_change_may_give_anything(rule: str) -> None:
    tree = walked(f"meta mark set {rule}\nmeta mark 0x77 drop")
    assert bounds(tree, lambda leaf: isinstance(leaf.outcome, t.Drop)).upper == ALWAYS


@pytest.mark.parametrize(
    "statement",
    [
        "flow add @f",
        "counter name ip saddr map @gone",
        "update @banned { ip saddr limit rate 3/second }",
        "limit rate 3/second",
        "quota over 3 bytes",
    ],
)
def test_what_may_end_a_rule_leaves_open_what_is_behind_it(statement: str) -> None:
    found = bounds(walked(f"{statement} drop"), lambda leaf: isinstance(leaf.outcome, t.Drop))
    assert (found.lower, found.upper) == (NEVER, ALWAYS)


def test_what_nobody_can_read_ends_what_is_known() -> None:
    tree = walked("made up\nmeta mark 0 drop", PING)
    assert isinstance(tree, Leaf)
    assert isinstance(tree.outcome, Unresolved)
    assert bounds(tree, lambda leaf: isinstance(leaf.outcome, FellThrough)).upper == ALWAYS


def test_chains_of_many_forks_are_walked_once() -> None:
    # Each doubles the ways, unless these meet again.
    tree = walked("limit rate 3/second meta mark set 0x1\n" * 1_000)
    found = shares(tree, lambda leaf: leaf.packet.mark.value)
    assert set(found) == {0, 1}


@pytest.mark.parametrize(
    "rule",
    [
        "ip daddr vmap { 10.2.3.4 : drop, 10.2.3.4 : accept }",
        "ip daddr vmap { 10.2.3.4 : accept, 10.2.3.4 : drop }",
        "ip daddr vmap { 10.2.0.0/16 : accept, 10.2.3.0/24 : drop }",
        "numgen random mod 2 vmap { 0 : drop, 0 : accept, 1 : accept }",
    ],
)
def test_of_two_elements_for_one_key_either_is_found(rule: str) -> None:
    """nft refuses them, so somebody has changed the dump."""
    assert dropped(rule, PACKET, HERE) == Bounds(NEVER, ALWAYS)


@pytest.mark.parametrize("field", ["saddr", "daddr"])
@pytest.mark.parametrize("value", ["ip saddr", "ip daddr"])
def test_an_address_that_is_set_to_another_is_none_of_those_that_were_possible(
    field: str, value: str
) -> None:
    among = Region(4, ((1, 9),))
    packet = replace(PACKET, source=None, destination=None, sources=among)
    packet = replace(packet, destinations=Region(4, ((11, 19),)))
    found = passed(f"ip {field} set {value}", packet)
    kept = (None, packet.destinations) if field == "saddr" else (among, None)
    assert (found.sources, found.destinations) == kept


@pytest.mark.parametrize(("field", "is_answer"), [("saddr", False), ("daddr", True)])
def test_an_address_that_masquerade_chose_is_so_until_it_is_set(
    field: str, *, is_answer: bool
) -> None:
    chosen = replace(masqueraded(PACKET), is_answer=is_answer)
    assert not passed(f"ip {field} set 192.0.2.9", chosen).is_masquerades
    assert not passed(f"ip {field} set ip saddr", chosen).is_masquerades
    other = {"saddr": "daddr", "daddr": "saddr"}[field]
    assert passed(f"ip {other} set 192.0.2.9", chosen).is_masquerades
