"""Random rulesets: the kernel goes only the ways that the tree allows, and as often."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

RUN = "from tests.support.lab.kernel_check import main; main({arguments!r})"
#: Faults in the semantics, which a check that is worth something notices, and a seed whose first
#: rulesets show them.
FAULTS = {
    "nat before mangle": ("hooks.PRIORITIES['mangle', 'POSTROUTING'] = 200", 4),
    "no filter in FORWARD": ("hooks.TABLES['FORWARD'] = ('mangle',)", 1),
    "mark lost": ("packet.Mark.with_bits = lambda self, value, mask: self", 3),
    "jumps that come back lost": ("traverse.Path.passes = lambda self, *rules: None", 5),
    "chance of all draws": ("matches.MatchRandom.probability = probability.Dyadic.of(1, 3)", 4),
}


def found(*arguments: str, before: str = "") -> Any:
    return json.loads(in_lab(f"{before}\n{RUN.format(arguments=arguments)}").strip())


@pytest.mark.parametrize("backend", ["legacy", "nft"])
def test_the_kernel_goes_no_way_that_the_tree_does_not_allow(backend: str) -> None:
    run = found("--rulesets", "40", "--packets", "50", "--backend", backend)
    assert run["disagreements"] == []
    assert (run["rulesets"], run["packets"]) == (40, 2_000)
    assert run["matched_rules"] > run["packets"]
    assert run["questions_of_nothing_unknown"] > 40
    assert run["counts_tested"] > 60
    wanted = {"Accept", "Drop", "Dnat", "Goto", "Jump", "Masquerade", "NoTrack", "Reject"}
    assert wanted <= set(run["targets"])


@pytest.mark.deep
@pytest.mark.parametrize("backend", ["legacy", "nft"])
def test_packets_meet_only_what_comes_back_behind_jumps_that_the_tree_leaves_out(
    backend: str,
) -> None:
    few = "--rulesets", "30", "--packets", "20", "--seed", "2"
    run = found(*few, "--backend", backend)
    assert run["disagreements"] == []
    assert run["packets_by_jumps_left_out"] >= 20


@pytest.mark.alike(1)
@pytest.mark.parametrize(("fault", "seed"), FAULTS.values(), ids=FAULTS)
def test_a_fault_in_the_semantics_is_noticed(fault: str, seed: int) -> None:
    imports = (
        "from analyzer.model import hooks, packet, probability\n"
        "from analyzer.model.iptables import matches\n"
        "from analyzer.semantics.iptables import traverse\n"
    )
    before = f"{imports}{fault}"
    run = found("--rulesets", "30", "--seed", str(seed), "--until-fault", before=before)
    assert run["disagreements"] != []


@pytest.mark.alike(1)
@pytest.mark.parametrize("backend", ["legacy", "nft"])
def test_beside_rules_of_others_kube_proxy_s_are_walked_as_the_kernel_does(backend: str) -> None:
    run = found("--foreign", "--rulesets", "20", "--packets", "10", "--backend", backend)
    assert run["disagreements"] == []
    assert run["rulesets"] == 20
    assert run["counts_tested"] > 60
    assert {"Dnat", "Jump", "Masquerade", "SetMark"} <= set(run["targets"])
