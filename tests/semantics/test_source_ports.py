"""Source ports that nobody has named: those of new flows are assumed to be ephemeral."""

from __future__ import annotations

from typing import Final

import pytest

from analyzer.model.iptables.matches import Match, MatchMultiport, MatchNot, MatchTcp, MatchUdp
from analyzer.model.iptables.options import Option, Range
from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.parsers.nft_text import parse
from analyzer.semantics.assumed import DEFAULTS, SOURCE_PORT, Assumed
from analyzer.semantics.base_chains import before_conntrack
from analyzer.semantics.iptables.matching import evaluate_match
from analyzer.semantics.nft.matching import Lookups
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.situation import Situation
from tests.support.odds import bounds

TRUE, FALSE, UNKNOWN = Ternary.TRUE, Ternary.FALSE, Ternary.UNKNOWN
SENT: Final = Packet(protocol="tcp", destination_port=80)
DNS: Final = Option(Range(53, 53))
LIST: Final = (Range(53, 53), Range(8080, 8090))

ROWS: Final = [
    (MatchTcp(source_port=DNS), FALSE),
    (MatchTcp(source_port=replace(DNS, negated=True)), TRUE),
    (MatchTcp(source_port=Option(Range(32767, 32768))), UNKNOWN),
    (MatchTcp(source_port=Option(Range(1024, 65535))), TRUE),
    (MatchTcp(source_port=Option(Range(0, 65535))), TRUE),
    (MatchTcp(source_port=Option(Range(40000, 40000))), UNKNOWN),
    (MatchUdp(source_port=Option(Range(40000, 40000))), FALSE),
    (MatchMultiport(source_ports=Option(LIST)), FALSE),
    (MatchNot(MatchMultiport(source_ports=Option(LIST))), TRUE),
    (MatchMultiport(source_ports=Option((*LIST, Range(50000, 50000)))), UNKNOWN),
    (MatchMultiport(ports=Option(LIST)), FALSE),
    (MatchMultiport(ports=Option((*LIST, Range(80, 80)))), TRUE),
]


@pytest.mark.parametrize(("match", "wanted"), ROWS)
def test_rules_of_iptables_for_other_ports_match_no_new_flow(match: Match, wanted: Ternary) -> None:
    assumed = Assumed(DEFAULTS)
    for situation in (Situation(assumed=assumed), before_conntrack(Situation(assumed=assumed))):
        assert evaluate_match(match, SENT, situation).known is wanted
    said = assumed.sentences()
    whole = isinstance(match, MatchTcp) and match.source_port == Option(Range(0, 65535))
    is_told = wanted is not UNKNOWN and not isinstance(match, MatchUdp) and not whole
    of_both = isinstance(match, MatchMultiport) and match.ports is not None
    assert (any("ephemeral" in each for each in said)) is is_told or of_both


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("tcp sport 53", FALSE),
        ("tcp sport != 53", TRUE),
        ("th sport { 53, 8080 }", FALSE),
        ("tcp sport 32768-65535", TRUE),
        ("tcp sport >= 32768", TRUE),
        ("tcp sport < 40000", UNKNOWN),
        ("tcp sport . tcp dport { 53 . 80 }", FALSE),
        ("tcp sport . tcp dport { 40000 . 80 }", UNKNOWN),
        ("udp sport 40000", FALSE),
        ("tcp sport & 0x8000 == 0x8000", TRUE),
        ("tcp sport & 0x8000 == 0", FALSE),
    ],
)
def test_rules_of_nft_for_other_ports_match_no_new_flow(rule: str, wanted: Ternary) -> None:
    text = f"table ip t {{\n\tchain c {{\n\t\t{rule} accept\n\t}}\n}}\n"
    (table,) = parse(text, "dump").tables.values()
    asked = table.chains["c"].rules[0].statements[0]
    assumed = Assumed(DEFAULTS)
    found = Lookups(table, "ip", Situation(assumed=assumed)).evaluate(asked, SENT)  # type: ignore[arg-type]  # a comparison
    assert found.known is wanted
    assert (SOURCE_PORT in assumed.used) is (wanted is not UNKNOWN and "udp" not in rule)


@pytest.mark.parametrize(
    ("packet", "situation"),
    [
        (SENT, Situation()),
        (SENT, Situation(assumed=Assumed({SOURCE_PORT: "unknown"}))),
        (SENT, Situation(state="ESTABLISHED", assumed=Assumed(DEFAULTS))),
        (SENT, before_conntrack(Situation(state="ESTABLISHED", assumed=Assumed(DEFAULTS)))),
        (replace(SENT, masqueraded=True), Situation(assumed=Assumed(DEFAULTS))),
        (replace(SENT, masqueraded=None), Situation(assumed=Assumed(DEFAULTS))),
        (replace(SENT, is_port_own=False), Situation(assumed=Assumed(DEFAULTS))),
    ],
)
def test_of_answers_and_of_what_nat_rewrote_nothing_is_assumed(
    packet: Packet, situation: Situation
) -> None:
    assert evaluate_match(MatchTcp(source_port=DNS), packet, situation).known is UNKNOWN
    assert situation.assumed is None or not situation.assumed.used


def test_a_port_that_is_known_is_that_port() -> None:
    assumed = Assumed(DEFAULTS)
    known = replace(SENT, source_port=53)
    assert (
        evaluate_match(MatchTcp(source_port=DNS), known, Situation(assumed=assumed)).known is TRUE
    )
    assert not assumed.used


@pytest.mark.parametrize(
    "changes",
    [
        "tcp sport set tcp dport map @m",
        "@th,0,16 set 53",
        "tcp sport set 53",
    ],
)
def test_of_a_port_that_was_written_over_nothing_is_assumed(changes: str) -> None:
    text = f"table ip t {{\n\tchain c {{\n\t\t{changes}\n\t\ttcp sport 53 drop\n\t}}\n}}\n"
    (table,) = parse(text, "dump").tables.values()
    tree = NftTraversal(table, "ip", Situation(assumed=Assumed(DEFAULTS))).tree("c", SENT)
    assert bounds(tree, lambda leaf: isinstance(leaf.outcome, Drop)).upper == ALWAYS


def test_a_mark_that_is_made_of_a_port_rests_on_what_is_assumed_of_it() -> None:
    rules = "meta mark set tcp sport\n\t\tmeta mark & 0x8000 == 0 drop"
    (table,) = parse(
        f"table ip t {{\n\tchain c {{\n\t\t{rules}\n\t}}\n}}\n", "dump"
    ).tables.values()
    assumed = Assumed(DEFAULTS)
    tree = NftTraversal(table, "ip", Situation(assumed=assumed)).tree("c", SENT)
    assert bounds(tree, lambda leaf: isinstance(leaf.outcome, Drop)).upper == NEVER
    assert SOURCE_PORT in assumed.used
