from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

import pytest

from analyzer.model.iptables import matches as m
from analyzer.model.iptables.targets import Drop
from analyzer.model.nft.statements import SetUpdate
from analyzer.model.packet import Mark, Packet
from analyzer.model.probability import Dyadic
from analyzer.model.value import replace
from analyzer.parsers import iptables_save, nft_text
from analyzer.semantics.assumed import DEFAULTS, Assumed
from analyzer.semantics.assumptions import assumptions, is_forwarded
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Chance, Delivered, Either, Leaf, Tree, every_leaf

CLIENT, NODE = ip_address("203.0.113.7"), ip_address("172.16.0.1")
FIRST = Situation(flow=Packet(source=CLIENT, mark=Mark(0x4000), in_interface="eth0"))
HALF = Dyadic.of(1, 1)
DROPPED = Leaf(Drop(), Packet())
FORWARDED = Leaf(Delivered(here=False), Packet())
WHOLE = "".join(
    f"*{table}\n{''.join(f':{hook} ACCEPT [0:0]{chr(10)}' for hook in hooks)}COMMIT\n"
    for table, hooks in {
        "raw": ("PREROUTING", "OUTPUT"),
        "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
        "nat": ("PREROUTING", "OUTPUT", "POSTROUTING"),
        "filter": ("INPUT", "FORWARD", "OUTPUT"),
        "security": ("INPUT", "FORWARD", "OUTPUT"),
    }.items()
)


def told(
    *rulesets: Rules,
    situation: Situation = FIRST,
    tree: Tree = DROPPED,
    judged: Iterable[type] = (),
) -> str:
    return "\n".join(assumptions(rulesets, situation, tree, set(judged)))


def iptables(text: str) -> Rules:
    return iptables_save.parse(text, "dump")


def nft(head: str, family: str = "netdev", rule: str = "accept") -> Rules:
    text = f"table {family} below {{\nchain c {{\ntype {head}; policy accept;\n{rule}\n}}\n}}\n"
    return nft_text.parse(text, "dump")


@pytest.mark.parametrize(
    ("state", "phrase"),
    [
        ("NEW", "the first of its flow, NEW to conntrack"),
        ("INVALID", "nat does nothing to it"),
        ("ESTABLISHED", "nat's rules are not evaluated again"),
    ],
)
def test_what_conntrack_says_of_the_packet_is_told(state: str, phrase: str) -> None:
    assert phrase in told(situation=replace(FIRST, state=state))


@pytest.mark.parametrize(
    ("kind", "phrase"),
    [
        (m.MatchTcp, "a SYN"),
        (m.MatchRecent, "affinity"),
        (m.MatchMark, "0x4000"),
        (m.MatchConnmark, "ctmark"),
        (SetUpdate, "room for more"),
        (m.MatchNfacct, "no quota"),
    ],
)
def test_only_what_was_looked_at_is_told(kind: type, phrase: str) -> None:
    assert phrase in told(judged=[kind])
    assert phrase not in told()


def test_lists_that_are_not_known_are_no_assumption() -> None:
    assert told(situation=replace(FIRST, lists=None), judged=[m.MatchRecent]) == told()


@pytest.mark.parametrize(("limits", "word"), [("under", "within"), ("over", "beyond")])
def test_what_was_assumed_beyond_the_rules_is_told_where_it_was_asked_for(
    limits: str, word: str
) -> None:
    assumed = Assumed({**DEFAULTS, "limits": limits})
    situation = replace(FIRST, assumed=assumed)
    assert told(situation=situation) == told()
    assumed.take("limits")
    assert f"{word} the limits" in told(situation=situation)
    assert "reverse-path" not in told(situation=situation)


def test_affinity_lists_that_hold_the_client_are_named() -> None:
    situation = replace(FIRST, lists=frozenset({"KUBE-SEP-B", "KUBE-SEP-A"}))
    assert "KUBE-SEP-A, KUBE-SEP-B" in told(situation=situation, judged=[m.MatchRecent])
    assert "no affinity list" in told(judged=[m.MatchRecent])


def test_the_nodes_addresses_are_named_where_they_are_known() -> None:
    known = replace(FIRST, local_addresses=frozenset({NODE}))
    assert f"addresses are {NODE}" in told(situation=known)
    assert "addresses are" not in told()
    made_here = replace(known, flow=Packet(source=NODE, in_interface=""))
    assert f"sends from {NODE}" in told(situation=made_here)
    assert "sends from" not in told(situation=known)


def test_tables_that_the_dump_lacks_are_taken_to_be_empty() -> None:
    text = told(iptables("*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"))
    assert "raw, mangle, filter, security" in text
    assert "POSTROUTING of nat" in text
    # Older kernels have none.
    assert "INPUT of nat" not in text
    assert "empty" not in told(iptables(WHOLE))


def test_what_a_fragment_lacks_is_not_taken_to_be_empty() -> None:
    text = told(iptables("*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"))
    assert "POSTROUTING of nat" not in text


@pytest.mark.parametrize(
    ("ruleset", "is_told"),
    [
        (nft("filter hook ingress device eth0 priority 0"), False),
        (nft("filter hook prerouting priority 0", "bridge"), True),
        (nft("filter hook prerouting priority 0", "bridge", ""), False),
        (nft("filter hook prerouting priority 0", "inet"), False),
    ],
)
def test_chains_that_see_frames_are_named(ruleset: Rules, is_told: bool) -> None:
    assert ("c of table" in told(ruleset)) is is_told


def test_a_node_with_a_dump_of_nft_alone_is_taken_to_have_no_iptables_legacy() -> None:
    listing = nft("filter hook prerouting priority 0", "inet")
    assert "iptables-legacy" in told(listing)
    assert "iptables-legacy" not in told(listing, iptables(WHOLE))


def test_only_a_packet_that_leaves_the_node_needs_a_route() -> None:
    assert "has a route" in told(tree=Either("x", (DROPPED, FORWARDED)))
    assert "has a route" not in told(tree=DROPPED)
    assert not is_forwarded(Leaf(Delivered(here=True), Packet()))


def test_a_leaf_that_many_ways_lead_to_is_given_once() -> None:
    fork = Chance(((HALF, DROPPED), (HALF, FORWARDED)))
    tree = Either("x", (fork, DROPPED, fork))
    assert list(every_leaf(tree)) == [DROPPED, FORWARDED]
