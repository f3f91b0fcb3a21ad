"""What decides in rules of nft and stands in no listing of them; each was seen on the kernel.

`tests.support.lab.nft_check` found them: in what it printed there was one rule, one packet, and
the kernel went another way than the tree.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.model.addresses import Address
from analyzer.model.packet import Packet
from analyzer.parsers import iptables_save, nft_text
from analyzer.semantics.tree import BySource, Chance, Either, Leaf, Tree

NODE, NODE6 = IPv4Address("172.16.0.1"), IPv6Address("fd00:172::1")
OUTSIDE, OUTSIDE6 = IPv4Address("203.0.113.7"), IPv6Address("fd00:203::7")
POD, POD6 = IPv4Address("10.1.0.9"), IPv6Address("fd00:10:1::9")
FORWARD = "type filter hook forward priority 0; policy accept;"
NAT = "type nat hook prerouting priority -100; policy accept;"
#: Without a rule that needs conntrack nat is not asked.
TRACKED = "table inet k {\nchain k {\nct state new\n}\n}\n"


def tree(
    text: str, source: Address = OUTSIDE, to: Address = POD, protocol: str | None = "tcp"
) -> Tree:
    packet = Packet(
        protocol=protocol, source=source, destination=to, destination_port=53, in_interface="eth0"
    )
    own = NODE, NODE6
    family = "ip" if to.version == 4 else "ip6"
    ruleset = nft_text.parse(text, "dump")
    return trace([ruleset], Question(packet=packet, addresses=own), family).tree


def ends(given: Tree) -> list[str]:
    """Return the kinds of ends, and of nodes above them."""
    match given:
        case Leaf(outcome):
            return [type(outcome).__name__]
        case Chance(branches):
            return ["chance", *sorted(end for _, each in branches for end in ends(each))]
        case Either(_, branches):
            return ["either", *sorted(end for each in branches for end in ends(each))]
        case BySource():
            raise AssertionError(given)


def chain(head: str, *rules: str, family: str = "inet") -> str:
    body = "\n".join([head, *rules])
    return f"table {family} t {{\nchain c {{\n{body}\n}}\n}}\n"


@pytest.mark.parametrize("before", ["", "ct state new ", "counter "])
def test_a_reset_is_for_tcp_only(before: str) -> None:
    text = chain(FORWARD, f"{before}reject with tcp reset")
    assert ends(tree(text, protocol="tcp")) == ["Reject"]
    assert ends(tree(text, protocol="udp")) == ["Delivered"]
    assert ends(tree(text, protocol=None)) == ["either", "Delivered", "Reject"]


def test_what_a_rule_changes_before_a_reset_it_may_change_for_others_too() -> None:
    """Nft prints `meta mark set 0x1 meta l4proto tcp reject with tcp reset` alike."""
    text = chain(FORWARD, "meta mark set 0x1 reject with tcp reset", "meta mark 0x1 drop")
    assert ends(tree(text, protocol="tcp")) == ["Reject"]
    assert ends(tree(text, protocol="udp")) == ["either", "Delivered", "Drop"]
    assert ends(tree(text, protocol=None)) == ["either", "Delivered", "Drop", "Reject", "either"]


def test_a_reject_of_one_family_is_for_its_packets() -> None:
    text = chain(FORWARD, "reject with icmp port-unreachable")
    assert ends(tree(text)) == ["Reject"]
    assert ends(tree(text, OUTSIDE6, POD6)) == ["Delivered"]
    text = chain(FORWARD, "reject with icmpv6 port-unreachable")
    assert ends(tree(text)) == ["Delivered"]
    assert ends(tree(text, OUTSIDE6, POD6)) == ["Reject"]
    text = chain(FORWARD, "reject")
    assert ends(tree(text)) == ends(tree(text, OUTSIDE6, POD6)) == ["Reject"]


@pytest.mark.parametrize(
    "rule",
    [
        "ct original ip saddr != 10.0.0.1 drop",
        "ct original ip daddr != 10.0.0.1 drop",
        "ct reply ip saddr != 10.0.0.1 drop",
        "update @s { ip saddr } drop",
    ],
)
def test_what_asks_for_an_address_of_another_family_ends_the_rule(rule: str) -> None:
    held = "set s {\ntype ipv4_addr\nflags dynamic,timeout\n}\n"
    text = chain(FORWARD, rule).replace("chain c", f"{held}chain c")
    assert ends(tree(text)) == ["Drop"]
    assert ends(tree(text, OUTSIDE6, POD6)) == ["Delivered"]


@pytest.mark.parametrize(
    ("to", "of_six"),
    [
        ("10.1.0.8", ["Drop"]),
        ("numgen random mod 2 map { 0 : 10.1.0.8, 1 : 10.1.0.7 }", ["Drop"]),
        ("numgen random mod 4 map { 0 : 10.1.0.8 }", ["chance", "Delivered", "Drop"]),
        ("tcp dport map { 53 : 10.1.0.8 }", ["Drop"]),
        ("tcp dport map { 80 : 10.1.0.8 }", ["Delivered"]),
        ("ip saddr map { 203.0.113.7 : 10.1.0.8 }", ["Delivered"]),
    ],
)
def test_a_translation_of_another_family_does_nothing_but_look_up(
    to: str, of_six: list[str]
) -> None:
    text = chain(NAT, f"dnat ip to {to} drop")
    assert ends(tree(text + TRACKED, OUTSIDE6, POD6)) == of_six
    assert ends(tree(text, OUTSIDE6, POD6))[0] == "either"  # it needs conntrack for IPv4 alone


def test_a_flow_mark_that_cannot_be_read_ends_the_rule() -> None:
    raw = "type filter hook prerouting priority -300; policy accept;"
    assert ends(tree(chain(raw, "ct mark set ct mark | 0x4 drop"))) == ["Delivered"]
    assert ends(tree(chain(raw, "ct mark set 0x4 drop"))) == ["Drop"]


def test_a_status_is_more_than_what_it_is_asked_for() -> None:
    text = chain(NAT, "dnat ip to 10.1.0.8")
    held = chain(FORWARD, "ct status dnat drop").replace("table inet t", "table inet u")
    assert ends(tree(text + held)) == ["Drop"]
    # `!=` compares all of it, and the kernel notes there too that nat was asked.
    held = held.replace("status dnat", "status != dnat")
    assert ends(tree(text + held)) == ["either", "Delivered", "Drop"]


@pytest.mark.parametrize("hook", ["input", "forward", "postrouting"])
def test_conntrack_has_seen_what_comes_to_later_hooks_whatever_the_priority(hook: str) -> None:
    text = chain(f"type filter hook {hook} priority -300; policy accept;", "ct state new drop")
    assert ends(tree(text, to=NODE if hook == "input" else POD)) == ["Drop"]


def test_rules_of_iptables_may_come_first_or_last_whatever_nat_is_there() -> None:
    raw = "*raw\n:PREROUTING DROP [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"
    text = chain("type filter hook prerouting priority -300; policy accept;", "drop")
    text += chain(FORWARD, "drop").replace("inet t", "inet s")
    text += chain(NAT, "accept").replace("inet t", "inet u")
    packet = Packet(protocol="tcp", source=OUTSIDE, destination=POD, in_interface="eth0")
    rulesets = iptables_save.parse(raw, "raw"), nft_text.parse(text, "dump")
    assert ends(trace(rulesets, Question(packet=packet), "ip").tree) == [
        "either",
        "Drop",
        "PolicyDrop",
    ]


@pytest.mark.parametrize(
    ("chains", "met"),
    [
        (["filter prerouting -100", "nat prerouting 0"], "nat"),
        (["nat prerouting 0", "filter prerouting -100"], "filter"),
        (["nat postrouting 0", "filter prerouting -100", "nat prerouting 0"], "filter"),
        (["filter prerouting -101", "nat prerouting 0"], "filter"),
        (["nat prerouting 0", "filter prerouting -99"], "nat"),
    ],
    ids="; ".join,
)
def test_of_nats_own_priority_what_was_registered_later_comes_first(
    chains: list[str], met: str
) -> None:
    text = ""
    for number, each in enumerate(chains):
        kind, hook, priority = each.split()
        head = f"type {kind} hook {hook} priority {priority}; policy accept;"
        text += chain(head, "drop").replace("table inet t", f"table inet t{number}")
    found = tree(text + TRACKED)
    first = next(n for n, each in enumerate(chains) if each.startswith(f"{met} prerouting"))
    assert isinstance(found, Leaf)
    assert [rule.location.table for rule in found.rules] == [f"inet t{first}"]
