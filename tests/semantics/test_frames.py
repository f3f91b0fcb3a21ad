"""Chains that see frames are named if they may end any."""

from __future__ import annotations

import pytest

from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers import nft_text
from analyzer.semantics.frames import as_text, frame_chains, may_end

FORWARD = "filter hook forward priority 0"
INGRESS = 'filter hook ingress device "eth0" priority 0'


def below(rules: str, *, family: str = "bridge", head: str = FORWARD, more: str = "") -> NftRuleset:
    chain = f"chain c {{\ntype {head}; policy accept;\n{rules}\n}}\n"
    return nft_text.parse(f"table {family} below {{\n{more}{chain}}}\n", "dump")


@pytest.mark.parametrize(
    ("rules", "ends"),
    [
        ("ip daddr 10.96.0.10 drop", True),
        ("ether saddr 00:11:22:33:44:55 counter packets 1 bytes 60 accept", False),
        ('limit rate 5/second log prefix "x"', False),
        ("limit rate over 5/second drop", True),
        ("meta mark set 0x1", True),
        ("jump passing", False),
        ("jump ending", True),
        ("goto ending", True),
        ("jump lost", True),
        ("ip daddr vmap { 10.96.0.10 : drop }", True),
    ],
)
def test_a_chain_may_end_frames_where_a_rule_does_more_than_let_pass(
    rules: str, *, ends: bool
) -> None:
    more = "chain passing {\naccept\n}\nchain ending {\ntcp dport 80 drop\n}\n"
    ((table, chain),) = frame_chains(below(rules, more=more))
    assert may_end(table, chain) is ends


@pytest.mark.parametrize(
    ("family", "head", "sees_frames"),
    [
        ("netdev", INGRESS, False),
        ("inet", INGRESS, False),
        ("bridge", INGRESS, True),
        ("bridge", FORWARD, True),
        ("arp", "filter hook input priority 0", True),
        ("inet", FORWARD, False),
        ("ip", "filter hook input priority 0", False),
    ],
)
def test_which_chains_see_frames(family: str, head: str, *, sees_frames: bool) -> None:
    assert bool([*frame_chains(below("drop", family=family, head=head))]) is sees_frames


def test_a_policy_ends_frames_and_a_dormant_table_none() -> None:
    head = f"type {FORWARD}; policy drop;"
    text = f"table bridge t {{\nFLAGSchain c {{\n{head}\n}}\n}}\n"
    ((table, chain),) = frame_chains(nft_text.parse(text.replace("FLAGS", ""), "dump"))
    assert may_end(table, chain)
    asleep = text.replace("FLAGS", "flags dormant\n")
    assert not [*frame_chains(nft_text.parse(asleep, "dump"))]


def test_counters_make_no_difference_and_sets_do() -> None:
    def told(packets: int, address: str) -> str:
        held = f"set s {{\ntype ipv4_addr\nelements = {{ {address} }}\n}}\n"
        rules = f"ip saddr @s counter packets {packets} bytes 60 drop"
        ((table, chain),) = frame_chains(below(rules, more=held))
        return as_text(table, chain)

    assert told(1, "192.0.2.1") == told(9, "192.0.2.1") != told(1, "192.0.2.2")
