"""Rules of others in captures, in files beside them, and pieces: a few dumps of each kind."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.captures import FIXTURES
from tests.support.foreign.ground import Ground, Grounds
from tests.support.foreign.judging import faults
from tests.support.foreign.pieces import are_drawn_elsewhere, faults_between, looks_whole
from tests.support.foreign.trying import TRIALS, tried

GROUNDS = Grounds()
IPTABLES = Ground(FIXTURES / "1.36.2-iptables-legacy" / "two-node" / "iptables-legacy-save.txt")
NFT = Ground(FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt")
#: Dumps of each kind.
FEW = 6


@pytest.mark.alike
@pytest.mark.parametrize("kind", TRIALS)
@pytest.mark.parametrize("seed", range(FEW))
def test_whatever_is_answered_is_right(kind: str, seed: int) -> None:
    found = tried(seed, kind, GROUNDS)
    assert found is None, (found.ground, found.faults[:3])


def test_rules_that_the_answer_does_not_know_are_noticed() -> None:
    random = Random(1)  # to ask the same each time
    row = "-A POSTROUTING -s 10.0.0.0/8 -j SNAT --to-source 192.168.0.200\n"
    changed = IPTABLES.text.replace("-A POSTROUTING", f"{row}-A POSTROUTING", 1)
    assert changed != IPTABLES.text
    assert not list(faults(IPTABLES, (IPTABLES.text,), IPTABLES.view(IPTABLES.text), random))
    assert list(faults(IPTABLES, (changed,), IPTABLES.view(IPTABLES.text), random))
    dropping = (
        "table ip x {\n\tchain c {\n\t\ttype filter hook prerouting priority -300; "
        "policy drop;\n\t}\n}\n"
    )
    assert not list(faults(NFT, (NFT.text,), NFT.view(NFT.text), random))
    assert list(faults(NFT, (NFT.text, dropping), NFT.view(NFT.text), random))


def test_a_piece_that_says_otherwise_than_the_whole_is_noticed() -> None:
    whole = IPTABLES.view(IPTABLES.text)
    other = IPTABLES.text.replace("--probability 0.50000000000", "--probability 0.25000000000")
    assert other != IPTABLES.text
    assert not list(faults_between(whole, whole))
    assert list(faults_between(whole, IPTABLES.view(other)))


def test_only_what_iptables_save_may_print_looks_whole() -> None:
    text = IPTABLES.text
    assert looks_whole(text)
    assert looks_whole(text.replace("-A KUBE-POSTROUTING", "-A KUBE-PROXY-CANARY", 1))
    assert not looks_whole(text.replace("COMMIT\n", "", 1))
    assert not looks_whole(text.replace(":KUBE-POSTROUTING - [0:0]\n", "", 1))  # it has rows
    assert not looks_whole(text.replace(":KUBE-NODEPORTS - [0:0]\n", ""))  # rules lead there


def test_draws_that_are_lost_without_a_trace_are_those_of_endpoints_that_others_draw() -> None:
    kept = "-A KUBE-SVL-A -j KUBE-SEP-B\n"
    lost = "-A KUBE-SVC-A -m statistic --mode random --probability 0.5 -j KUBE-SEP-B\n"
    assert are_drawn_elsewhere(kept + lost, kept)
    assert not are_drawn_elsewhere(kept + lost, lost.replace("-B", "-C"))
    assert not are_drawn_elsewhere(f"{kept}{lost}-A KUBE-SVC-A -j MASQ\n", kept)
