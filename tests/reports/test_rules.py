from __future__ import annotations

import json
from typing import Any

import pytest

from analyzer.parsers import iptables_save, nft_json, nft_text
from analyzer.reports.rules import place, says
from analyzer.semantics.onward import chain_of
from analyzer.semantics.tree import AnyRule
from tests.support.dumps import dump

DADDR = {"payload": {"protocol": "ip", "field": "daddr"}}


def of_iptables(text: str) -> AnyRule:
    ruleset = iptables_save.parse(dump(f"-A KUBE-SERVICES {text}"), "dump.txt")
    (rule,) = ruleset.tables["nat"].chains["KUBE-SERVICES"].rules
    return rule


def of_nft(text: str) -> AnyRule:
    found = nft_text.parse(f"table ip t {{\n\tchain c {{\n\t\t{text}\n\t}}\n}}\n", "dump.txt")
    return found.tables["ip", "t"].chains["c"].rules[0]


def of_json(*statements: Any) -> AnyRule:
    where = {"family": "ip", "table": "t"}
    objects = [
        {"table": {"family": "ip", "name": "t"}},
        {"chain": {**where, "name": "c"}},
        {"rule": {**where, "chain": "c", "expr": statements}},
    ]
    found = nft_json.parse(json.dumps({"nftables": objects}), "dump.json")
    return found.tables["ip", "t"].chains["c"].rules[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-d 10.96.0.1/32 -j KUBE-SVC-A", "-j KUBE-SVC-A"),
        ("-p tcp -j DNAT --to-destination 10.0.0.1:80", "-j DNAT --to-destination 10.0.0.1:80"),
        ("-p tcp", "(counts)"),
    ],
)
def test_a_rule_of_iptables_is_told_by_its_target(text: str, words: str) -> None:
    assert says(of_iptables(text)) == words
    assert chain_of(of_iptables(text)) == "KUBE-SERVICES"


def test_a_rule_of_nft_is_told_whole() -> None:
    rule = of_nft("ip daddr 10.96.0.1 drop")
    assert (says(rule), chain_of(rule)) == ("ip daddr 10.96.0.1 drop", "c")


@pytest.mark.parametrize(("count", "left_out"), [(6, 0), (7, 4)])
def test_of_many_elements_a_few_are_shown(count: int, left_out: int) -> None:
    elements = [f"10.0.0.{n}" for n in range(count)]
    shown = says(of_nft(f"ip daddr {{ {', '.join(elements)} }} drop"))
    assert shown.count("10.0.0.") == count - left_out
    assert (f"... {left_out} more" in shown) is bool(left_out)


def test_a_rule_of_json_is_told_as_nft_would_print_it() -> None:
    match = {"match": {"op": "==", "left": DADDR, "right": "10.96.0.1"}}
    rule = of_json(match, {"drop": None})
    assert (says(rule), chain_of(rule)) == ("ip daddr 10.96.0.1 drop", "c")


def test_a_string_that_nft_could_not_print_is_shown_as_json() -> None:
    assert says(of_json({"log": {"prefix": 'a"b'}})).startswith('[{"log"')


def test_a_rule_stands_at_a_line_or_is_an_object_of_json() -> None:
    assert place(of_nft("drop")) == "line 3"
    assert place(of_json({"drop": None})) == "object 3"
    assert place(of_iptables("-j DROP")) == "line 8"
