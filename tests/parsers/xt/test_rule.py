from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import ParseError
from analyzer.model.diagnostics import Location
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.matches import (
    Match,
    MatchComment,
    MatchDestination,
    MatchFragment,
    MatchInInterface,
    MatchNot,
    MatchOutInterface,
    MatchProtocol,
    MatchRandom,
    MatchSource,
    MatchTcp,
    MatchUdp,
    MatchUnknown,
)
from analyzer.model.iptables.options import Option, Range
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Accept, Drop, Goto, Jump, Return, Target, TargetUnknown
from analyzer.parsers.xt.rule import parse_rule, render_rule
from tests.support.strategies.iptables_matches import MATCHES
from tests.support.strategies.iptables_rules import HERE, kinds_of, rules
from tests.support.strategies.iptables_targets import TARGETS
from tests.support.strategies.iptables_values import comments

NET = IPv4Network("10.0.0.0/8")


def read(words: str, *chains: str) -> Rule:
    return parse_rule(f"-A X {words}", HERE, chains)


@pytest.mark.parametrize(
    ("union", "strategies"), [(m.Match, MATCHES), (t.Target, TARGETS)], ids=["matches", "targets"]
)
def test_every_kind_of_match_and_target_has_its_strategy(union: Any, strategies: Any) -> None:
    assert set(strategies) == kinds_of(union)


@pytest.mark.parametrize("kind", [*MATCHES, *TARGETS], ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_what_is_printed_reads_as_the_same_value(kind: type, data: st.DataObject) -> None:
    drawn = data.draw({**MATCHES, **TARGETS}[kind])
    rule = Rule((drawn,), None, HERE, "") if kind in MATCHES else Rule((), drawn, HERE, "")
    assert_survives(rule)


@given(rules)
def test_a_printed_rule_reads_as_the_same_rule(rule: Rule) -> None:
    assert_survives(rule)


@given(comments)
def test_any_comment_survives(text: str) -> None:
    assert_survives(Rule((MatchComment(text), MatchProtocol("tcp")), Drop(), HERE, ""))


def assert_survives(rule: Rule) -> None:
    line = render_rule("X", rule)
    again = parse_rule(line, HERE, ())
    assert (again.matches, again.target) == (rule.matches, rule.target), line
    assert render_rule("X", again) == line


@pytest.mark.parametrize(
    ("words", "matches"),
    [
        ("-s 10.1.2.3/8", [MatchSource(NET)]),
        ("-d 10.0.0.0/255.0.0.0", [MatchDestination(NET)]),
        ("! -s 10.0.0.0/8", [MatchNot(MatchSource(NET))]),
        ("-s ! 10.0.0.0/8", [MatchNot(MatchSource(NET))]),
        ("! -i lo -o eth+", [MatchNot(MatchInInterface("lo")), MatchOutInterface("eth+")]),
        ("-p TCP", [MatchProtocol("tcp")]),
        ("! -f", [MatchNot(MatchFragment())]),
        ("-4 -f", [MatchFragment()]),
        (
            "--protocol udp --source 10.0.0.0/8 --in-interface lo",
            [MatchProtocol("udp"), MatchSource(NET), MatchInInterface("lo")],
        ),
        (
            "-p tcp --dport 80",
            [MatchProtocol("tcp"), MatchTcp(destination_port=Option(Range(80, 80)))],
        ),
        (
            "-p udp ! --sport 53",
            [MatchProtocol("udp"), MatchUdp(source_port=Option(Range(53, 53), negated=True))],
        ),
        (
            "-m comment --comment x -m made-up --y 1 -p tcp",
            [MatchComment("x"), MatchUnknown("-m made-up --y 1"), MatchProtocol("tcp")],
        ),
        ("-m made-up -m comment --comment x", [MatchUnknown("-m made-up"), MatchComment("x")]),
        ("-s 10.0.0.0/255.0.255.0", [MatchUnknown("-s 10.0.0.0/255.0.255.0")]),
        ("! -s some.name", [MatchNot(MatchUnknown("-s some.name"))]),
        ("--strange option", [MatchUnknown("--strange option")]),
        ("-p tcp -m tcp --new 1", [MatchProtocol("tcp"), MatchUnknown("-m tcp --new 1")]),
        ("-p tcp --new 1", [MatchProtocol("tcp"), MatchUnknown("--new 1")]),
        ("! -p tcp --dport 80", [MatchNot(MatchProtocol("tcp")), MatchUnknown("--dport 80")]),
    ],
)
def test_words_of_a_rule_become_its_matches(words: str, matches: list[Match]) -> None:
    assert list(read(words).matches) == matches


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("", None),
        ("-j ACCEPT", Accept()),
        ("--jump RETURN", Return()),
        ("-j KUBE-SVC", Jump("KUBE-SVC")),
        ("-g KUBE-SVC", Goto("KUBE-SVC")),
        ("--goto KUBE-SVC", Goto("KUBE-SVC")),
        ("-j MISSING", Jump("MISSING")),
        ("-j MIRROR", TargetUnknown("-j MIRROR")),
        ("-j TARPIT --x 1", TargetUnknown("-j TARPIT --x 1")),
        ("-j ACCEPT --new 1", TargetUnknown("-j ACCEPT --new 1")),
        ("-j KUBE-SVC --new", TargetUnknown("-j KUBE-SVC --new")),
    ],
)
def test_words_of_a_rule_become_its_target(words: str, target: Target | None) -> None:
    assert read(words, "KUBE-SVC").target == target


def test_a_declared_chain_goes_before_a_target_of_its_name() -> None:
    assert read("-j MIRROR", "MIRROR").target == Jump("MIRROR")


@pytest.mark.parametrize("line", ["[1:20] -A X -j ACCEPT", "-A X -c 1 20 -j ACCEPT"])
def test_counters_stand_before_the_rule_or_in_it(line: str) -> None:
    rule = parse_rule(line, HERE, ())
    assert (rule.counters, rule.target, rule.matches) == ((1, 20), Accept(), ())


def test_a_rule_keeps_its_line_and_its_place() -> None:
    where = Location("dump", 7)
    rule = parse_rule("-A X  -j ACCEPT", where, ())
    assert (rule.raw, rule.location) == ("-A X  -j ACCEPT", where)


@pytest.mark.parametrize(
    ("words", "message", "at"),
    [
        (
            "-m statistic --mode random --probability 1.1 -j Y",
            "expected a number from 0 to 1",
            "1.1",
        ),
        ("-p tcp -m tcp --dport http -j Y", "expected a port or a range of ports", "http"),
        ("-c one 2", "expected a number of packets or bytes", "one"),
        ('-m comment --comment "open -j Y', "expected a closing quote", '"open -j Y'),
        ("-j", "expected a chain or a target", ""),
        ("-m", "expected the name of a match", ""),
        ("-s", "expected a value", ""),
        ("-m statistic --mode random", "expected --probability", ""),
    ],
)
def test_a_malformed_rule_is_refused_at_its_place(words: str, message: str, at: str) -> None:
    with pytest.raises(ParseError) as caught:
        read(words)
    error = caught.value
    assert error.message == message
    start, end = error.span
    assert error.line[start:end] == at


@pytest.mark.parametrize(
    "words", ["! -m comment --comment x", "! -m statistic --mode random --probability 0.5"]
)
def test_an_exclamation_mark_before_a_match_is_not_lost(words: str) -> None:
    """iptables refuses these; to read them as if the mark were not there would be a guess."""
    affirmed = read(words.removeprefix("! ")).matches
    try:
        negated = read(words).matches
    except ParseError:
        return
    assert negated != affirmed


def test_an_exclamation_mark_before_a_target_is_not_lost() -> None:
    """As above: iptables says "cannot have ! before -j"."""
    try:
        target = read("! -j ACCEPT").target
    except ParseError:
        return
    assert target != Accept()


def test_a_base_port_of_a_dnat_range_is_no_error() -> None:
    """iptables-save 1.8.9 prints it; what we cannot read stays unknown."""
    rule = read("-p tcp -j DNAT --to-destination 10.0.0.1:80-90/5")
    assert render_rule("X", rule) == rule.raw


def test_an_old_negation_with_a_strange_value_is_negated_once() -> None:
    rule = read("-s ! some.name")
    again = parse_rule(render_rule("X", rule), HERE, ())
    assert again.matches == rule.matches


def test_a_rule_without_append_is_refused() -> None:
    with pytest.raises(ParseError, match="expected -A"):
        parse_rule("-j DROP", HERE, ())


def test_a_negated_random_match_keeps_its_digits() -> None:
    line = "-A X -m statistic --mode random ! --probability 0.33333333349 -j Y"
    rule = parse_rule(line, HERE, ())
    assert rule.matches == (MatchNot(MatchRandom(715827883)),)
    assert render_rule("X", rule) == line
