"""Random rulesets of nft: the kernel goes only the ways that the tree allows, and as often."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

RUN = "from tests.support.lab.nft_check import main; main({arguments!r})"
#: Faults in the semantics, which a check that is worth something notices, and a seed whose first
#: rulesets show them.
FAULTS = {
    "nat has no place of its own": (
        "calling_order.NAT.update(dict.fromkeys(calling_order.NAT, 0))",
        1,
    ),
    "the sooner chain comes first": (
        "calling_order._merged = lambda rows: iter([sum((r[::-1] for r in rows), ())])",
        7,
    ),
    "mark lost": (
        "packet.Mark.with_bits = lambda self, value, mask: self\n"
        "nft_changes._mark = lambda held: packet.Mark()",
        1,
    ),
    "a draw is rarer than it is": (
        "nft_fields.Draw.chance = lambda self, first, last: probability.Dyadic.of(1, 20)",
        1,
    ),
    "a reset for everybody": ("nft_rule.is_rejected = lambda *_: ternary.Ternary.TRUE", 4),
    "a snat keeps the source": ("nft_nat.sourced = lambda packet, to: packet", 1),
}


def found(*arguments: str, before: str = "") -> Any:
    return json.loads(in_lab(f"{before}\n{RUN.format(arguments=arguments)}").strip())


def test_the_kernel_goes_no_way_that_the_tree_does_not_allow() -> None:
    run = found("--rulesets", "30")
    assert run["disagreements"] == []
    assert run["rulesets"] == 30
    assert run["rules"] > 600 > 5 * run["refused"]
    assert run["packets"] == 25 * run["questions"] == 2_250
    assert run["questions_left_out"] == 0
    assert run["questions_of_nothing_unknown"] > 60
    assert run["counts_tested"] > 60
    assert min(run["ends"][end] for end in ("here", "out", "lost")) > 150
    assert {"accept", "continue", "drop", "goto", "jump", "return"} <= set(run["verdicts"])
    wanted = {"Accept", "Counter", "CtSet", "Dnat", "Drop", "Goto", "Jump", "Masquerade", "Match"}
    wanted |= {"MetaSet", "Notrack", "Redirect", "Reject", "Return", "SetUpdate", "Snat", "Vmap"}
    assert wanted <= set(run["statements"])


@pytest.mark.deep
def test_so_it_does_beside_iptables_legacy() -> None:
    run = found("--rulesets", "15", "--packets", "10", "--beside")
    assert run["disagreements"] == []


@pytest.mark.parametrize(("fault", "seed"), FAULTS.values(), ids=FAULTS)
def test_a_fault_in_the_semantics_is_noticed(fault: str, seed: int) -> None:
    imports = (
        "from analyzer.model import packet, probability, ternary\n"
        "from analyzer.semantics import calling_order\n"
        "from analyzer.semantics.nft import changes as nft_changes, fields as nft_fields\n"
        "from analyzer.semantics.nft import nat as nft_nat\n"
        "from analyzer.semantics.nft import rule as nft_rule\n"
        # To say it is enough here; to say it shortly takes long.
        "from tests.support.lab import nft_check\nnft_check.Check._shrunk = lambda *_: None\n"
    )
    arguments = ("--rulesets", "50", "--packets", "5", "--seed", str(seed), "--until-fault")
    run = found(*arguments, before=f"{imports}{fault}")
    assert run["disagreements"] != []
