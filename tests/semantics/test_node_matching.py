"""Matches that ask about the node: what is assumed decides them, and an answer tells of it."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

import pytest

from analyzer.model.iptables import matches as m
from analyzer.model.iptables.options import Range
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumed import BY_NAME, DEFAULTS, Assumed
from analyzer.semantics.iptables.matching import evaluate_match
from analyzer.semantics.situation import Situation

NODE, SERVICE, POD = map(ip_address, ("172.16.0.1", "10.2.3.4", "10.1.0.2"))
PACKET: Final = Packet(protocol="tcp", source=POD, destination=SERVICE, in_interface="eth0")
TRUE, FALSE, UNKNOWN = Ternary.TRUE, Ternary.FALSE, Ternary.UNKNOWN


@pytest.mark.parametrize(
    ("match", "name", "by_value"),
    [
        (m.MatchRpfilter(), "reverse-path", {"pass": TRUE, "fail": FALSE}),
        (m.MatchRpfilter(loose=True), "reverse-path", {"pass": TRUE, "fail": FALSE}),
        (m.MatchRpfilter(invert=True), "reverse-path", {"pass": FALSE, "fail": TRUE}),
        (m.MatchPolicy(direction="in", policy="ipsec"), "policy", {"none": FALSE}),
        (m.MatchPolicy(direction="out", policy="none"), "policy", {"none": TRUE}),
        (m.MatchSocket(no_wildcard=True), "socket", {"none": FALSE}),
        (m.MatchNot(m.MatchSocket()), "socket", {"none": TRUE}),
        (m.MatchLimit(100), "limits", {"under": TRUE, "over": FALSE}),
        (m.MatchHashlimit(name="x", above="1/sec"), "limits", {"under": FALSE, "over": TRUE}),
        (m.MatchConnlimit(above=9, mask=32), "limits", {"under": FALSE, "over": TRUE}),
        (m.MatchConnlimit(up_to=9), "limits", {"under": TRUE, "over": FALSE}),
        (m.MatchTcpmss(Range(536, 65535)), "segment-size", {"usual": TRUE}),
        (m.MatchNot(m.MatchTcpmss(Range(500, 65535))), "segment-size", {"usual": FALSE}),
        (m.MatchTcpmss(Range(1, 535)), "segment-size", {"usual": FALSE}),
    ],
)
def test_a_match_is_what_is_assumed_and_that_is_told(
    match: m.Match, name: str, by_value: dict[str, Ternary]
) -> None:
    assert set(by_value) == set(BY_NAME[name].sentences)
    for of, want in by_value.items():
        assumed = Assumed({name: of})
        situation = Situation(local_addresses=frozenset({NODE}), assumed=assumed)
        assert assumed.sentences() == ()
        assert evaluate_match(match, PACKET, situation).known is want
        assert assumed.sentences() == (BY_NAME[name].sentences[of],)
    for nothing in (None, Assumed(), Assumed({name: "unknown"})):
        situation = Situation(local_addresses=frozenset({NODE}), assumed=nothing)
        assert evaluate_match(match, PACKET, situation).known is UNKNOWN
        assert nothing is None or nothing.sentences() == ()


@pytest.mark.parametrize("value", ["pass", "fail", "unknown"])
def test_of_what_comes_back_by_loopback_the_kernel_does_not_ask(value: str) -> None:
    assumed = Assumed({"reverse-path": value})
    back = Packet(in_interface="lo")
    for match, want in ((m.MatchRpfilter(), TRUE), (m.MatchRpfilter(invert=True), FALSE)):
        assert evaluate_match(match, back, Situation(assumed=assumed)).known is want
    assert assumed.used == set()


def test_a_socket_may_wait_for_what_goes_to_the_node() -> None:
    assumed = Assumed(DEFAULTS)
    situation = Situation(local_addresses=frozenset({NODE}), assumed=assumed)
    assert evaluate_match(m.MatchSocket(), Packet(destination=NODE), situation).known is UNKNOWN
    assert evaluate_match(m.MatchSocket(), Packet(to_node=True), situation).known is UNKNOWN
    assert evaluate_match(m.MatchSocket(), PACKET, Situation(assumed=assumed)).known is UNKNOWN
    assert assumed.used == set()


def test_of_an_mss_nothing_more_is_assumed() -> None:
    usual = Assumed({"segment-size": "usual"})
    for low, high in ((537, 65535), (1, 536), (1361, 1536), (536, 65534)):
        match = m.MatchTcpmss(Range(low, high))
        assert evaluate_match(match, PACKET, Situation(assumed=usual)).known is UNKNOWN
    match = m.MatchTcpmss(Range(536, 65535))
    later = Situation(state="ESTABLISHED", assumed=usual)
    assert (
        evaluate_match(match, PACKET, later).known is UNKNOWN
    )  # only what begins a connection has one
    assert usual.used == set()
    assert evaluate_match(match, replace(PACKET, is_answer=True), later).known is TRUE
