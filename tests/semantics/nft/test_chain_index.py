"""Rules of nft that an index leaves out are such as a packet passes unchanged."""

from __future__ import annotations

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.nft.ruleset import NftRuleset, Table
from analyzer.model.packet import Mark, Packet
from analyzer.model.probability import Dyadic
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.nft import chain_index as nft_chain_index
from analyzer.semantics.nft.chain_index import NftChainIndex
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.shares import shares
from analyzer.semantics.situation import Situation

ADDRESSES = ("10.0.0.1", "10.0.0.2")
#: Parts of rules: comparisons, what comes between them, and what is done.
COMPARED = (
    *(f"ip daddr {address}" for address in ADDRESSES),
    "ip daddr != 10.0.0.1",
    "ip daddr 10.0.0.0/31",
    "ip daddr { 10.0.0.1, 10.0.0.3 }",
    "ip6 daddr fd00::1",
    "tcp dport 80",
    "udp dport 80",
    "th dport 80",
    "th dport 81",
    "tcp dport != 80",
    "tcp dport 80-81",
    "meta l4proto tcp",
    "meta l4proto udp",
    "meta mark 0x1",
    "counter",
    'xt match "set"',
)
DONE = (
    "accept",
    "drop",
    "return",
    "jump b",
    "goto b",
    "meta mark set 0x1",
    "ip daddr set 10.0.0.2",
    "tcp dport set 81",
    "dnat to 10.0.0.9",
    "log",
)
RULES = st.lists(
    st.tuples(st.lists(st.sampled_from(COMPARED + DONE[5:8]), max_size=4), st.sampled_from(DONE)),
    max_size=8,
).map(lambda rules: [" ".join([*parts, last]) for parts, last in rules])
PACKETS = st.builds(
    Packet,
    protocol=st.sampled_from(["tcp", "udp", "icmp", None]),
    source=st.just(ip_address("10.0.0.7")),
    destination=st.sampled_from([*map(ip_address, ADDRESSES), None]),
    destination_port=st.sampled_from([80, 81, None]),
    mark=st.sampled_from([Mark(), Mark(1), Mark(0, 1)]),
)


def table(*chains: list[str]) -> Table:
    blocks = [
        "\n".join([f"chain {name} {{", *rules, "}"])
        for name, rules in zip("ab", chains, strict=True)
    ]
    ruleset = read_ruleset("\n".join(["table inet t {", *blocks, "}", ""]).encode(), "dump")
    assert isinstance(ruleset, NftRuleset)
    return ruleset.tables["inet", "t"]


def ends(rules: Table, packet: Packet, worthwhile: int) -> tuple[object, Dyadic]:
    """Return how often each end is come to; a rule that does nothing may fork a walk or not."""
    before = nft_chain_index.WORTHWHILE
    nft_chain_index.WORTHWHILE = worthwhile  # type: ignore[misc]  # as a test may
    try:
        tree = NftTraversal(rules, "ip", Situation()).tree("a", packet)
    finally:
        nft_chain_index.WORTHWHILE = before  # type: ignore[misc]  # as it was
    found = shares(tree, lambda leaf: (leaf.outcome, leaf.packet))
    return dict(found.bounds), found.unresolved


@given(RULES, RULES, PACKETS)
def test_a_walk_by_the_index_is_the_walk_along_all_rules(
    first: list[str], second: list[str], packet: Packet
) -> None:
    rules = table(first, [rule for rule in second if not rule.endswith(" b")])
    assert ends(rules, packet, 0) == ends(rules, packet, 1000)


def test_the_rest_of_a_rule_is_met_by_what_it_has_changed() -> None:
    rule = 'ip daddr 10.0.0.1 ip daddr set 10.0.0.2 xt match "set" drop'
    packet = Packet(protocol="tcp", destination=ip_address("10.0.0.1"), destination_port=80)
    assert ends(table([rule], []), packet, 0) == ends(table([rule], []), packet, 1000)


def test_rules_for_others_are_left_out() -> None:
    rules = [f"ip daddr 10.0.0.{at} tcp dport 80 counter jump b" for at in range(100)]
    index = NftChainIndex(table([*rules, "accept"], []).chains["a"].rules)
    packet = Packet(protocol="tcp", destination=ip_address("10.0.0.7"), destination_port=80)
    assert index.following(packet, 0) == 7
    assert index.following(packet, 7) == 7
    assert index.following(packet, 8) == 100
    assert index.following(packet, 101) == 101
    assert index.following(Packet(protocol="tcp", destination_port=80), 8) == 8
