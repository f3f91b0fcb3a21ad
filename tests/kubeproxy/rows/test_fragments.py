from __future__ import annotations

import pytest

from analyzer.kubeproxy.rows.fragments import HOOKS, mended
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.iptables.targets import Jump, SetMark
from analyzer.parsers.iptables_save import parse

SERVICE = "-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-A"
MARKED = "-A KUBE-SVC-A -j KUBE-MARK-MASQ"
WHOLE = """*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
COMMIT
"""


def read(*rows: str) -> Ruleset:
    return parse("\n".join(rows) + "\n", "dump", "nat")


def targets(ruleset: Ruleset, chain: str) -> list[object]:
    return [rule.target for rule in ruleset.tables["nat"].chains[chain].rules]


def codes(*rows: str) -> list[str]:
    return [each.code for each in mended(read(*rows))[1]]


def test_a_whole_dump_stays_as_it_is() -> None:
    ruleset = parse(WHOLE, "dump")
    assert mended(ruleset) == (ruleset, [])


def test_a_whole_chain_that_marks_keeps_all_its_rules() -> None:
    ruleset = parse(WHOLE.replace("COMMIT", "-A KUBE-MARK-MASQ -j RETURN\nCOMMIT"), "dump")
    assert mended(ruleset) == (ruleset, [])


def test_rules_without_services_stay_as_they_are() -> None:
    ruleset = read("-A KUBE-SVC-A -j KUBE-SEP-A")
    assert mended(ruleset) == (ruleset, [])


@pytest.mark.parametrize("hook", HOOKS)
def test_a_base_chain_that_is_missing_leads_to_kube_proxys(hook: str) -> None:
    ruleset, told = mended(read(SERVICE))
    assert targets(ruleset, hook) == [Jump(HOOKS[hook])]
    assert ruleset.tables["nat"].chains[hook].policy == "ACCEPT"
    (found,) = told
    assert (found.code, found.partial) == ("no-hook", True)
    assert hook in found.message


def test_only_the_base_chains_that_are_missing_are_put_in() -> None:
    given = WHOLE.replace(":OUTPUT ACCEPT [0:0]\n", "")
    ruleset, (told,) = mended(parse(given, "dump"))
    assert targets(ruleset, "OUTPUT") == [Jump("KUBE-SERVICES")]
    assert targets(ruleset, "PREROUTING") == []
    assert "shows" not in told.message
    assert "OUTPUT of table nat" in told.message
    assert "PREROUTING" not in told.message


def test_the_chain_that_marks_is_put_in_where_a_rule_leads_there() -> None:
    ruleset, _ = mended(read(SERVICE, MARKED))
    assert targets(ruleset, "KUBE-MARK-MASQ") == [SetMark(0x4000, 0x4000)]
    assert codes(SERVICE, MARKED) == ["no-hook", "no-mark-chain"]
    without, _ = mended(read(SERVICE))
    assert "KUBE-MARK-MASQ" not in without.tables["nat"].chains


@pytest.mark.parametrize(
    "match", ["-m mark ! --mark 0x1/0x1 -j RETURN", "-m mark --mark 0x1/0x1 -j MASQUERADE"]
)
def test_it_marks_with_the_bit_that_postrouting_looks_for(match: str) -> None:
    ruleset, _ = mended(read(SERVICE, MARKED, f"-A KUBE-POSTROUTING {match}"))
    assert targets(ruleset, "KUBE-MARK-MASQ") == [SetMark(1, 1)]


def test_a_chain_of_a_fragment_that_marks_once_has_lost_no_rule() -> None:
    ruleset, told = mended(
        read(SERVICE, MARKED, "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000")
    )
    assert targets(ruleset, "KUBE-MARK-MASQ") == [SetMark(0x4000, 0x4000)]
    assert [each.code for each in told] == ["no-hook"]
