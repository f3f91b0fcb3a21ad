"""Rules of iptables in a row that decide on sources give the tree that they give one by one."""

from __future__ import annotations

from typing import Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.intervals import everything
from analyzer.model.iptables.rules import Rule
from analyzer.model.packet import Packet
from analyzer.model.region import Region
from analyzer.model.value import replace
from analyzer.parsers.iptables_save import parse
from analyzer.semantics import in_a_row as rows_in_a_row
from analyzer.semantics.conditions import leaves_by_source
from analyzer.semantics.effort import Effort
from analyzer.semantics.in_a_row import Rows
from analyzer.semantics.iptables.in_a_row import decides as decides_on
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.parts import holds
from analyzer.semantics.shares import shares
from analyzer.semantics.tree import BySource, Either, Leaf, Tree, every_leaf
from tests.support.effort import examples
from tests.support.strategies import by_source
from tests.support.strategies.by_source import ANSWER, CAME, SITUATION


def tree_of(
    text: str, *, in_a_row: bool, effort: Effort | None = None, packet: Packet = CAME
) -> Tree:
    with pytest.MonkeyPatch.context() as patch:
        if not in_a_row:
            patch.setattr(Rows, "split", lambda *_: None)
        table = parse(text, "dump").tables["filter"]
        return Traversal(table, SITUATION, effort).tree("FORWARD", packet)


def blocking(*rows: str) -> str:
    head = ["*filter", ":FORWARD ACCEPT [0:0]", ":A - [0:0]"]
    return "\n".join([*head, *(f"-A FORWARD {row}" for row in rows), "COMMIT", ""])


ROWS = st.lists(
    st.builds(
        " ".join,
        st.tuples(
            st.sampled_from(
                [
                    "-s 10.0.0.0/31",
                    "-s 10.0.0.2/32",
                    "-s 10.0.0.0/30",
                    "-s 10.0.0.4/30",
                    "-s 10.0.0.0/8",
                    "-s 192.0.2.0/24",
                    "! -s 10.0.0.7/32",
                    "-s 10.0.0.6/32 -p tcp",
                    "-s 10.0.0.6/32 -p udp",
                    "-s 10.0.0.1/32 -m addrtype --src-type LOCAL",
                    "-s 10.0.0.3/32 -m statistic --mode random --probability 0.5",
                    "-s 10.0.0.3/32 -m made-up",
                    "-s 10.0.0.5/32 -m comment --comment x",
                    "-s 10.0.0.4/30 -m mark --mark 0x1/0x1",
                    "-m mark --mark 0x1/0x1",
                    "-p tcp",
                ]
            ),
            st.sampled_from(["-j DROP", "-j DROP", "-j ACCEPT", "-j RETURN", "-j REJECT", "-j A"])
            | st.sampled_from(["-j MARK --set-xmark 0x1/0x1", "-j MARK --set-xmark 0x2/0x3"])
            | st.sampled_from(["-j MARK --set-xmark 0x0/0x1", "-j LOG"]),
        ),
    ),
    max_size=8,
)


def are_alike(found: Tree, expected: Tree) -> None:
    """Assert that two trees are the same for packets from each address."""
    for address in by_source.ADDRESSES:
        assert by_source.alone(found, address) == by_source.alone(expected, address)


@examples(60, 2_000)
@given(ROWS)
def test_the_tree_is_that_of_rules_one_by_one(rows: list[str]) -> None:
    text = blocking(*rows)
    are_alike(tree_of(text, in_a_row=True), tree_of(text, in_a_row=False))


@examples(60, 2_000)
@given(ROWS)
def test_answers_are_split_by_where_they_go(rows: list[str]) -> None:
    text = blocking(*rows).replace("-s ", "-d ").replace("--src-type", "--dst-type")
    found = tree_of(text, in_a_row=True, packet=ANSWER)
    are_alike(found, tree_of(text, in_a_row=False, packet=ANSWER))


@examples(30, 2_000)
@given(by_source.iptables(hook="FORWARD", ends="s"))
def test_the_tree_is_the_same_among_other_rules(text: str) -> None:
    are_alike(tree_of(text, in_a_row=True), tree_of(text, in_a_row=False))


def outcomes(tree: Tree, number: int) -> set[str]:
    """Return all outcomes for flows from one address."""
    return {str(leaf.outcome) for leaf, where in leaves_by_source(tree) if holds(where, number)}


@examples(60, 2_000)
@given(ROWS)
def test_many_with_one_outcome_as_one_end_the_same_flows(rows: list[str]) -> None:
    text = blocking(*rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_a_row, "_MOST_APART", 1)
        found = tree_of(text, in_a_row=True)
    apart = tree_of(text, in_a_row=False)
    for address in by_source.ADDRESSES:
        assert outcomes(found, int(address)) == outcomes(apart, int(address))


def test_thousands_that_are_banned_are_one_part() -> None:
    rows = [f"-s 10.{at >> 8}.{at & 255}.1/32 -j DROP" for at in range(2_000)]
    text, effort = blocking(*rows, "-s 10.99.0.1/32 -j ACCEPT"), Effort()
    packet = replace(CAME, sources=Region(4, (everything(4),)))
    tree = tree_of(text, in_a_row=True, effort=effort, packet=packet)
    assert isinstance(tree, BySource)
    (_, banned), (_, rest) = tree.branches
    assert isinstance(banned, Leaf)
    assert banned.rules[0].raw == f"-A FORWARD {rows[0]} (or one of 1,999 more such rules after it)"
    assert isinstance(rest, BySource)
    assert not effort.exceeded


def test_each_rule_takes_its_own_sources() -> None:
    tree = tree_of(blocking("-s 10.0.0.2/32 -j DROP", "-s 10.0.0.4/30 -j ACCEPT"), in_a_row=True)
    assert isinstance(tree, BySource)
    (_, first), (_, rest) = tree.branches
    assert isinstance(first, Leaf)
    assert isinstance(rest, BySource)
    (_, second), _ = rest.branches
    assert [first.rules[0].location.line, second.rules[0].location.line] == [4, 5]


@pytest.mark.parametrize(
    ("row", "decides"),
    [
        ("-s 10.0.0.2/32 -j DROP", True),
        ("-s 10.0.0.2/32 -p tcp -j DROP", True),
        ("-s 10.0.0.2/32 -p udp -j DROP", False),
        ("! -s 10.0.0.2/32 -j DROP", None),
        ("-s 10.0.0.2/32 -j A", None),
        ("-s 10.0.0.2/32 -m made-up -j DROP", None),
        ("-s 10.0.0.2/32 -m statistic --mode random --probability 0.5 -j DROP", None),
        ("-s 10.0.0.2/32 -m iprange --src-range 10.0.0.1-10.0.0.4 -j DROP", None),
        ("-p tcp -j DROP", None),
    ],
)
def test_a_rule_decides_where_it_is_certain(row: str, decides: bool | None) -> None:
    rule: Rule = parse(blocking(row), "dump").tables["filter"].chains["FORWARD"].rules[0]
    found = decides_on(rule, CAME, SITUATION)
    assert (found if found is None else bool(found.asked)) is decides


def ends(tree: Tree) -> object:
    return dict(shares(tree, lambda leaf: str(leaf.outcome)).bounds)


def test_splits_are_counted_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyzer.semantics.effort.MOST_PARTS", 2)
    rows = [f"-s 10.0.0.{at}/32 -j DROP" for at in range(5)]
    effort = Effort()
    tree = tree_of(blocking(*rows), in_a_row=True, effort=effort)
    assert any("split sources" in each for each in effort.exceeded)
    for address in by_source.ADDRESSES:
        found = by_source.alone(tree, address)
        told = address in by_source.ADDRESSES[:2]
        assert isinstance(found, Leaf if told else Either)
        apart = by_source.alone(tree_of(blocking(*rows), in_a_row=False), address)
        assert ends(found) == ends(apart)


def test_flows_back_to_their_source_are_split_elsewhere() -> None:
    back = by_source.everywhere()
    packet = replace(CAME, sources=back, destinations=back, destination=None)

    def fails(_at: int, _packet: Packet) -> Never:
        pytest.fail("no rule is looked at")

    assert Rows(Effort()).split("FORWARD", 0, packet, fails, fails, fails) is None


@examples(60, 2_000)
@given(ROWS, st.booleans())
def test_one_fork_for_many_that_may_match_has_the_bounds_of_each(
    rows: list[str], is_answer: bool
) -> None:
    text, packet = blocking(*rows), replace(CAME, sources=None)
    if is_answer:
        text = text.replace("-s ", "-d ").replace("--src-type", "--dst-type")
        packet = replace(ANSWER, destinations=None)

    def key(leaf: Leaf) -> object:
        return str(leaf.outcome), leaf.packet.mark

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_a_row, "_MOST_APART", 1)
        found = shares(tree_of(text, in_a_row=True, packet=packet), key)
    apart = shares(tree_of(text, in_a_row=True, packet=packet), key)
    assert dict(found.bounds) == dict(apart.bounds)
    assert found.unresolved == apart.unresolved


@pytest.mark.parametrize("known", [None, 9])
def test_thousands_that_may_match_are_one_fork(known: int | None) -> None:
    rows = [f"-s 10.{at >> 8}.{at & 255}.1 -j DROP" for at in range(known or 2_000)]
    rows += ["-p tcp -j LOG", "-s 10.99.0.1 -j ACCEPT"]
    tree = tree_of(blocking(*rows), in_a_row=True, packet=replace(CAME, sources=None))
    assert isinstance(tree, Either)
    banned, rest = tree.branches
    assert isinstance(banned, Leaf)
    more = f"{(known or 2_000) - 1:,} more such rules after it"
    assert banned.rules[0].raw == f"-A FORWARD {rows[0]} (or one of {more})"
    assert tree.because.endswith(banned.rules[0].raw)
    assert isinstance(rest, Either)
    assert [str(leaf.outcome) for leaf in every_leaf(rest)] == ["Accept()", "FellThrough()"]


def test_a_few_that_may_match_are_told_apart() -> None:
    rows = [f"-s 10.0.{at}.1 -j DROP" for at in range(8)]
    tree = tree_of(blocking(*rows), in_a_row=True, packet=replace(CAME, sources=None))
    raws = [rule.raw for leaf in every_leaf(tree) for rule in leaf.rules]
    assert raws == [f"-A FORWARD {row}" for row in rows]
