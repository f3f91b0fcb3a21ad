"""Commands that load a ruleset: their order, and that none is more than one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers import nft_json, nft_text
from netns_lab.errors import LabError
from netns_lab.nft_commands import commands, devices
from tests.support.lab.running import ROOT
from tests.support.strategies.nft_rules import rulesets

FIXTURES = sorted((ROOT / "fixtures" / "nft").glob("*-nftables/*/nft-list-ruleset.txt"))


def of(text: str) -> list[str]:
    return list(commands(nft_text.parse(text, "dump")))


def of_json(*objects: object) -> list[str]:
    table = {"table": {"family": "ip", "name": "t"}}
    chain = {"chain": {"family": "ip", "table": "t", "name": "c"}}
    given = json.dumps({"nftables": [table, chain, *objects]})
    return list(commands(nft_json.parse(given, "dump")))


def rule(*statements: object) -> object:
    return {"rule": {"family": "ip", "table": "t", "chain": "c", "expr": list(statements)}}


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.parts[-3])
def test_whatever_names_a_chain_or_set_comes_after_all_of_them(path: Path) -> None:
    given = of(path.read_text())
    frames = [text.startswith("table ") for text in given]
    assert frames == sorted(frames, reverse=True)
    assert 0 < sum(frames) < len(frames)
    said = "".join(text for text, frame in zip(given, frames, strict=True) if frame)
    assert "goto" not in said
    assert "elements" not in said


def test_large_maps_and_tables_come_in_parts() -> None:
    chains = "".join(f"chain c{n} {{ }}\n" for n in range(120))
    elements = ", ".join(f"10.0.{n >> 8}.{n & 255}" for n in range(250))
    given = of(
        f"table ip t {{\nset s {{ type ipv4_addr\nelements = {{ {elements} }} }}\n{chains}}}"
    )
    assert [text.count("chain") for text in given] == [0, 50, 50, 20, 0, 0, 0]
    assert [text.count("10.0.") for text in given[4:]] == [100, 100, 50]


def test_comments_are_left_out_even_such_as_nft_cannot_write() -> None:
    held = rule({"accept": None})
    assert isinstance(held, dict)
    held["rule"]["comment"] = 'a " quote'
    assert of_json(held)[-1] == "add rule ip t c accept"


def test_what_no_namespace_has_is_named() -> None:
    text = 'table ip t {\nchain c {\niif { "cni0", "eth1" } oif "wg0" iifname "x" accept\n}\n}'
    assert devices(nft_text.parse(text, "dump")) == {"cni0", "eth1", "wg0"}


def test_a_table_is_not_handed_to_an_owner_that_is_not_there() -> None:
    assert "flags" not in of("table ip t {\nflags owner\n}")[0]
    assert "flags dormant" in of("table ip t {\nflags dormant\n}")[0]


def test_a_set_that_rules_fill_is_dynamic_though_json_does_not_say_so() -> None:
    held = {"set": {"family": "ip", "table": "t", "name": "s", "type": "ipv4_addr"}}
    key = {"payload": {"protocol": "ip", "field": "saddr"}}
    filled = rule({"set": {"op": "update", "elem": key, "set": "@s"}})
    assert "flags dynamic" in of_json(held, filled)[0]
    assert "flags" not in of_json(held)[0]


@pytest.mark.parametrize(
    "statement",
    [
        {"jump": {"target": "c; include"}},
        {"jump": {"target": "c\ninclude"}},
        {"counter": "x\nadd table ip evil"},
        {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": 'x"; flush ruleset'}},
        {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "x\0"}},
        {"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": "@s; flush ruleset"}},
        {"log": {"prefix": "a\nflush ruleset"}},
    ],
    ids=json.dumps,
)
def test_a_string_that_could_begin_a_command_is_refused(statement: object) -> None:
    with pytest.raises(LabError, match="dump:3"):
        of_json(rule(statement))


@pytest.mark.parametrize("name", ["x { }\ninclude", "", "a b", "a;b", "1"])
def test_a_name_that_nft_cannot_write_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="nft has no way to write the name"):
        of_json({"chain": {"family": "ip", "table": "t", "name": name}})


def test_words_of_a_set_are_words() -> None:
    held = {"family": "ip", "table": "t", "name": "s", "type": "ipv4_addr }\nflush ruleset"}
    with pytest.raises(LabError, match="is not an nft word"):
        of_json({"set": held})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("table ip t {\nchain c {\nfrobnicate 1\n}\n}", "dump:3.*not 'frobnicate 1'"),
        ('table ip t {\nchain c {\nxt match "socket" drop\n}\n}', "not 'xt match socket'"),
        ("table ip t {\nset s {\ntype ipv4_addr\nelements = { ?x }\n}\n}", "set s .*not '[?]x'"),
        ("table ip t {\nsynproxy s {\nmss 1460\n}\n}", "synproxy s .* is not understood"),
        ("table ip t {\nchain c {\n", "not complete in the dump"),
        ("table ip t {\nchain c {\ntype filter hook input priority odd;\n}\n}", "the priority of"),
    ],
)
def test_what_is_not_understood_is_not_loaded(text: str, says: str) -> None:
    with pytest.raises(LabError, match=says):
        of(text)


@given(rulesets())
def test_no_ruleset_makes_a_command_of_two_lines(ruleset: NftRuleset) -> None:
    try:
        given = list(commands(ruleset))
    except LabError:
        return
    for text in given:
        assert text.startswith("table ") or "\n" not in text
