"""What a row tells of its rule without being understood is true of the rule."""

from __future__ import annotations

from collections.abc import Container
from ipaddress import ip_address

import pytest
from hypothesis import given

from analyzer.model.addresses import address_to_text
from analyzer.model.diagnostics import Location
from analyzer.model.iptables.matches import MatchDestination, MatchSctp, MatchTcp, MatchUdp
from analyzer.model.iptables.options import Option, Range
from analyzer.model.iptables.rules import LazyRules, Rule
from analyzer.parsers.iptables_save import parse
from analyzer.parsers.rows import SlicedRows
from analyzer.parsers.xt.rule import parse_rule, render_rule
from tests.support.captures import ROOT
from tests.support.strategies.iptables_rules import HERE, rules


def keys(*lines: str) -> list[tuple[str | None, int | None]]:
    text = "\n".join(["*nat", ":X - [0:0]", *lines, "COMMIT", ""])
    found = parse(text, "dump").tables["nat"].chains["X"].rules
    assert isinstance(found, LazyRules)
    return found.keys()


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("-d 10.0.0.1/32 -p tcp -m tcp --dport 80 -j ACCEPT", ("10.0.0.1", 80)),
        ("-s 1.2.3.4/32 -d 10.0.0.1/32 -j ACCEPT", ("10.0.0.1", None)),
        ("! -s 1.2.3.0/24 -d 10.0.0.1/32 -j ACCEPT", ("10.0.0.1", None)),
        ("-d fd00:0:0::1/128 -j ACCEPT", ("fd00::1", None)),
        ('-p udp -m comment --comment "a b" -m udp --dport 53 -j ACCEPT', (None, 53)),
        ("! -d 10.0.0.1/32 -j ACCEPT", (None, None)),
        ("! -d 10.0.0.1/32 -p tcp -m tcp --dport 80 -j ACCEPT", (None, 80)),
        ("-d 127.0.0.0/8 -p tcp -m tcp --dport 80 -j ACCEPT", (None, 80)),
        ("-p tcp -m addrtype --dst-type LOCAL -m tcp --dport 80 -j ACCEPT", (None, 80)),
        ("-d 10.0.0.0/24 -j ACCEPT", (None, None)),
        ("-d 010.0.0.1/32 -j ACCEPT", (None, None)),
        ("-p tcp -m tcp ! --dport 80 -j ACCEPT", (None, None)),
        ("-p tcp -m tcp --dport 80:90 -j ACCEPT", (None, None)),
        ("-p tcp -m tcp --sport 1 --dport 80 -j ACCEPT", (None, None)),
        ('-m comment --comment "-d 10.0.0.1/32 " -j ACCEPT', (None, None)),
        ('-p tcp -m comment --comment "x\\" -m tcp --dport 80 -j" -j ACCEPT', (None, None)),
        ("-j ACCEPT", (None, None)),
    ],
)
def test_a_row_says_what_its_rule_asks_for(words: str, key: tuple[str | None, int | None]) -> None:
    assert keys(f"-A X {words}") == [key]
    assert keys(f"[1:2] -A X {words}") == [key]


@given(rules)
def test_what_a_row_says_its_rule_asks_for(rule: Rule) -> None:
    (key,) = keys(render_rule("X", rule))
    host, port = key
    if host is not None:
        networks = [m.network for m in rule.matches if isinstance(m, MatchDestination)]
        assert ip_address(host) in networks[0]
        assert {n.num_addresses for n in networks[:1]} == {1}
        assert address_to_text(networks[0].network_address) == host
    if port is not None:
        asked = [m for m in rule.matches if isinstance(m, MatchTcp | MatchUdp | MatchSctp)]
        assert Option(Range(port, port)) in [m.destination_port for m in asked]


@pytest.mark.parametrize("name", ["base", "docker", "ufw", "csf"])
def test_each_chain_knows_the_line_that_declares_it(name: str) -> None:
    """Also where several tables have a chain of that name."""
    path = ROOT / "fixtures" / "noise" / f"{name}.txt"
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    found = 0
    for table in parse(text, "dump").tables.values():
        begins = lines.index(f"*{table.name}")
        ends = lines.index("COMMIT", begins)
        for chain in table.chains.values():
            assert isinstance(chain.rules, SlicedRows)
            declared = chain.rules.declared
            assert declared is not None
            assert begins < declared.line - 1 < ends
            assert lines[declared.line - 1].startswith(f":{chain.name} ")
            found += 1
    assert found > 20


@pytest.mark.parametrize("before", ["", "$ iptables-save\n"], ids=["whole", "line by line"])
def test_of_many_rows_alike_few_are_parsed(before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyzer.parsers.rows._FEW", 20)
    lines = [f"-A X -d 10.0.0.{at}/32 -j ACCEPT\n" for at in range(60)]
    text = f"{before}*nat\n:X - [0:0]\n{''.join(lines)}COMMIT\n"
    want = [parse_rule(line[:-1], HERE, ()).matches for line in lines]
    counted: list[str] = []

    def parsed(line: str, location: Location, chains: Container[str]) -> Rule:
        counted.append(line)
        return parse_rule(line, location, chains)

    monkeypatch.setattr("analyzer.parsers.xt.rule.parse_rule", parsed)
    monkeypatch.setattr("analyzer.parsers.xt.row_shapes.parse_rule", parsed)
    found = parse(text, "dump").tables["nat"].chains["X"].rules
    assert [rule.matches for rule in found] == want
    assert 20 < len(counted) < 30
