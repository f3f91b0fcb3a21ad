"""Rules that mark or log packets by their source split them only if a rule can tell it later."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.matched.bits import asked_bits
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.iptables.targets import Drop
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.packet import Mark, Packet
from analyzer.model.region import Region
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.conditions import leaves_by_source
from analyzer.semantics.effort import Effort
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.parts import holds
from analyzer.semantics.positions import RulePosition, Walks
from analyzer.semantics.shares import shares, shares_by_source
from analyzer.semantics.tree import BySource, FellThrough, Leaf, Tree, every_leaf
from tests.support.effort import examples
from tests.support.strategies import by_source
from tests.support.strategies.by_source import CAME, SITUATION

_NETWORKS = ("10.0.0.1", "10.0.0.2/31", "10.0.0.4/30", "10.0.0.6", "10.0.0.0/29")
_MARKS = ("0x1/0x1", "0x0/0x1", "0x2/0x3", "0x10/0xf0", "0x30/0xf0", "0x0/0xffffffff")

#: In words of iptables; `nft` translates them.
ROWS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(_NETWORKS), st.just("mark"), st.sampled_from(_MARKS)),
        st.tuples(st.sampled_from([*_NETWORKS, ""]), st.just("log"), st.just("")),
        st.tuples(st.just(""), st.sampled_from(["DROP", "A", "REJECT"]), st.sampled_from(_MARKS)),
        st.tuples(st.sampled_from(_NETWORKS), st.sampled_from(["ACCEPT", "A"]), st.just("")),
    ),
    max_size=10,
)
_Row = tuple[str, str, str]


def _iptables_row(row: _Row) -> str:
    network, what, mark = row
    source = f"-s {network}" if network else ""
    match what:
        case "mark":
            return f"{source} -j MARK --set-xmark {mark}"
        case "log":
            return f"{source} -j LOG"
        case _:
            return f"{source} {f'-m mark --mark {mark}' if mark else ''} -j {what}"


def iptables(rows: list[_Row]) -> tuple[Walks, int]:
    """Return a walk of the rules that forgets marks, and the bits that they match on."""
    head = ["*filter", ":FORWARD ACCEPT [0:0]", ":A - [0:0]"]
    rules = [f"-A FORWARD {_iptables_row(row)}" for row in rows]
    behind = [
        "-A A -s 10.0.0.3 -j MARK --set-xmark 0x20/0xff",
        "-A A -m mark --mark 0x20/0xff -j DROP",
    ]
    text = "\n".join([*head, *rules, *behind, "COMMIT", ""])
    ruleset = read_ruleset(text.encode(), "dump")
    assert isinstance(ruleset, Ruleset)
    asked = asked_bits([ruleset])
    return Traversal(ruleset.tables["filter"], SITUATION, Effort(lambda: asked)), asked


def _nft_row(row: _Row) -> str:
    network, what, mark = row
    source = f"ip saddr {network}" if network else ""
    value, _, mask = mark.partition("/")
    match what:
        case "mark":
            kept = ~int(mask, 0) & 0xFFFFFFFF
            return f"{source} meta mark set meta mark & {kept:#x} ^ {value}"
        case "log":
            return f"{source} log"
        case _:
            verdict = "jump A" if what == "A" else what.lower()
            return f"{source} {f'meta mark & {mask} == {value}' if mark else ''} {verdict}"


def nft(rows: list[_Row]) -> tuple[Walks, int]:
    """Return the same of rules of nft."""
    behind = ["ip saddr 10.0.0.3 meta mark set 0x20", "meta mark & 0xff == 0x20 drop"]
    chains = ["chain FORWARD {", *map(_nft_row, rows), "}", "chain A {", *behind, "}"]
    ruleset = read_ruleset("\n".join(["table inet t {", *chains, "}", ""]).encode(), "dump")
    assert isinstance(ruleset, NftRuleset)
    asked, table = asked_bits([ruleset]), ruleset.tables["inet", "t"]
    return NftTraversal(table, "ip", SITUATION, Effort(lambda: asked)), asked


def end(leaf: Leaf) -> str:
    return str(leaf.outcome)


def ends_of(tree: Tree, number: int) -> list[Mapping[str, object]]:
    parts = shares_by_source(tree, end)
    return [dict(found.bounds) for where, found in parts if holds(where, number)]


@pytest.mark.parametrize("made", [iptables, nft])
@examples(100, 3_000)
@given(ROWS)
def test_flows_end_as_those_of_each_source_alone(made: object, rows: list[_Row]) -> None:
    assert callable(made)
    tree = made(rows)[0].tree("FORWARD", CAME)
    for address in by_source.ADDRESSES:
        alone = made(rows)[0].tree("FORWARD", replace(CAME, source=address, sources=None))
        assert ends_of(tree, int(address)) == [dict(shares(alone, end).bounds)]


@pytest.mark.parametrize("made", [iptables, nft])
@pytest.mark.parametrize(
    ("row", "splits"),
    [
        (("10.0.0.2/31", "mark", "0x10/0xf0"), True),  # of chain A, even if no packet comes there
        (("10.0.0.2/31", "mark", "0x100/0x100"), True),
        (("10.0.0.2/31", "mark", "0x10000/0xf0000"), False),
        (("10.0.0.2/31", "mark", "0x0/0xffffffff"), False),  # as it was
        (("10.0.0.2/31", "log", ""), False),
    ],
)
def test_what_no_rule_can_tell_splits_no_source(made: object, row: _Row, splits: bool) -> None:
    assert callable(made)
    walks, _ = made([row, ("", "DROP", "0x1/0x1"), ("", "DROP", "0x100/0xf00")])
    assert isinstance(walks.tree("FORWARD", CAME), BySource) is splits


@pytest.mark.parametrize("made", [iptables, nft])
def test_hundreds_of_marks_of_which_rules_match_on_one_bit_are_two(made: object) -> None:
    assert callable(made)
    marks = [(f"10.9.{at}.0/24", "mark", f"{at << 12:#x}/0xfffff000") for at in range(256)]
    walks, _ = made([*marks, ("", "DROP", "0x1000/0x1000")])
    packet = replace(CAME, sources=Region(4, ((0, (1 << 32) - 1),)))
    found = [*leaves_by_source(walks.tree("FORWARD", packet))]
    assert {leaf.packet.mark for leaf, _ in found} == {Mark(), Mark(0x1000)}
    for at in range(256):
        ends = {end(leaf) for leaf, where in found if holds(where, 0x0A090001 + (at << 8))}
        assert ends == {str(Drop() if at % 2 else FellThrough())}


@pytest.mark.parametrize("made", [iptables, nft])
def test_marks_in_a_row_are_one_split(made: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(made)
    monkeypatch.setattr("analyzer.semantics.effort.MOST_PARTS", 1)
    marks = [(f"10.9.{at}.0/24", "mark", "0x1/0x1") for at in range(256)]
    walks, _ = made([*marks, ("", "DROP", "0x1/0x1")])
    tree = walks.tree("FORWARD", replace(CAME, sources=Region(4, ((0, (1 << 32) - 1),))))
    assert not walks.effort.exceeded
    assert isinstance(tree, BySource)
    [(marked, dropped), (_, rest)] = tree.branches
    assert marked.intervals == ((0x0A090000, 0x0A09FFFF),)
    assert "255 more such rules" in dropped.rules[0].raw
    assert [each.outcome for each in every_leaf(dropped)] == [Drop()]
    assert [each.outcome for each in every_leaf(rest)] == [FellThrough()]


@pytest.mark.parametrize("made", [iptables, nft])
def test_a_mark_that_is_taken_back_splits_no_source(made: object) -> None:
    assert callable(made)
    marks = [("10.0.0.2/31", "mark", "0x1/0x1"), ("10.0.0.0/30", "mark", "0x0/0x1")]
    walks, _ = made([*marks, ("", "DROP", "0x1/0x1")])
    tree = walks.tree("FORWARD", CAME)
    assert [leaf.packet.mark for leaf in every_leaf(tree)] == [Mark()]
    assert not isinstance(tree, BySource)


@pytest.mark.parametrize("made", [iptables, nft])
def test_packets_that_earlier_rules_mark_meet_each_later_one(made: object) -> None:
    assert callable(made)
    marks = [
        ("10.0.0.0/30", "mark", "0x1/0x1"),
        ("10.0.0.0/31", "mark", "0x2/0x2"),
        ("10.0.0.1", "mark", "0x4/0x4"),
        ("10.0.0.3", "mark", "0x8/0x8"),
    ]
    behind = [("", "DROP", "0x7/0xf"), ("", "REJECT", "0x9/0xf"), ("", "ACCEPT", "0x3/0xf")]
    tree = made([*marks, *behind])[0].tree("FORWARD", CAME)
    told = ["Accept", "Drop", "FellThrough", "Reject", "FellThrough"]
    for number, name in enumerate(told, int(by_source.FIRST)):
        [[found]] = ends_of(tree, number)
        assert str(found).startswith(name)


@pytest.mark.parametrize("made", [iptables, nft])
def test_one_rule_that_ends_packets_with_many_marks_is_not_called_many(
    made: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(made)
    monkeypatch.setattr("analyzer.semantics.in_a_row._MOST_APART", 1)
    marks = [(each, "mark", "0x1/0x1") for each in ("10.0.0.1", "10.0.0.3", "10.0.0.5")]
    walks, _ = made([*marks, ("10.0.0.0/29", "ACCEPT", ""), ("", "DROP", "0x1/0x1")])
    [marked, other] = every_leaf(walks.tree("FORWARD", CAME))
    assert not any("one of" in rule.raw for leaf in (marked, other) for rule in leaf.rules)


@pytest.mark.parametrize("made", [iptables, nft])
@examples(60, 2_000)
@given(ROWS, st.booleans())
def test_what_is_kept_is_what_happens_from_there(
    made: object, rows: list[_Row], is_known: bool
) -> None:
    assert callable(made)
    walks = made(rows)[0]
    packets: set[Packet] = set()

    def onward(self: Walks, start: RulePosition, packet: Packet) -> Tree:
        packets.add(packet)
        return real(self, start, packet)

    real = Walks.onward
    with pytest.MonkeyPatch.context() as patch:
        # Marks are joined after many forks: that depends on what was evaluated before.
        patch.setattr("analyzer.semantics.effort.MOST_FORKS", {False: 10_000, True: 10_000})
        patch.setattr(Walks, "onward", onward)
        walks.tree("FORWARD", CAME if is_known else replace(CAME, sources=None))
        for packet, at in product([*packets], range(len(rows) + 1)):
            kept = walks.walked(place := RulePosition("FORWARD", at), packet)
            assert kept is None or kept == made(rows)[0].onward(place, packet)


@pytest.mark.parametrize("made", [iptables, nft])
def test_marks_by_unknown_sources_are_evaluated_once_each(
    made: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(made)
    evaluated: list[None] = []

    def are_alike(self: Effort, one: Packet, other: Packet) -> bool:
        evaluated.append(None)
        return real(self, one, other)

    real = Effort.are_alike
    monkeypatch.setattr(Effort, "are_alike", are_alike)
    marks = [(f"10.9.{at}.0/24", "mark", "0x1/0x1") for at in range(100)]
    walks, _ = made([*marks, ("", "DROP", "0x1/0x1")])
    ends = shares(walks.tree("FORWARD", replace(CAME, sources=None)), end)
    assert set(ends.bounds) == {str(Drop()), str(FellThrough())}
    assert len(evaluated) <= 4 * len(marks)
