"""The order of base chains, over tables and rulesets."""

from __future__ import annotations

from typing import Final

import pytest

from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER
from analyzer.parsers import iptables_save, nft_text
from analyzer.semantics.base_chains import Rules, base_chains
from analyzer.semantics.calling_order import BaseChain, Tie, up_to_nat, without_nat
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Leaf, Unresolved
from tests.support.odds import bounds

SAVED: Final = """*mangle
:PREROUTING ACCEPT [0:0]
-A PREROUTING -j MARK --set-xmark 0x1/0x1
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -j RETURN
COMMIT
"""


def nft(*chains: str, family: str = "ip") -> Rules:
    """A ruleset of one chain, ``name type hook priority``, in each table."""
    tables = [
        f"table {family} t{at} {{ chain {name} {{ type {kind} hook {hook} priority {priority};"
        " policy accept; counter; } }"
        for at, (name, kind, hook, priority) in enumerate(each.split() for each in chains)
    ]
    return nft_text.parse("\n".join(tables).replace("counter;", "\ncounter\n"), "made")


def called(*rulesets: Rules, hook: str = "PREROUTING") -> list[str]:
    """The names of what a hook calls, those in a tie as all their orders."""
    told = []
    for stage in base_chains(rulesets, "ip", Situation())[hook]:
        orders = stage.orders if isinstance(stage, Tie) else ((stage,),)
        told.append(" or ".join(sorted(" ".join(_name(c) for c in order) for order in orders)))
    return told


def _name(chain: BaseChain) -> str:
    return chain.table if chain.name.isupper() else chain.name


@pytest.mark.parametrize(
    ("chains", "want"),
    [
        (("a filter prerouting 0", "b filter prerouting -150"), ["b", "a"]),
        # Of one priority the one that was registered later is called first.
        (("a filter prerouting 0", "b filter prerouting 0"), ["b", "a"]),
        # The chains of nat by their own priorities, where iptables has its first.
        (
            ("a nat prerouting 50", "b nat prerouting -300", "c filter prerouting 0"),
            ["b", "a", "c"],
        ),
        (("a nat prerouting 0", "b nat prerouting 0"), ["b", "a"]),
        # Seen on Linux 6.18: what calls them counts as one chain there.
        (("a filter prerouting -100", "b nat prerouting -100"), ["b", "a"]),
        (("a nat prerouting -100", "b filter prerouting -100"), ["b", "a"]),
        (
            ("a filter prerouting -100", "b nat prerouting 7", "c filter prerouting -100"),
            ["c", "b", "a"],
        ),
        # It is registered at all hooks with the first of them, on whatever hook that is.
        (
            ("x nat postrouting 100", "a filter prerouting -100", "b nat prerouting -100"),
            ["a", "b"],
        ),
    ],
)
def test_within_one_ruleset_the_listing_tells(chains: tuple[str, ...], want: list[str]) -> None:
    assert called(nft(*chains)) == want


@pytest.mark.parametrize(
    ("chains", "want"),
    [
        (("a filter prerouting -160",), ["a", "mangle", "nat"]),
        (("a filter prerouting -150",), ["a mangle or mangle a", "nat"]),
        # It may have come between two of nft, which keep their own order.
        (
            ("a filter prerouting -150", "b filter prerouting -150"),
            ["b a mangle or b mangle a or mangle b a", "nat"],
        ),
        (("a filter prerouting -100",), ["mangle", "a nat or nat a"]),
        (("a nat prerouting -100",), ["mangle", "a nat or nat a"]),
        (("a nat prerouting -90",), ["mangle", "nat", "a"]),
        # What calls nat is as old as the oldest chain of it.
        (("a nat prerouting -90", "b filter prerouting -100"), ["mangle", "b", "nat", "a"]),
        (("b filter prerouting -100", "a nat prerouting -90"), ["mangle", "b nat a or nat a b"]),
    ],
)
def test_between_rulesets_nobody_tells(chains: tuple[str, ...], want: list[str]) -> None:
    assert called(iptables_save.parse(SAVED, "dump"), nft(*chains)) == want


def test_parts_of_what_a_hook_calls() -> None:
    rulesets = (
        iptables_save.parse(SAVED, "dump"),
        nft("a filter prerouting -100", "b filter prerouting 0"),
    )
    stages = base_chains(rulesets, "ip", Situation())["PREROUTING"]

    def told(stages: tuple[BaseChain | Tie, ...]) -> list[list[str]]:
        return [
            sorted(" ".join(_name(c) for c in order) for order in stage.orders)
            if isinstance(stage, Tie)
            else [_name(stage)]
            for stage in stages
        ]

    assert told(up_to_nat(stages, "PREROUTING")) == [["mangle"], ["a nat", "nat"]]
    assert told(without_nat(up_to_nat(stages, "PREROUTING"))) == [["mangle"], ["", "a"]]
    assert told(without_nat(stages)) == [["mangle"], ["a"], ["b"]]


@pytest.mark.parametrize(
    ("hook", "priority", "is_before"),
    [
        ("prerouting", -300, True),
        ("prerouting", -201, True),
        ("prerouting", -200, False),
        ("output", -300, True),
        # Seen on Linux 6.18: only where packets come in or are made has it still to look at them.
        ("input", -300, False),
        ("forward", -300, False),
        ("postrouting", -300, False),
    ],
)
def test_who_comes_before_conntrack(hook: str, priority: int, is_before: bool) -> None:
    stages = base_chains([nft(f"a filter {hook} {priority}")], "ip", Situation())[hook.upper()]
    assert [stage.is_before for stage in stages if isinstance(stage, BaseChain)] == [is_before]


def test_forged_hooks_of_nat_break_nothing() -> None:
    assert called(nft("a nat forward 0"), hook="FORWARD") == ["a"]


def test_orders_too_many_to_follow_leave_all_open() -> None:
    many = [f"c{at} filter prerouting 0" for at in range(9)]
    tree = Hooks([nft(*many), nft(*many)], "ip", Situation()).way(Packet(in_interface="eth0"))
    assert isinstance(tree, Leaf)
    assert isinstance(tree.outcome, Unresolved)
    found = bounds(tree, lambda leaf: leaf.packet.tracked is False)
    assert (found.lower, found.upper) == (NEVER, ALWAYS)
