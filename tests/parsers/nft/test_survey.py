from __future__ import annotations

import json
from typing import Any

import pytest

from analyzer.model.diagnostics import Diagnostic
from analyzer.parsers import nft_json, nft_text
from analyzer.parsers.nft.survey import survey

SETS = "\tset known {\n\t\ttype ipv4_addr\n\t}\n"


def read(*rules: str, sets: str = SETS, family: str = "ip") -> Any:
    rows = "".join(f"\t\t{rule}\n" for rule in rules)
    chains = f"\tchain a {{\n{rows}\t}}\n\tchain b {{\n\t}}\n"
    return nft_text.parse(f"table {family} t {{\n{sets}{chains}}}\n", "dump")


def told(*rules: str, **more: Any) -> list[Diagnostic]:
    return list(survey(read(*rules, **more)))


@pytest.mark.parametrize(
    "rule",
    [
        "jump b",
        "ip daddr @known drop",
        "ip daddr vmap { 10.0.0.1 : goto b, 10.0.0.2 : drop }",
        "meta l4proto tcp dnat to 10.0.0.1:80",
        "meta l4proto tcp dnat to numgen random mod 2 map { 0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 80 }",
        "ip saddr 10.0.0.1 jump mark-for-masquerade",
        "update @known { ip saddr timeout 1h }",
    ],
)
def test_what_is_understood_and_there_is_not_told(rule: str) -> None:
    assert told(rule) == []


@pytest.mark.parametrize(
    ("rule", "code", "named"),
    [
        ("synproxy mss 1460", "unknown-statement", "synproxy"),
        ("jump gone", "missing-chain", "chain gone"),
        ("goto gone", "missing-chain", "chain gone"),
        ("ip daddr vmap { 10.0.0.1 : goto gone }", "missing-chain", "chain gone"),
        ("ip daddr @gone drop", "missing-set", "set gone"),
        ("ip daddr . th dport vmap @gone", "missing-set", "set gone"),
        ("ip saddr map @gone 1 drop", "missing-set", "set gone"),
        ("add @gone { ip saddr }", "missing-set", "set gone"),
        ("ip daddr { 10.0.0.1 colour } drop", "unknown-element", "N colour"),
        ('xt match "made-up"', "iptables-nft", "xt match made-up"),
    ],
)
def test_what_is_not_understood_or_missing_is_told_at_its_line(
    rule: str, code: str, named: str
) -> None:
    found = told("accept", rule)
    assert [(each.code, each.line, each.partial) for each in found] == [(code, 7, True)]
    assert found[0].message.startswith("table ip t: ")
    assert named in found[0].message


def test_things_of_one_kind_are_told_once() -> None:
    (found,) = told("synproxy mss 1460", "synproxy mss 1380")
    assert found.line == 6
    assert found.message.endswith("synproxy mss N (2 times)")


def test_sets_and_their_elements_are_looked_at() -> None:
    sets = "\tmap m {\n\t\ttype mark : verdict\n\t\telements = { 1 : goto gone, 2 colour }\n\t}\n"
    assert [each.code for each in told(sets=sets)] == ["missing-chain", "unknown-element"]
    odd = "\tset s {\n\t\tcolour green\n\t}\n"
    assert [each.code for each in told(sets=odd)] == ["unknown-element", "unknown-set"]


def test_only_visited_chains_and_the_sets_that_they_name_are_looked_at() -> None:
    sets = "\tmap m {\n\t\ttype ipv4_addr : verdict\n\t\telements = { 10.0.0.1 : goto gone }\n\t}\n"
    ruleset = read("ip daddr vmap @m", sets=sets)
    assert [each.code for each in survey(ruleset, {"ip t": ["a"]})] == ["missing-chain"]
    assert list(survey(ruleset, {"ip t": ["b"]})) == []
    assert list(survey(ruleset, {})) == []


def test_a_map_that_is_known_to_be_understood_is_not_looked_at() -> None:
    sets = "\tmap m {\n\t\ttype ipv4_addr : verdict\n\t\telements = { 10.0.0.1 : goto gone }\n\t}\n"
    assert list(survey(read(sets=sets), None, {("ip", "t", "m")})) == []


def test_objects_of_json_are_told_by_their_number() -> None:
    place = {"family": "ip", "table": "t"}
    objects = [
        {"table": {"family": "ip", "name": "t"}},
        {"chain": {**place, "name": "c"}},
        {"rule": {**place, "chain": "c", "expr": [{"jump": {"target": "gone"}}]}},
    ]
    ruleset = nft_json.parse(json.dumps({"nftables": objects}), "dump")
    (found,) = survey(ruleset)
    assert found.line is None
    assert found.message == "object 3, table ip t: chain gone is not in the dump"
