from __future__ import annotations

import json
from typing import Any

import pytest

from analyzer.errors import InputError, ParseError
from analyzer.model.nft import expressions as e
from analyzer.model.nft.ruleset import NftRuleset, Table
from analyzer.parsers.nft_json import parse, sniff

TABLE = {"table": {"family": "ip", "name": "t", "handle": 1}}
BASE = {"type": "filter", "hook": "input", "prio": -10, "policy": "drop"}
CHAIN = {"chain": {"family": "ip", "table": "t", "name": "c", **BASE}}


def rule(*statements: Any, chain: str = "c", **more: Any) -> dict[str, Any]:
    return {"rule": {"family": "ip", "table": "t", "chain": chain, "expr": statements, **more}}


def ruleset(*objects: Any) -> NftRuleset:
    return parse(json.dumps({"nftables": objects}), "dump")


def table(*objects: Any) -> Table:
    return ruleset(TABLE, *objects).tables["ip", "t"]


def of_table(kind: str, name: str, **body: Any) -> dict[str, Any]:
    return {kind: {"family": "ip", "table": "t", "name": name, **body}}


@pytest.mark.parametrize(
    ("text", "is_nft"),
    [
        ('{"nftables": [', True),
        (' {\n "nftables" : [', True),
        ('{"items": []}', False),
        ("[]", False),
        ('{"metainfo": 1, "nftables": []}', False),
    ],
)
def test_the_first_key_tells_the_format(text: str, is_nft: bool) -> None:
    assert sniff(text) is is_nft


def test_rules_are_sorted_into_their_chains() -> None:
    other = {"chain": {"family": "ip", "table": "t", "name": "d"}}
    found = table(
        CHAIN, other, rule({"accept": None}, chain="d"), rule({"drop": None}, comment="x")
    )
    (first,), (second,) = found.chains["d"].rules, found.chains["c"].rules
    assert (first.statements, first.comment, first.chain) == ((e.Accept(),), None, "d")
    assert (second.statements, second.comment) == ((e.Drop(),), "x")
    assert found.rules == 2


def test_a_rule_is_located_by_the_number_of_its_object() -> None:
    (found,) = table(CHAIN, rule({"accept": None})).chains["c"].rules
    assert (found.location.line, found.location.table) == (3, "ip t")


def test_a_base_chain_says_type_hook_priority_and_policy() -> None:
    found = table(CHAIN).chains["c"]
    assert (found.type, found.hook, found.priority) == ("filter", "input", -10)
    assert found.policy == "drop"


def test_the_version_that_printed_it_is_kept() -> None:
    found = ruleset({"metainfo": {"version": "1.0.6", "json_schema_version": 1}}, TABLE)
    assert found.version == "1.0.6"


def test_sets_objects_and_flowtables_are_kept_by_name() -> None:
    found = table(
        of_table("set", "s", type="ipv4_addr", elem=["10.0.0.1"]),
        of_table("map", "m", type="ipv4_addr", map="verdict"),
        of_table("counter", "n", packets=1, bytes=60),
        of_table("flowtable", "f", hook="ingress", prio=0, dev=["eth0"]),
    )
    assert found.sets.keys() == {"s", "m"}
    assert found.objects.keys() == {("counter", "n")}
    assert found.flowtables.keys() == {"f"}


def test_a_set_that_is_not_understood_may_hold_anything() -> None:
    found = table(of_table("set", "s", type="ipv4_addr", size="many"))
    (element,) = found.sets["s"].elements
    assert isinstance(element.key, e.Unknown)


def test_flags_of_a_table_are_read_where_nft_prints_them() -> None:
    dormant = {"table": {"family": "ip", "name": "t", "flags": ["dormant"]}}
    assert ruleset(dormant).tables["ip", "t"].flags == ("dormant",)
    # nft 1.0.6 prints the table's name in their place.
    misprinted = {"table": {"family": "ip", "name": "t", "flags": ["t"]}}
    assert [each.code for each in ruleset(misprinted).diagnostics] == ["unknown-flag"]


def test_an_object_of_no_known_kind_is_told() -> None:
    (told,) = ruleset(TABLE, of_table("widget", "w")).diagnostics
    assert (told.code, told.line, told.partial) == ("unknown-object", None, True)
    assert told.message.startswith("object 2, ")


def test_rules_of_a_chain_that_is_not_declared_are_told() -> None:
    (told,) = ruleset(TABLE, rule({"accept": None}, chain="gone")).diagnostics
    assert told.code == "undeclared-chain"
    assert told.message.startswith("object 2, chain gone of table ip t")


@pytest.mark.parametrize(
    "objects",
    [
        [],
        [{"metainfo": {}}],
        [CHAIN],
        [TABLE, rule({"accept": None}) | TABLE],
        [TABLE, 7],
        [{"table": {"name": "t"}}],
        [TABLE, {"rule": {"family": "ip", "table": "t"}}],
        [TABLE, {"chain": {"family": "ip", "table": "t", "name": "c", "prio": "0"}}],
    ],
)
def test_objects_that_say_not_where_they_belong_are_refused(objects: list[Any]) -> None:
    with pytest.raises(InputError, match=r"^dump: "):
        ruleset(*objects)


@pytest.mark.parametrize("text", ["[]", '{"nftables": {}}', "9" * 5_000, "[" * 100_000])
def test_other_json_is_no_ruleset(text: str) -> None:
    with pytest.raises(InputError, match=r"^dump: (it contains no|not) "):
        parse(text, "dump")


def test_what_is_no_json_is_told_with_its_line_and_column() -> None:
    with pytest.raises(ParseError) as caught:
        parse('{"nftables": [\n {"table" 1}]}', "dump")
    assert (caught.value.location.line, caught.value.column) == (2, 11)
    assert caught.value.line == ' {"table" 1}]}'
