"""Rules of nft in a row that decide on sources give the tree that they give one by one."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.addresses import Address
from analyzer.model.intervals import everything
from analyzer.model.nft.ruleset import NftRuleset, Table
from analyzer.model.packet import Packet
from analyzer.model.region import Parted, Region
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics import in_a_row as rows_in_a_row
from analyzer.semantics.conditions import leaves_by_source
from analyzer.semantics.effort import Effort
from analyzer.semantics.masquerade import MasqueradeAddresses
from analyzer.semantics.nft import chain_index, traverse
from analyzer.semantics.nft.in_a_row import DecidingRules
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.parts import holds
from analyzer.semantics.shares import shares_by_source
from analyzer.semantics.tree import BySource, Either, Leaf, Tree, every_leaf
from tests.support.effort import examples
from tests.support.strategies import by_source
from tests.support.strategies.by_source import ANSWER, CAME, SITUATION


def table(*rows: str) -> Table:
    rules = "\n".join(rows)
    text = f"""table inet fw {{
  set some {{ type ipv4_addr; flags interval; elements = {{ 10.0.0.1, 10.0.0.4-10.0.0.6 }}; }}
  chain forward {{ type filter hook forward priority 0; policy accept;
{rules}
  }}
  chain a {{ }}
}}
"""
    ruleset = read_ruleset(text.encode(), "dump")
    assert isinstance(ruleset, NftRuleset)
    return ruleset.tables["inet", "fw"]


def walks(rules: Table, effort: Effort | None = None) -> NftTraversal:
    return NftTraversal(rules, "ip", SITUATION, effort)


def tree_of(
    *rows: str, in_a_row: bool, effort: Effort | None = None, packet: Packet = CAME
) -> Tree:
    with pytest.MonkeyPatch.context() as patch:
        if not in_a_row:
            patch.setattr(NftTraversal, "in_a_row", lambda *_: None)
        return walks(table(*rows), effort).tree("forward", packet)


ROWS = st.lists(
    st.builds(
        " ".join,
        st.tuples(
            st.sampled_from(
                [
                    "ip saddr 10.0.0.0/31",
                    "ip saddr 10.0.0.2",
                    "ip saddr 10.0.0.2 counter",
                    "counter ip saddr 10.0.0.0/30 log",
                    "ip saddr 10.0.0.4-10.0.0.6",
                    "ip saddr 10.0.0.0/8",
                    "ip saddr 192.0.2.0/24",
                    "ip6 saddr fd00::/8",
                    "ip saddr != 10.0.0.7",
                    "ip saddr >= 10.0.0.6",
                    "ip saddr @some",
                    "ip saddr { 10.0.0.1, 10.0.0.3 }",
                    "ip saddr . th dport { 10.0.0.1 . 80, 10.0.0.2 . 81 }",
                    "ip saddr . meta mark { 10.0.0.1 . 0x1, 10.0.0.2 . 0x0 }",
                    "ip saddr 10.0.0.6 meta l4proto tcp",
                    "meta l4proto udp ip saddr 10.0.0.6",
                    "ip saddr 10.0.0.1 fib saddr type local",
                    "numgen random mod 2 == 0 ip saddr 10.0.0.3",
                    "ip saddr 10.0.0.3 numgen random mod 2 == 0",
                    'ip saddr 10.0.0.3 xt match "made-up"',
                    "ip saddr 10.0.0.5 meta mark set 0x1",
                    "ip saddr 10.0.0.4/30 meta mark 0x1",
                    "meta mark 0x1",
                    "meta l4proto tcp",
                ]
            ),
            st.sampled_from(["drop", "drop", "accept", "return", "reject", "jump a", "continue"])
            | st.sampled_from(["meta mark set 0x1", "meta mark set 0x2", "meta mark set 0x0"])
            | st.sampled_from(["reject with tcp reset", "reject with icmpv6 no-route"]),
        ),
    ),
    max_size=8,
)


def are_alike(found: Tree, expected: Tree) -> None:
    """Assert that two trees are the same for packets from each address."""
    for address in by_source.ADDRESSES:
        assert by_source.alone(found, address) == by_source.alone(expected, address)


@examples(60, 3_000)
@given(ROWS)
def test_the_tree_is_that_of_rules_one_by_one(rows: list[str]) -> None:
    are_alike(tree_of(*rows, in_a_row=True), tree_of(*rows, in_a_row=False))


def ends(rows: list[str], packet: Packet, worthwhile: int) -> list[object]:
    """Return how often packets from each address end how, as a walk by an index tells it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain_index, "WORTHWHILE", worthwhile)
        tree = tree_of(*rows, in_a_row=True, packet=packet)
    parts = shares_by_source(tree, lambda leaf: (str(leaf.outcome), leaf.packet.mark))
    numbers = [int(each) for each in by_source.ADDRESSES]
    return [[dict(s.bounds) for where, s in parts if holds(where, n)] for n in numbers]


@examples(60, 3_000)
@given(ROWS, st.sampled_from([*by_source.ADDRESSES, None]))
def test_rules_for_other_sources_are_left_out(rows: list[str], source: Address | None) -> None:
    packet = CAME if source is None else replace(CAME, source=source, sources=None)
    assert ends(rows, packet, 0) == ends(rows, packet, 1000)


@examples(60, 3_000)
@given(ROWS)
def test_answers_are_split_by_where_they_go(rows: list[str]) -> None:
    back = [row.replace("saddr", "daddr").replace("dport", "sport") for row in rows]
    found = tree_of(*back, in_a_row=True, packet=ANSWER)
    are_alike(found, tree_of(*back, in_a_row=False, packet=ANSWER))


def outcomes(tree: Tree, number: int) -> set[str]:
    """Return all outcomes for flows from one address."""
    return {str(leaf.outcome) for leaf, where in leaves_by_source(tree) if holds(where, number)}


@examples(60, 3_000)
@given(ROWS)
def test_many_with_one_outcome_as_one_end_the_same_flows(rows: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_a_row, "_MOST_APART", 1)
        found = tree_of(*rows, in_a_row=True)
    apart = tree_of(*rows, in_a_row=False)
    for address in by_source.ADDRESSES:
        assert outcomes(found, int(address)) == outcomes(apart, int(address))


def test_thousands_that_are_banned_are_one_part() -> None:
    rows = [f"ip saddr 10.{at >> 8}.{at & 255}.1 drop" for at in range(2_000)]
    effort = Effort()
    packet = replace(CAME, sources=Region(4, (everything(4),)))
    tree = tree_of(*rows, "ip saddr 10.99.0.1 accept", in_a_row=True, effort=effort, packet=packet)
    assert isinstance(tree, BySource)
    (_, banned), (_, rest) = tree.branches
    assert isinstance(banned, Leaf)
    assert banned.rules[0].raw == f"{rows[0]} (or one of 1,999 more such rules after it)"
    assert isinstance(rest, BySource)
    assert not effort.exceeded


@pytest.mark.parametrize(
    ("row", "decides"),
    [
        ("ip saddr 10.0.0.2 drop", True),
        ("ip saddr 10.0.0.2 meta l4proto tcp drop", True),
        ("ip saddr 10.0.0.2 meta l4proto udp drop", False),
        ("ip saddr @some counter drop", True),
        ("ip6 saddr fd00::1 drop", False),
        ("ip saddr 10.0.0.2 reject with icmpv6 no-route", False),
        ("ip saddr 10.0.0.2 reject with icmp host-unreachable", True),
        ("ip saddr != 10.0.0.2 drop", None),
        ("ip saddr 10.0.0.2 jump a", None),
        ("ip saddr 10.0.0.2 counter", True),
        ("ip saddr 10.0.0.2 meta mark set 0x1", True),
        ("ip saddr 10.0.0.2 meta mark set ip saddr map @of", None),
        ("ip saddr 10.0.0.2 meta mark set 0x1 meta l4proto tcp", None),
        ("ip saddr 10.0.0.2 meta mark set 0x1 drop", None),
        ('ip saddr 10.0.0.2 xt match "made-up" drop', None),
        ("ip saddr 10.0.0.2 numgen random mod 2 == 0 drop", None),
        ("ip saddr 10.0.0.2 ip saddr @some drop", None),
        ("meta l4proto tcp drop", None),
    ],
)
def test_a_rule_decides_where_it_is_certain(row: str, decides: bool | None) -> None:
    rules = table(row)
    deciding = DecidingRules(rules, walks(rules))
    found = deciding.decides("forward", 0, CAME)
    assert (found if found is None else bool(found.asked)) is decides
    assert deciding.decides("forward", 1, CAME) is None


def bounds(rows: list[str], packet: Packet, *, in_a_row: bool) -> tuple[object, object]:
    """Return how often a packet ends how, with one fork for rules in a row that may match."""
    with pytest.MonkeyPatch.context() as patch:
        if in_a_row:
            patch.setattr(rows_in_a_row, "_MOST_APART", 1)
            patch.setattr(traverse, "WORTHWHILE", 0)
        else:
            patch.setattr(DecidingRules, "row", lambda *_: None)
        tree = tree_of(*rows, in_a_row=True, packet=packet)
    found = shares_by_source(tree, lambda leaf: (str(leaf.outcome), leaf.packet.mark))
    numbers = [int(each) for each in by_source.ADDRESSES]
    told = [[dict(s.bounds) for where, s in found if holds(where, n)] for n in numbers]
    return told, [[s.unresolved for where, s in found if holds(where, n)] for n in numbers]


#: Mostly those that decide on one network alone.
LONG_ROWS = st.lists(
    ROWS.map(lambda rows: rows[:2])
    | st.lists(
        st.sampled_from(
            [
                "ip saddr 10.0.0.2 drop",
                "counter ip saddr 10.0.0.4/31 log drop",
                "ip6 saddr fd00::/8 drop",
                "ip saddr 10.0.0.3 accept",
                "ip saddr 0.0.0.0/0 drop",
                "ip daddr 10.0.0.4 drop",
                "ip daddr 10.0.0.6/31 return",
            ]
        ),
        max_size=4,
    ),
    max_size=4,
).map(lambda lists: [row for rows in lists for row in rows])


@examples(60, 3_000)
@given(
    LONG_ROWS,
    st.sampled_from(
        [
            replace(CAME, sources=None),
            CAME,
            replace(CAME, destination=None),
            replace(ANSWER, destinations=None),
            ANSWER,
            replace(ANSWER, source=None, destinations=None),
            replace(CAME, sources=None, masqueraded=True, is_masquerades=True),
        ]
    ),
)
def test_one_fork_for_many_that_may_match_has_the_bounds_of_each(
    rows: list[str], packet: Packet
) -> None:
    try:
        apart = bounds(rows, packet, in_a_row=False)
    except Parted:  # endpoints are told apart
        with pytest.raises(Parted):
            bounds(rows, packet, in_a_row=True)
        return
    assert bounds(rows, packet, in_a_row=True) == apart


def test_thousands_that_may_match_are_one_fork() -> None:
    rows = [f"ip saddr 10.{at >> 8}.{at & 255}.1 drop" for at in range(2_000)]
    rows[1] = "ip6 saddr fd00::1 drop"
    tree = tree_of(
        *rows, "ip saddr 10.9.0.1 accept", in_a_row=True, packet=replace(CAME, sources=None)
    )
    assert isinstance(tree, Either)
    banned, rest = tree.branches
    assert isinstance(banned, Leaf)
    assert banned.rules[0].raw == f"{rows[0]} (or one of 1,998 more such rules after it)"
    assert isinstance(rest, Either)
    assert [str(leaf.outcome) for leaf in every_leaf(rest)] == ["Accept()", "FellThrough()"]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (["ip saddr 10.0.0.1 drop"] * 9, (8, 9)),
        (["ip saddr 10.0.0.1 drop", "ip6 saddr fd00::1 accept"] * 9, (8, 18)),
        (["ip saddr 10.0.0.1 drop"] * 10 + ["ip saddr 10.0.0.1 accept"] * 10, (9, 10)),
        (["ip saddr 10.0.0.1 drop"] * 10 + ["ip saddr 0.0.0.0/0 drop"], (9, 10)),
        (["ip saddr 10.0.0.1 drop"] * 8, None),
        (["ip saddr 10.0.0.1 jump a"] * 9, None),
        (["ip daddr 10.0.0.1 drop"] * 9, None),
    ],
)
def test_a_long_row_ends_where_something_else_is_decided(
    rows: list[str], found: tuple[int, int] | None
) -> None:
    rules = table(*rows)
    row = DecidingRules(rules, walks(rules)).row("forward", 0, replace(CAME, sources=None))
    assert (row and (row.others, row.behind)) == found
    assert DecidingRules(rules, walks(rules)).row("forward", 0, CAME) is None


@pytest.mark.parametrize(
    ("own", "outcomes"),
    [
        ([], {"Drop()", "FellThrough()"}),  # the addresses of bridges are only known with its own
        (["10.0.0.1"], {"FellThrough()"}),
        (["10.0.0.9"], {"Drop()"}),
        (["10.0.0.1", "10.0.0.9"], {"Drop()", "FellThrough()"}),
    ],
)
def test_the_source_that_masquerade_chose_is_one_of_the_nodes(
    own: list[str], outcomes: set[str]
) -> None:
    chosen = MasqueradeAddresses([IPv4Address(each) for each in own], lambda: ())
    rules = table(*[f"ip saddr 10.0.0.{at} drop" for at in range(2, 20)])
    situation = replace(SITUATION, masquerades=chosen)
    packet = replace(CAME, sources=None, masqueraded=True, is_masquerades=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traverse, "WORTHWHILE", 0)
        tree = NftTraversal(rules, "ip", situation).tree("forward", packet)
    assert {str(leaf.outcome) for leaf in every_leaf(tree)} == outcomes
