from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.dispatch.nft_chains import destinations, leads_to, no_map, reached_by
from analyzer.model.nft.ruleset import Rule, Table
from analyzer.model.nft.statements import Dnat
from analyzer.parsers.nft_text import parse

MAP = (
    "\tmap m {\n\t\ttype mark : verdict\n\t\telements = { 1 : goto b, 2 : drop, 3 : jump c }\n\t}\n"
)


def table(**chains: str) -> Table:
    blocks = "".join(f"\tchain {name} {{\n\t\t{rule}\n\t}}\n" for name, rule in chains.items())
    return parse(f"table ip t {{\n{MAP}{blocks}}}\n", "dump").tables["ip", "t"]


def only(given: Table) -> Rule:
    (rule,) = given.chains["a"].rules
    return rule


@pytest.mark.parametrize(
    ("rule", "chains"),
    [
        ("jump b", ["b"]),
        ("tcp dport 80 goto b", ["b"]),
        ("drop", []),
        ("meta mark vmap @m", ["b", "c"]),
        ("meta mark vmap { 1 : jump d, 2 : return }", ["d"]),
        ("meta mark vmap @gone", []),
    ],
)
def test_a_rule_leads_to_the_chains_that_it_and_its_maps_name(rule: str, chains: list[str]) -> None:
    given = table(a=rule)
    assert list(leads_to(only(given), given)) == chains


def test_maps_may_be_left_out() -> None:
    given = table(a="meta mark vmap @m")
    assert list(leads_to(only(given), given, no_map)) == []


def test_every_chain_on_the_way_is_reached_once() -> None:
    given = table(a="meta mark vmap @m", b="jump d", c="jump d", d="jump gone", e="jump a")
    assert [chain.name for chain in reached_by(given, ["a"])] == ["a", "b", "c", "d"]
    assert [chain.name for chain in reached_by(given, ["a"], no_map)] == ["a"]


def test_chains_that_loop_end_the_search() -> None:
    given = table(a="jump b", b="jump a")
    assert [chain.name for chain in reached_by(given, ["b", "a"])] == ["b", "a"]


@pytest.mark.parametrize(
    ("rule", "addresses"),
    [
        ("dnat to 10.0.0.1", ["10.0.0.1"]),
        ("meta l4proto tcp dnat to 10.0.0.1:80", ["10.0.0.1"]),
        (
            "meta l4proto tcp dnat to numgen random mod 2 map "
            "{ 0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 81 }",
            ["10.0.0.1", "10.0.0.2"],
        ),
        ("dnat to meta mark map { 0 : 10.0.0.1, 1 : 10.0.0.2 }", ["10.0.0.1", "10.0.0.2"]),
        ("dnat to meta mark map @m", []),
    ],
)
def test_a_translation_names_its_addresses(rule: str, addresses: list[str]) -> None:
    (dnat,) = [each for each in only(table(a=rule)).statements if isinstance(each, Dnat)]
    assert list(destinations(dnat)) == list(map(ip_address, addresses))
