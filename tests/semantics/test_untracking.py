"""Rules that exempt packets from conntrack, of both backends."""

from __future__ import annotations

import pytest

from analyzer.model.iptables.rules import Ruleset
from analyzer.semantics.untracking import untracks
from tests.support.foreign.ground import rules_of


@pytest.mark.parametrize(
    ("target", "exempt"),
    [("NOTRACK", True), ("CT --notrack", True), ("CT --zone 1", False), ("ACCEPT", False)],
)
def test_targets_of_iptables(target: str, exempt: bool) -> None:
    text = f"*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -s 10.0.0.1/32 -j {target}\nCOMMIT\n"
    ruleset = rules_of(text)
    assert isinstance(ruleset, Ruleset)
    (rule,) = ruleset.tables["raw"].chains["PREROUTING"].rules
    assert untracks(rule) is exempt


@pytest.mark.parametrize(("statement", "exempt"), [("notrack", True), ("accept", False)])
def test_statements_of_nft(statement: str, exempt: bool) -> None:
    hook = "type filter hook prerouting priority -300; policy accept;"
    text = f"table ip x {{\n\tchain c {{\n\t\t{hook}\n\t\tip saddr 10.0.0.1 {statement}\n\t}}\n}}\n"
    ruleset = rules_of(text)
    assert not isinstance(ruleset, Ruleset)
    (table,) = ruleset.tables.values()
    (rule,) = table.chains["c"].rules
    assert untracks(rule) is exempt
