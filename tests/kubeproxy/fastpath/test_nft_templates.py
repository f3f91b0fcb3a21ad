"""What rules and elements of nft name, in its text and in its JSON."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

from analyzer.kubeproxy.fastpath.nft_templates import (
    RuleTemplate,
    asked_otherwise,
    of_element,
    of_rule,
    pieces_of,
    rules_of,
)
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.nft.ruleset import NftRuleset, Table
from analyzer.parsers.formats import read_ruleset
from tests.support.lab.running import NFT

RULESETS = sorted(path.parent for path in NFT.glob("*/*/nft-list-ruleset.json"))
TEXT = """table ip t {
    set affinity-x { type ipv4_addr; flags dynamic,timeout; timeout 3h; }
    set affinity-y { type ipv4_addr; flags dynamic,timeout; timeout 3h; }
    set held { type ipv4_addr; elements = { 10.0.0.1 } }
}
"""


def tables(path: Path) -> list[Table]:
    return tables_of(path.read_text())


def tables_of(text: str) -> list[Table]:
    ruleset = read_ruleset(text.encode(), "ruleset")
    assert isinstance(ruleset, NftRuleset)
    return list(ruleset.tables.values())


def named(each: RuleTemplate) -> object:
    return each.chains, each.hosts, each.ports, each.literals, each.endpoints


_HOOK = "type filter hook forward priority 0; policy accept;"


@pytest.mark.parametrize(
    "body",
    [
        f"{_HOOK} ip saddr 10.0.0.1 drop",
        f"{_HOOK}\nip saddr 10.0.0.1 drop; ip daddr 10.0.0.2 drop",
        f"{_HOOK}\nip saddr {{ 10.0.0.1,\n10.0.0.2 }} drop",
        f"{_HOOK}\nip saddr 10.0.0.1 \\\n drop",
        'comment "x"; ip saddr 10.0.0.1 drop',
    ],
)
def test_a_chain_as_people_write_it_is_not_split(body: str) -> None:
    (table,) = tables_of(f"table ip t {{\n chain c {{\n{body}\n }}\n}}\n")
    assert rules_of(table.chains["c"]) is None


def test_a_chain_as_nft_prints_it_is_split() -> None:
    rule = 'ip saddr 10.0.0.1 counter packets 0 bytes 0 log prefix "a;b " drop comment "c;d"'
    (table,) = tables_of(f'table ip t {{\n chain c {{\n comment "x;"\n{_HOOK}\n{rule}\n }}\n}}\n')
    assert rules_of(table.chains["c"]) == [rule]


@pytest.mark.parametrize("folder", RULESETS, ids=lambda path: "/".join(path.parts[-2:]))
def test_text_and_json_name_the_same(folder: Path) -> None:
    of_text, of_json = (tables(folder / f"nft-list-ruleset.{form}") for form in ("txt", "json"))
    rules = 0
    for mine, theirs in zip(of_text, of_json, strict=True):
        for name, chain in mine.chains.items():
            lines, objects = rules_of(chain), rules_of(theirs.chains[name])
            assert lines is not None
            assert objects is not None
            for line, given in zip(lines, objects, strict=True):
                one, other = of_rule(line, mine), of_rule(given, theirs)
                assert (one is None) == (other is None)
                if one is not None and other is not None:
                    assert named(one) == named(other), (line, given)
                    rules += 1
        for name, held in mine.sets.items():
            pieces, others = pieces_of(held), pieces_of(theirs.sets[name])
            assert pieces is not None
            assert others is not None
            mine_of, theirs_of = (
                sorted(repr(named(of_element(piece))) for piece in each)
                for each in (pieces, others)
            )
            assert mine_of == theirs_of
    assert rules > 20


def rule(text: str) -> RuleTemplate | None:
    ruleset = read_ruleset(TEXT.encode(), "dump")
    assert isinstance(ruleset, NftRuleset)
    return of_rule(text, ruleset.tables["ip", "t"])


def certain(text: str) -> RuleTemplate:
    found = rule(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ip daddr 10.0.0.1 jump a", "ip daddr 10.0.0.2 jump b"),
        ("tcp dport 80 accept", "tcp dport 81 accept"),
        ("ip saddr 10.0.0.1 accept", "ip saddr 10.0.0.2 accept"),
        ("counter packets 1 bytes 2 accept", "counter packets 3 bytes 4 accept"),
        ('accept comment "a"', 'accept comment "b"'),
        ("accept # handle 4", "accept # handle 5"),
        ("update @affinity-x { ip saddr }", "update @affinity-y { ip saddr }"),
    ],
)
def test_what_a_rule_names_is_taken_out(one: str, other: str) -> None:
    assert certain(one).text == certain(other).text


def test_nor_is_what_json_counts_part_of_it() -> None:
    """As iptables-nft counts at each rule."""
    texts = []
    for packets in (0, 7):
        counted = {"counter": {"packets": packets, "bytes": 60 * packets}}
        sends = {"dnat": {"addr": "10.0.0.1", "port": 80}}
        found = certain(json.dumps([counted, sends]))
        assert found.endpoints == (Endpoint(IPv4Address("10.0.0.1"), 80),)
        texts.append(found.text)
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ip daddr 10.0.0.1 jump a", "ip daddr 10.0.0.1 goto a"),
        ("ip daddr 10.0.0.1 accept", "ip daddr != 10.0.0.1 accept"),
        ("ip daddr 10.0.0.0/24 accept", "ip daddr 10.0.0.0/25 accept"),
        ("tcp dport 80 accept", "udp dport 80 accept"),
        ("tcp dport 80-81 accept", "tcp dport 80-82 accept"),
        ("numgen random mod 2 vmap { 0 : goto a }", "numgen random mod 3 vmap { 0 : goto a }"),
        ("meta mark 0x1 accept", "meta mark 0x2 accept"),
        ("dnat to 10.0.0.1:80", "dnat to 10.0.0.1:81"),
    ],
)
def test_what_a_rule_means_stays(one: str, other: str) -> None:
    assert certain(one).text != certain(other).text


@pytest.mark.parametrize(
    ("text", "hosts", "ports", "literals"),
    [
        ("ip daddr 10.0.0.1 tcp dport 80 jump a", ("10.0.0.1",), (80,), ()),
        ("ip6 daddr fd00::1 accept", ("fd00::1",), (), ()),
        ("ip daddr != 10.0.0.1 accept", (), (), ()),
        ("ip saddr 10.0.0.1 accept", (), (), ()),
        ("tcp dport != 80 accept", (), (), ()),
        ("tcp dport { 80, 81 } accept", (), (), ()),
        ("tcp sport 80 accept", (), (), ()),
        ("ip daddr 10.0.0.0/8 accept", (), (), ("10.0.0.0/8",)),
        ("ip daddr 10.0.0.1-10.0.0.9 accept", (), (), ("10.0.0.1-10.0.0.9",)),
        ("ip6 daddr fd00::/64 accept", (), (), ("fd00::/64",)),
    ],
)
def test_a_flow_elsewhere_passes_only_what_is_for_one(
    text: str, hosts: tuple[str, ...], ports: tuple[int, ...], literals: tuple[str, ...]
) -> None:
    found = certain(text)
    assert (found.hosts, found.ports, found.literals) == (hosts, ports, literals)
    assert found.is_for_one == bool(hosts or ports)


@pytest.mark.parametrize("text", ["tcp dport { 80, 81 } accept", "tcp dport 80-81 accept"])
def test_numbers_that_may_be_ports_are_told(text: str) -> None:
    assert set(certain(text).asked_ports) & {"80", "80-81"}


FOUR, SIX = Endpoint(IPv4Address("10.0.0.1"), 80), Endpoint(IPv6Address("fd00::1"), 80)


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        ("meta l4proto tcp dnat to 10.0.0.1:80", (FOUR,)),
        ("meta l4proto tcp dnat ip to 10.0.0.1:80", (FOUR,)),
        ("meta l4proto tcp dnat ip6 to [fd00::1]:80", (SIX,)),
        ("dnat ip to numgen random mod 1 map { 0 : 10.0.0.1 . 80 }", (FOUR,)),
        ("ct status dnat masquerade", ()),
        ("icmp type redirect accept", ()),
    ],
)
def test_endpoints_are_those_that_flows_are_sent_to(
    text: str, endpoints: tuple[Endpoint, ...]
) -> None:
    assert certain(text).endpoints == endpoints


@pytest.mark.parametrize(
    "text",
    [
        "dnat to 10.0.0.1",
        "dnat to 10.0.0.1:80-90",
        "dnat to 10.0.0.1-10.0.0.9:80",
        "dnat to ip daddr map @m",
        "dnat ip to numgen random mod 2 map { 0 : 10.0.0.1 . 80, 1 : 10.0.0.2 }",
        "redirect to :80",
        "redirect",
        "tproxy to :80",
        'log prefix "a b" accept',
    ],
)
def test_of_what_is_not_certain_nothing_is_told(text: str) -> None:
    assert rule(text) is None


def test_a_set_that_somebody_is_in_is_like_no_other() -> None:
    assert certain("ip saddr @held accept").tokens == (("name", "held"),)
    assert certain("ip saddr @affinity-x accept").tokens == (("list", "affinity-x"),)


ASKED = """table ip t {
    map one { type ipv4_addr : verdict; }
    map two { type ipv4_addr . inet_proto . inet_service : verdict; }
    map three { type ipv4_addr : verdict; }
    map four { type ipv4_addr . inet_service : verdict; }
    map five { type mark : verdict; }
    chain c {
        ip daddr vmap @one
        ip saddr != 10.0.0.0/8 ip daddr . meta l4proto . th dport vmap @two
        ip saddr vmap @three
        ip daddr . tcp sport vmap @four
        meta mark vmap @five
    }
}
"""
_LEFT = {"payload": {"protocol": "ip", "field": "daddr"}}


def in_json(*keys: object) -> str:
    """Return, as nft lists it in JSON, a chain with rules that ask the maps m0, m1, ... by keys."""
    own = {"family": "ip", "table": "t"}
    rules = [
        {"rule": {**own, "chain": "c", "expr": [{"vmap": {"key": key, "data": f"@m{at}"}}]}}
        for at, key in enumerate(keys)
    ]
    head = [{"table": {"family": "ip", "name": "t"}}, {"chain": {**own, "name": "c"}}]
    return json.dumps({"nftables": [{"metainfo": {"json_schema_version": 1}}, *head, *rules]})


def asked_in(text: str) -> list[str]:
    ruleset = read_ruleset(text.encode(), "dump")
    assert isinstance(ruleset, NftRuleset)
    return list(asked_otherwise(ruleset.tables["ip", "t"].chains["c"]))


def test_maps_that_are_asked_by_more_than_where_flows_are_sent_to() -> None:
    assert asked_in(ASKED) == ["three", "four", "five"]


def test_the_same_in_json() -> None:
    text = in_json(
        _LEFT,
        {"concat": [_LEFT, {"meta": {"key": "l4proto"}}, _payload("th", "dport")]},
        _payload("ip", "saddr"),
        {"concat": [_LEFT, _payload("tcp", "sport")]},
        {"meta": {"key": "mark"}},
    )
    assert asked_in(text) == ["m2", "m3", "m4"]


def _payload(protocol: str, field: str) -> object:
    return {"payload": {"protocol": protocol, "field": field}}


@pytest.mark.parametrize(
    ("text", "hosts", "ports"),
    [
        ("ip daddr 10.0.0.1 tcp dport 80 meta mark set 0x1", ("10.0.0.1",), (80,)),
        ("ip daddr 10.0.0.1 meta mark set 0x1 tcp dport 80 accept", ("10.0.0.1",), ()),
        ("limit rate 1/second ip daddr 10.0.0.1 tcp dport 80 accept", (), ()),
    ],
)
def test_what_stands_behind_an_action_tells_nobody_apart(
    text: str, hosts: tuple[str, ...], ports: tuple[int, ...]
) -> None:
    found = certain(text)
    assert (found.hosts, found.ports) == (hosts, ports)
