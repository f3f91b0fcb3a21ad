from __future__ import annotations

import json

import pytest

from tests.support.lab.kernel_round_trip import OF_ANY_NAME
from tests.support.lab.running import in_lab
from tests.support.strategies.iptables_rules import MATCHES, TARGETS

pytestmark = pytest.mark.lab

PROGRAM = "from tests.support.lab.kernel_round_trip import main; main(5)"
OTHER_VERSION = {
    "iptables": {"MatchIcmp6", "MatchHl"},
    "ip6tables": {"MatchFragment", "MatchIcmp", "MatchTtl"},
}


def test_rules_that_the_real_iptables_loads_and_saves_are_the_same_rules() -> None:
    found = json.loads(in_lab(PROGRAM).strip().split("\n")[-1])
    assert len(found) == 4
    every = {kind.__name__ for kind in (*MATCHES, *TARGETS) if kind not in OF_ANY_NAME}
    for binary, trial in found.items():
        assert trial["faults"] == []
        loadable = every - OTHER_VERSION[binary.partition("-")[0]]
        assert set(trial["accepted"]) >= loadable
    # python-iptables reads the same legacy table, and sees the same extensions.
    legacy = found["iptables-legacy"]
    assert legacy["witnessed"] > 0.9 * sum(legacy["accepted"].values())
