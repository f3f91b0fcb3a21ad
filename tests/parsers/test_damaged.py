"""What readers make of lines, blocks and objects that are damaged: not whole, and told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analyzer.model.iptables.matches import MatchUnknown
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.iptables.rules import Table as XtTable
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers import iptables_save, nft_json, nft_text

BASE = "type filter hook input priority 0; policy accept;"


def saved(*lines: str, head: str = "*filter\n:INPUT ACCEPT [0:0]\n:X - [0:0]\n") -> Ruleset:
    return iptables_save.parse("\n".join([head + lines[0], *lines[1:], "COMMIT\n"]), "dump")


def only(ruleset: Ruleset) -> XtTable:
    (table,) = ruleset.tables.values()
    return table


def unread(table: XtTable, chain: str) -> list[bool]:
    """Whether nobody can read it, of each rule of a chain."""
    rules = table.chains[chain].rules
    return [any(isinstance(each, MatchUnknown) for each in rule.matches) for rule in rules]


def listed(*statements: str, table: str = "", chain: str = "c") -> NftRuleset:
    body = "".join(f"\t\t{each}\n" for each in statements)
    return nft_text.parse(f"table ip t {{\n{table}\tchain {chain} {{\n{body}\t}}\n}}\n", "dump")


def in_json(*objects: tuple[str, dict[str, Any]]) -> NftRuleset:
    held = [{kind: {"family": "ip", "table": "t", **body}} for kind, body in objects]
    table = {"table": {"family": "ip", "name": "t"}}
    return nft_json.parse(json.dumps({"nftables": [table, *held]}), "dump")


def codes(ruleset: Ruleset | NftRuleset) -> list[str]:
    return [each.code for each in ruleset.diagnostics]


def is_whole(ruleset: NftRuleset) -> bool:
    return ruleset.tables["ip", "t"].complete


# --- iptables-save


def test_a_line_that_is_not_understood_may_be_a_rule_of_any_chain_at_that_place() -> None:
    table = only(saved("-A INPUT -j X", "A INPUT -j DROP", "-A X -j DROP"))
    assert unread(table, "INPUT") == [False, True]
    assert unread(table, "X") == [True, False]
    assert not table.complete


def test_a_declaration_that_is_not_understood_is_no_rule() -> None:
    table = only(saved(":FORWARD DROP [0:0", "-A FORWARD -j X", "-A X -j DROP"))
    assert (unread(table, "FORWARD"), unread(table, "X")) == ([False], [False])
    assert table.chains["FORWARD"].policy is None
    assert not table.complete


@pytest.mark.parametrize("option", ["-F", "--flush", "-D", "--delete", "-R", "[0:0] -R"])
def test_what_takes_rules_out_of_a_chain_leaves_that_chain_open_from_its_start(option: str) -> None:
    table = only(saved("-A INPUT -j X", f"{option} INPUT", "-A X -j DROP"))
    assert unread(table, "INPUT") == [True, False]
    assert unread(table, "X") == [False]
    assert table.complete


@pytest.mark.parametrize("line", ["-F", "-F GONE", "-D GONE -j DROP"])
def test_what_takes_rules_out_of_no_known_chain_leaves_all_open(line: str) -> None:
    table = only(saved("-A INPUT -j X", "-A X -j DROP", line))
    assert (unread(table, "INPUT"), unread(table, "X")) == ([True, False], [True, False])


def test_prose_under_no_table_does_nothing_and_what_leads_somewhere_may() -> None:
    prose = only(saved("-A X -j DROP", "these are the rules", head=""))
    assert unread(prose, "X") == [False]
    rule = only(saved("-A X -j DROP", "A X -j DROP", head=""))
    assert unread(rule, "X") == [False, True]


def test_what_may_be_a_rule_stands_before_those_of_chains_that_come_later() -> None:
    begins = only(saved("A X -j DROP", "-A X -j DROP", head=""))
    assert unread(begins, "X") == [True, False]
    later = only(saved("A X -j DROP", "-A NEW -j DROP"))
    assert unread(later, "NEW") == [True, False]
    headed = only(saved("-A X -j DROP", head="# iptables\niptables -j X\n*filter\n:X - [0:0]\n"))
    assert unread(headed, "X") == [False]


def test_lines_outside_of_tables_do_nothing() -> None:
    found = iptables_save.parse("$ iptables-save\n*filter\n:X - [0:0]\n-A X -j X\nCOMMIT\n$\n", "d")
    assert codes(found) == ["noise"]
    assert unread(only(found), "X") == [False]
    assert only(found).complete


@pytest.mark.parametrize("head", ["*filter\n:INPUT DRPO [0:0]\n", "-P INPUT DRPO\n"])
def test_a_policy_that_is_no_policy_is_told(head: str) -> None:
    found = saved("-A INPUT -j ACCEPT", head=head)
    assert codes(found)[0] == "unknown-policy"
    assert only(found).chains["INPUT"].policy == "DRPO"


# --- nft


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ("type filter hook inptu priority 0; policy drop;", "unknown-hook"),
        ("type fliter hook input priority 0; policy drop;", "unknown-hook"),
        ("tpye filter hook input priority 0; policy drop;", "unknown-hook"),
        ("counter; type filter hook input priority 0; policy drop;", "unknown-hook"),
        ("type filter hook input at 5;", "unknown-hook"),
        ("policy drop;", "unknown-hook"),
        ("type filter hook input priority later; policy drop;", "unknown-priority"),
    ],
)
def test_a_chain_that_may_be_called_anywhere_is_told(head: str, code: str) -> None:
    found = listed(head, "accept")
    assert codes(found) == [code]
    assert found.tables["ip", "t"].chains["c"].is_unplaced


@pytest.mark.parametrize("statement", [BASE, "accept", 'drop comment "on hook x priority 1"'])
def test_chains_that_are_whole_are_not_told(statement: str) -> None:
    found = listed(statement)
    assert codes(found) == []
    assert not found.tables["ip", "t"].chains["c"].is_unplaced


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("\ttcp dport 22 drop\n", "unknown-block"),
        ("\tflags dormnat\n", "unknown-flag"),
        ("\tchian d {\n\t\tdrop\n\t}\n", "unknown-block"),
        ("\tchain c {\n\t\tdrop\n\t}\n", "declared-twice"),
    ],
)
def test_what_is_not_understood_in_a_table_leaves_it_open(table: str, code: str) -> None:
    found = listed(BASE, table=table)
    assert codes(found) == [code]
    assert not is_whole(found)


@pytest.mark.parametrize(
    "table", ['\tcomment "x"\n', "\tflags dormant,owner\n", "\tflowtable f {\n\t}\n" * 2]
)
def test_what_can_do_nothing_leaves_a_table_whole(table: str) -> None:
    assert is_whole(listed(BASE, table=table))


# --- nft, JSON


@pytest.mark.parametrize(
    ("objects", "code"),
    [
        ((("rule", {"chain": "c", "expr": []}),), "undeclared-chain"),
        ((("chain", {"name": "c"}), ("chain", {"name": "c"})), "declared-twice"),
        ((("chian", {"name": "c"}),), "unknown-object"),
    ],
)
def test_objects_that_may_be_called_leave_a_table_open(
    objects: tuple[tuple[str, dict[str, Any]], ...], code: str
) -> None:
    found = in_json(*objects)
    assert codes(found) == [code]
    assert not is_whole(found)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"type": "filter", "hook": "input", "policy": "drop"}, "unknown-priority"),
        ({"type": "filter", "prio": 0, "policy": "drop"}, "unknown-hook"),
        ({"type": "filter", "hook": "inptu", "prio": 0}, "unknown-hook"),
        ({"type": "filter", "hook": "input", "prio": 0, "policy": "dorp"}, "unknown-policy"),
    ],
)
def test_a_base_chain_of_json_that_is_not_whole_is_told(body: dict[str, Any], code: str) -> None:
    assert codes(in_json(("chain", {"name": "c", **body}))) == [code]


@pytest.mark.parametrize("again", ["set", "element"])
def test_a_set_of_which_more_is_said_may_hold_anything(again: str) -> None:
    one = {"name": "s", "type": "ipv4_addr", "elem": ["10.0.0.1"]}
    found = in_json(("set", one), (again, {**one, "elem": ["10.0.0.2"]}))
    assert found.tables["ip", "t"].sets["s"].key == ("unknown",)
    assert is_whole(found)
