from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.model.packet import UNKNOWN_MARK, Mark, Packet
from analyzer.model.region import AnyOf
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.parsers.iptables_save import parse
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import PORT, PROTOCOL, Situation
from analyzer.semantics.tree import Delivered, FellThrough, Leaf, Tree

POD, NODE = ip_address("10.1.0.1"), ip_address("172.16.0.1")
KNOWN = Situation(local_addresses=frozenset({NODE}))
HEAD = "*nat\n:POSTROUTING ACCEPT [0:0]\n"
CERTAIN = f"{HEAD}-A POSTROUTING -j MASQUERADE\nCOMMIT\n"
RANDOM = (
    f"{HEAD}-A POSTROUTING -m statistic --mode random --probability 0.5 -j MASQUERADE\nCOMMIT\n"
)
MARKED = f"{HEAD}-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE\nCOMMIT\n"
UNREAD = f"{HEAD}-A POSTROUTING -m made-up -j MASQUERADE\nCOMMIT\n"
NONE = f"{HEAD}COMMIT\n"


def hooks(dump: str, situation: Situation = KNOWN) -> Hooks:
    ruleset = parse(dump, "dump")
    return Hooks([ruleset], ruleset.family, situation)


def masquerades(hooks: Hooks, packet: Packet) -> Ternary:
    """Return the answer for a packet from one source."""
    sent = replace(packet, translated=True)
    ((_, found),), _ = hooks.onward(sent, made_here=packet.in_interface == "")
    return found.masquerade


@pytest.mark.parametrize(
    ("dump", "packet", "want"),
    [
        (CERTAIN, Packet(destination=POD), Ternary.TRUE),
        (NONE, Packet(destination=POD), Ternary.FALSE),
        (RANDOM, Packet(destination=POD), Ternary.UNKNOWN),
        (UNREAD, Packet(destination=POD), Ternary.UNKNOWN),
        (MARKED, Packet(destination=POD, mark=Mark(0x4000)), Ternary.TRUE),
        (MARKED, Packet(destination=POD, mark=Mark()), Ternary.FALSE),
        (MARKED, Packet(destination=POD, mark=UNKNOWN_MARK), Ternary.UNKNOWN),
        # A packet for the node itself never meets POSTROUTING.
        (CERTAIN, Packet(destination=NODE), Ternary.FALSE),
        (CERTAIN, Packet(destination=ip_address("127.0.0.1")), Ternary.FALSE),
        (CERTAIN, Packet(), Ternary.UNKNOWN),
    ],
)
def test_a_flow_is_masqueraded_on_its_way_out(dump: str, packet: Packet, want: Ternary) -> None:
    assert masquerades(hooks(dump), packet) is want


def test_whether_a_flow_leaves_a_node_of_unknown_addresses_is_unknown() -> None:
    assert masquerades(hooks(CERTAIN, Situation()), Packet(destination=POD)) is Ternary.UNKNOWN


@pytest.mark.parametrize("dump", [NONE, "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n"])
def test_a_hook_without_a_chain_lets_every_packet_pass(dump: str) -> None:
    assert hooks(dump).to_nat("PREROUTING", Packet()) == Leaf(FellThrough(), Packet())


def test_what_the_node_makes_for_itself_meets_postrouting_before_it_comes_back() -> None:
    made = Packet(destination=NODE, in_interface="")
    assert masquerades(hooks(CERTAIN), made) is Ternary.TRUE
    tree = hooks(CERTAIN).way(made)
    assert tree == Leaf(Delivered(here=True), tree_packet(tree), tree.rules)
    assert [rule.location.line for rule in tree.rules] == [3]


def tree_packet(tree: Tree) -> Packet:
    assert isinstance(tree, Leaf)
    return tree.packet


@pytest.mark.parametrize(
    ("elements", "asked"),
    [
        ("", set()),
        ("elements = { 10.9.0.1 . tcp . 80 }", set()),
        ("elements = { 10.1.0.1 . tcp . 80 }", {PORT, PROTOCOL}),
        ("flags dynamic", {PORT, PROTOCOL}),
    ],
)
def test_a_lookup_asks_no_port_where_addresses_decide(elements: str, asked: set[str]) -> None:
    text = f"""\
table ip x {{
  set ends {{ type ipv4_addr . inet_proto . inet_service; {elements} }}
  chain forward {{
    type filter hook forward priority 0; policy accept;
    ip daddr . meta l4proto . th dport @ends drop
  }}
}}
"""
    found = Hooks([read_ruleset(text.encode(), "dump")], "ip", KNOWN)
    pods = AnyOf(4, ((int(POD), int(POD) + 5),))
    for protocol in ("tcp", None):
        found.onward(Packet(destinations=pods, protocol=protocol, translated=True), made_here=False)
        left_open = PORT if protocol else PROTOCOL
        assert set(found.asked_fields) == asked & {left_open}
