from __future__ import annotations

from fractions import Fraction
from ipaddress import IPv4Address
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.iptables.matches import Match, MatchMark, MatchNot, MatchRandom, MatchUnknown
from analyzer.model.iptables.options import Masked
from analyzer.model.iptables.rules import Chain, Rule, Table
from analyzer.model.iptables.targets import (
    Accept,
    Dnat,
    Drop,
    Goto,
    Jump,
    Masquerade,
    NatRange,
    Reject,
    Return,
    SetMark,
    Target,
    TargetUnknown,
)
from analyzer.model.packet import UNKNOWN_MARK, UNKNOWN_PACKET, Mark, Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.semantics.shares import shares
from analyzer.semantics.tree import Chance, Either, FellThrough, Leaf, Unresolved
from tests.support.agreement.iptables_table import (
    START,
    agrees_with_the_naive_interpreter,
    bounds_are_the_extremes_of_an_adversary,
    is_dead,
    walk,
)
from tests.support.naive import table as naive
from tests.support.odds import bounds, distribution
from tests.support.strategies.iptables_rules import HERE
from tests.support.strategies.iptables_walkable import DEAD, looping_tables, walked_tables

UNKNOWN = MatchUnknown("-m u32")
HALF = MatchRandom(1 << 30)
MANY = 2_000


Chains: TypeAlias = dict[str, list[tuple[list[Match], Target | None]]]


def table(**chains: list[tuple[list[Match], Target | None]]) -> Table:
    return Table(
        "ip",
        "nat",
        {
            name: Chain(name, tuple(Rule(tuple(m), t, HERE, "") for m, t in rules))
            for name, rules in chains.items()
        },
    )


@given(walked_tables(unknown_match=False, unknown_target=False))
def test_outcomes_marks_and_rules_are_those_of_a_naive_interpreter(made: Table) -> None:
    agrees_with_the_naive_interpreter(made)


@given(walked_tables())
def test_bounds_are_what_an_adversary_can_bring_about(made: Table) -> None:
    bounds_are_the_extremes_of_an_adversary(made)


@given(walked_tables(most_rules=2, most_matches=1))
def test_bounds_hold_however_the_unknown_turns_out(made: Table) -> None:
    found = bounds(walk(made), is_dead)
    for resolved in naive.resolutions(made, DEAD):
        low, high = naive.extremes(resolved, START, lambda end: end.target == DEAD)
        assert found.lower.as_fraction() <= low <= high <= found.upper.as_fraction()


@given(walked_tables(unknown_target=False, chains=1, most_rules=4))
def test_bounds_are_tight_where_no_rule_is_met_twice(made: Table) -> None:
    found = bounds(walk(made), is_dead)
    each = [
        naive.extremes(resolved, START, lambda end: end.target == DEAD)
        for resolved in naive.resolutions(made, DEAD)
    ]
    assert found.lower.as_fraction() == min(low for low, _ in each)
    assert found.upper.as_fraction() == max(high for _, high in each)


@given(walked_tables())
def test_shares_of_all_outcomes_allow_a_sum_of_one(made: Table) -> None:
    found = shares(walk(made), lambda leaf: leaf.outcome)
    lower = sum(b.lower.as_fraction() for b in found.values())
    upper = sum(b.upper.as_fraction() for b in found.values())
    assert lower <= 1 <= upper + found.unresolved.as_fraction()


@given(looping_tables())
def test_chains_that_lead_anywhere_come_to_an_end(made: Table) -> None:
    found = bounds(walk(made), is_dead)
    assert found.lower <= found.upper


@pytest.mark.parametrize(
    "made",
    [
        table(A=[([], Jump("A"))]),
        table(A=[([], Goto("A"))]),
        table(A=[([], Jump("B"))], B=[([], Jump("A"))]),
        table(A=[([], Goto("B"))], B=[([], Goto("A"))]),
        table(A=[([], Goto("B"))], B=[([], Jump("A"))]),
        table(A=[([], Jump("B"))], B=[([], Goto("A"))]),
        table(A=[([HALF], Jump("B")), ([], DEAD)], B=[([], Goto("B"))]),
        table(A=[([], SetMark(1, 0)), ([], Goto("A"))]),
        table(A=[([], TargetUnknown("x")), ([], Goto("A"))]),
    ],
)
def test_what_a_loop_of_chains_does_is_unknown(made: Table) -> None:
    """The kernel refuses such rules, so the dump is not what it held."""
    assert not bounds(walk(made), is_dead).is_exact


@pytest.mark.parametrize("target", [Jump("MISSING"), Goto("MISSING")])
def test_what_a_missing_chain_does_is_unknown(target: Target) -> None:
    assert bounds(walk(table(A=[([], target)])), is_dead) == Bounds(NEVER, ALWAYS)
    half = table(A=[([HALF], target), ([], DEAD)])
    assert bounds(walk(half), is_dead) == Bounds(HALF.probability, ALWAYS)


def test_a_chain_that_is_asked_for_and_missing_is_unknown() -> None:
    assert isinstance(walk(table(B=[])), Leaf)
    assert bounds(walk(table(B=[])), is_dead) == Bounds(NEVER, ALWAYS)


#: Targets after which the chain does not go on, those after which it does, and the unreadable.
ENDING: list[Target | None] = [Drop(), Return(), Goto("B")]
PASSING: list[Target | None] = [None, Jump("B"), SetMark(1, 1)]
OPEN: list[Target | None] = [TargetUnknown("-j TPROXY")]


def counted(leaf: Leaf, seen: list[None]) -> bool:
    """Whether the leaf is dead; fails where a fold walks shared parts again and again."""
    seen.append(None)
    assert len(seen) < 100_000
    return is_dead(leaf)


@pytest.mark.alike(1)
@pytest.mark.parametrize(
    "target", [*ENDING, *PASSING, *OPEN], ids=lambda target: type(target).__name__
)
@pytest.mark.parametrize("matches", [[], [UNKNOWN], [HALF]], ids=["certain", "unknown", "random"])
def test_a_long_chain_of_any_rules_is_walked_and_folded(
    target: Target | None, matches: list[Match]
) -> None:
    times = MANY if target in ENDING else MANY // 4
    made = table(A=[(matches, target)] * times + [([], DEAD)], B=[])
    seen: list[None] = []
    found = bounds(walk(made), lambda leaf: counted(leaf, seen))
    by_chance = Dyadic.of(1, times) if matches == [HALF] else None
    past_all = NEVER if not matches else by_chance
    if target in PASSING:
        assert found == Bounds(ALWAYS, ALWAYS)
    elif target in OPEN or past_all is None:
        assert found == Bounds(past_all or NEVER, ALWAYS)
    else:
        assert found == Bounds(past_all, past_all)


def test_300_nested_jumps_come_to_their_end() -> None:
    chains: Chains = {f"C{n}": [([], Jump(f"C{n + 1}"))] for n in range(300)}
    made = table(A=[([], Jump("C0"))], C300=[([], DEAD)], **chains)
    assert bounds(walk(made), is_dead) == Bounds(ALWAYS, ALWAYS)


def test_300_nested_jumps_return_the_whole_way() -> None:
    chains: Chains = {f"C{n}": [([], Jump(f"C{n + 1}"))] for n in range(300)}
    made = table(A=[([], Jump("C0")), ([], DEAD)], C300=[], **chains)
    assert bounds(walk(made), is_dead) == Bounds(ALWAYS, ALWAYS)


@pytest.mark.parametrize("matches", [[UNKNOWN], [UNKNOWN, HALF]], ids=["unknown", "random-too"])
@pytest.mark.parametrize("target", [Drop(), *PASSING[1:], *OPEN])
def test_the_rest_behind_an_unknown_rule_is_folded_once(
    matches: list[Match], target: Target | None
) -> None:
    """It is one tree, met in two ways: behind forty rules not 2**40 trees."""
    made = table(A=[(matches, target)] * 40 + [([], DEAD)], B=[])
    seen: list[None] = []
    assert bounds(walk(made), lambda leaf: counted(leaf, seen)).upper == ALWAYS


def test_a_kube_proxy_chain_of_5000_endpoints_is_one_chance_node() -> None:
    n = 5_000
    chains: Chains = {"A": []}
    for i in range(n):
        address = IPv4Address("10.0.0.0") + i
        chains[f"KUBE-SEP-{i}"] = [([], Dnat(NatRange(address, None, 80)))]
        draw: list[Match] = [MatchRandom(round(Fraction(1 << 31, n - i)))] if i < n - 1 else []
        chains["A"].append((draw, Jump(f"KUBE-SEP-{i}")))
    tree = walk(table(**chains))
    assert isinstance(tree, Chance)
    assert all(isinstance(child, Leaf) for _, child in tree.branches)
    weights = distribution(tree)
    assert len(weights) == n
    assert sum(weights.values(), NEVER) == ALWAYS


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        # A chain that ends, or RETURN, goes back to the caller.
        (table(A=[([], Jump("B")), ([], DEAD)], B=[]), DEAD),
        (table(A=[([], Jump("B")), ([], DEAD)], B=[([], Return()), ([], Drop())]), DEAD),
        # goto goes back to the caller's caller.
        (table(A=[([], Goto("B")), ([], DEAD)], B=[]), FellThrough()),
        (
            table(A=[([], Jump("B")), ([], DEAD)], B=[([], Goto("C")), ([], Drop())], C=[]),
            DEAD,
        ),
        (table(A=[([], Return()), ([], DEAD)]), FellThrough()),
        # A rule without a target is a counter.
        (table(A=[([], None), ([], DEAD)]), DEAD),
        (table(A=[([], Accept()), ([], DEAD)]), Accept()),
        (table(A=[([], Reject("tcp-reset")), ([], DEAD)]), Reject("tcp-reset")),
        (table(A=[([], Masquerade()), ([], DEAD)]), Masquerade()),
        (table(A=[([MatchRandom(0)], Drop()), ([], DEAD)]), DEAD),
        (table(A=[([MatchNot(MatchRandom(1 << 31))], Drop()), ([], DEAD)]), DEAD),
    ],
)
def test_a_walk_ends_where_the_kernel_ends_it(made: Table, outcome: object) -> None:
    assert distribution(walk(made)) == {outcome: ALWAYS}


@pytest.mark.parametrize("mark", [0, 1, 0x4000, 0xFFFFFFFF])
@pytest.mark.parametrize(
    ("target", "marked"),
    [
        (SetMark(0x4000, 0x4000), lambda mark: mark | 0x4000),
        (SetMark(0, 0x4000), lambda mark: mark & ~0x4000),
        (SetMark(1, 0), lambda mark: mark ^ 1),
        (SetMark(7), lambda _: 7),
    ],
)
def test_a_mark_is_set_in_the_called_chain_and_stays(
    mark: int, target: Target, marked: object
) -> None:
    assert callable(marked)
    asked = MatchMark(Masked(marked(mark)))
    made = table(A=[([], Jump("B")), ([asked], DEAD)], B=[([], target)])
    assert bounds(walk(made, Packet(mark=Mark(mark))), is_dead) == Bounds(ALWAYS, ALWAYS)


def test_a_mark_that_is_not_known_is_known_once_all_of_it_is_set() -> None:
    asked = MatchMark(Masked(7))
    packet = Packet(mark=UNKNOWN_MARK)
    whole = table(A=[([], SetMark(7)), ([asked], DEAD)])
    assert bounds(walk(whole, packet), is_dead) == Bounds(ALWAYS, ALWAYS)
    part = table(A=[([], SetMark(7, 7)), ([asked], DEAD)])
    assert bounds(walk(part, packet), is_dead) == Bounds(NEVER, ALWAYS)


def test_random_marks_are_remembered_apart() -> None:
    marked = MatchMark(Masked(1, 1))
    made = table(A=[([HALF], SetMark(1, 1)), ([marked], DEAD), ([HALF], Drop())])
    weights = distribution(walk(made))
    quarter = Dyadic.of(1, 2)
    assert weights == {DEAD: HALF.probability, Drop(): quarter, FellThrough(): quarter}


def test_an_unknown_target_leaves_everything_open() -> None:
    tree = walk(table(A=[([], TargetUnknown("-j TPROXY")), ([], DEAD)]))
    assert bounds(tree, is_dead) == Bounds(NEVER, ALWAYS)
    assert bounds(tree, lambda leaf: not is_dead(leaf)) == Bounds(NEVER, ALWAYS)


def test_nothing_is_walked_behind_an_unknown_target() -> None:
    """Whatever it may go on to, it may as well end as anything at once."""
    tree = walk(table(A=[([], TargetUnknown("-j TPROXY")), ([], Drop())]))
    assert isinstance(tree, Leaf)
    assert (tree.outcome, tree.packet) == (Unresolved("-j TPROXY"), UNKNOWN_PACKET)


def test_what_one_rule_may_not_know_is_told_with_its_place() -> None:
    tree = walk(table(A=[([UNKNOWN], Drop())]))
    assert isinstance(tree, Either)
    assert tree.because.startswith("made:1: ")


@given(st.sampled_from([None, IPv4Address("10.9.9.9")]), st.sampled_from([None, 7]))
def test_a_dnat_changes_only_what_it_names(address: IPv4Address | None, port: int | None) -> None:
    packet = Packet(destination=IPv4Address("10.0.0.1"), destination_port=80)
    target = Dnat(NatRange(address, None, port, None))
    tree = walk(table(A=[([], target)]), packet)
    assert isinstance(tree, Leaf)
    assert tree.packet == Packet(
        destination=address or packet.destination,
        destination_port=port or packet.destination_port,
        # To be sent where it was sent already counts as no translation.
        translated=(address, port) != (None, None),
    )


def test_what_the_kernel_chooses_of_a_range_is_not_known() -> None:
    first, last = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
    tree = walk(table(A=[([], Dnat(NatRange(first, last, 1, 9)))]), Packet(destination=first))
    assert isinstance(tree, Leaf)
    assert (tree.packet.destination, tree.packet.destination_port) == (None, None)


def test_a_masquerade_leaves_a_source_that_is_not_known() -> None:
    packet = Packet(source=IPv4Address("10.0.0.1"), source_port=5, from_node=False)
    tree = walk(table(A=[([], Masquerade())]), packet)
    assert isinstance(tree, Leaf)
    left = tree.packet.source, tree.packet.source_port, tree.packet.from_node
    assert left == (None, None, None)
