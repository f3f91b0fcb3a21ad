from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest

from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.parsers.nft import statements
from analyzer.parsers.nft.extension import NotUnderstood
from analyzer.parsers.nft.match import is_bits, made

STATE, FLAGS, MARK = e.Ct("state"), e.Payload("tcp", "flags"), e.Meta("mark")
DPORT = e.Payload("tcp", "dport")


def read(text: str) -> s.Match:
    (found,), comment = statements.from_text(text, "ip")
    assert isinstance(found, s.Match), found
    assert comment is None
    return found


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("tcp dport 80", s.Match("==", DPORT, 80)),
        ("tcp dport == 80", s.Match("==", DPORT, 80)),
        ("tcp dport != 80", s.Match("!=", DPORT, 80)),
        ("tcp dport >= 1024", s.Match(">=", DPORT, 1024)),
        ("tcp dport 80-90", s.Match("==", DPORT, e.Range(80, 90))),
        ("tcp dport @ports", s.Match("==", DPORT, e.SetRef("ports"))),
        # Of a field of bits nothing between means: one of these is set.
        ("ct state new", s.Match("in", STATE, "new")),
        ("ct state new,related", s.Match("in", STATE, e.Flags(("new", "related")))),
        ("ct state == new", s.Match("==", STATE, "new")),
        ("ct state ! new", s.Match("!", STATE, "new")),
        ("ct state @states", s.Match("==", STATE, e.SetRef("states"))),
        ("tcp flags syn", s.Match("in", FLAGS, "syn")),
        (
            "tcp flags syn / syn,ack",
            s.Match("==", e.Binary("&", FLAGS, e.Flags(("syn", "ack"))), "syn"),
        ),
        (
            "tcp flags != syn / syn,ack",
            s.Match("!=", e.Binary("&", FLAGS, e.Flags(("syn", "ack"))), "syn"),
        ),
        ("meta mark & 1 == 1", s.Match("==", e.Binary("&", MARK, 1), 1)),
        ("ct expiration 1m", s.Match("==", e.Ct("expiration"), 60)),
    ],
)
def test_a_match_is_read_and_written(text: str, match: s.Match) -> None:
    assert read(text) == match
    assert read(statements.write(match)) == match


@pytest.mark.parametrize(
    ("match", "text"),
    [
        (s.Match("==", DPORT, 80), "tcp dport 80"),
        (s.Match("in", STATE, "new"), "ct state new"),
        (s.Match("==", STATE, "new"), "ct state == new"),
        (s.Match("==", e.Binary("&", MARK, 1), 1), "meta mark & 1 == 1"),
        (
            s.Match("!=", e.Binary("&", FLAGS, e.Flags(("syn", "ack"))), "syn"),
            "tcp flags != syn / syn,ack",
        ),
    ],
)
def test_a_sign_is_left_out_where_nft_leaves_it_out(match: s.Match, text: str) -> None:
    assert statements.write(match) == text


@pytest.mark.parametrize(
    ("left", "bits"),
    [
        (STATE, True),
        (e.Ct("status"), True),
        (FLAGS, True),
        (e.Ct("mark"), False),
        (DPORT, False),
        (MARK, False),
    ],
)
def test_states_and_flags_are_fields_of_bits(left: e.Expression, bits: bool) -> None:
    assert is_bits(left) is bits


@pytest.mark.parametrize(
    "left", [80, "tcp", IPv4Address("10.0.0.1"), e.SetRef("s"), e.Range(1, 2), e.Wildcard()]
)
def test_a_constant_is_not_compared(left: e.Expression) -> None:
    with pytest.raises(NotUnderstood):
        made("==", left, 1)


def of_json(**body: Any) -> s.Statement:
    (found,) = statements.from_json([{"match": body}], "ip")
    return found


PORT = {"payload": {"protocol": "tcp", "field": "dport"}}


@pytest.mark.parametrize("operator", ["==", "!=", "<", ">", "<=", ">=", "in", "!"])
def test_json_says_its_operator(operator: str) -> None:
    assert of_json(op=operator, left=PORT, right=80) == s.Match(operator, DPORT, 80)


@pytest.mark.parametrize(
    "body",
    [
        {"op": "=~", "left": PORT, "right": 80},
        {"left": PORT, "right": 80},
        {"op": "==", "left": 80, "right": 80},
        {"op": "==", "left": PORT, "right": 80, "more": 1},
        {"op": "==", "left": PORT},
    ],
)
def test_other_json_is_not_understood(body: dict[str, Any]) -> None:
    assert isinstance(of_json(**body), e.Unknown)


def test_a_class_without_a_name_is_a_number_although_json_prints_a_string() -> None:
    rtclassid = {"meta": {"key": "rtclassid"}}
    assert of_json(op="==", left=rtclassid, right="7") == s.Match("==", e.Meta("rtclassid"), 7)
    assert of_json(op="==", left={"meta": {"key": "iifname"}}, right="7") == (
        s.Match("==", e.Meta("iifname"), "7")
    )
