from __future__ import annotations

import json

import pytest

from tests.support.lab.kernel_round_trip import BINARIES, OF_ANY_NAME
from tests.support.lab.running import in_lab
from tests.support.strategies.iptables_rules import MATCHES, TARGETS

pytestmark = pytest.mark.lab

PROGRAM = "from tests.support.lab.kernel_round_trip import main; main({arguments!r})"
OTHER_VERSION = {
    "iptables": {"MatchIcmp6", "MatchHl"},
    "ip6tables": {"MatchFragment", "MatchIcmp", "MatchTtl"},
}


@pytest.mark.parametrize("binary", BINARIES)
def test_rules_that_the_real_iptables_loads_and_saves_are_the_same_rules(binary: str) -> None:
    arguments = ["--binary", binary, "--examples", "1"]
    trial = json.loads(in_lab(PROGRAM.format(arguments=arguments)))[binary]
    every = {kind.__name__ for kind in (*MATCHES, *TARGETS) if kind not in OF_ANY_NAME}
    assert trial["faults"] == []
    loadable = every - OTHER_VERSION[binary.partition("-")[0]]
    assert set(trial["accepted"]) >= loadable
    if binary == "iptables-legacy":
        # python-iptables reads the same table, and sees the same extensions.
        assert trial["witnessed"] > 0.9 * sum(trial["accepted"].values())
