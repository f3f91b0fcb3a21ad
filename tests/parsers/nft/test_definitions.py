from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import Flowtable, NamedObject, Set
from analyzer.parsers.nft.definitions import (
    priority,
    quota_properties,
    read_flowtable,
    read_object,
    read_set,
    unquoted,
)
from analyzer.parsers.nft.extension import NotUnderstood


@pytest.mark.parametrize(
    ("text", "family", "number"),
    [
        ("dstnat", "ip", -100),
        ("dstnat - 10", "ip", -110),
        ("dstnat-10", "ip", -110),
        ("dstnat + 5", "bridge", -295),
        ("filter", "inet", 0),
        ("0", "ip", 0),
        ("-150", "ip", -150),
        (" 100 ", "ip", 100),
        ("later", "ip", None),
        ("dstnat 10", "ip", None),
        ("", "ip", None),
        ("- ", "ip", None),
    ],
)
def test_a_priority_is_a_name_a_number_or_both(text: str, family: str, number: int | None) -> None:
    assert priority(text, family) == number


def test_a_set_is_read_line_by_line() -> None:
    lines = [
        "type ipv4_addr . inet_service",
        "policy memory",
        "size 65535",
        "flags dynamic,timeout",
        "auto-merge",
        "counter",
        "timeout 3h",
        "gc-interval 10s",
        'comment "clients"',
        "elements = { 10.0.0.1 . 80 }",
    ]
    found = read_set("s", "ip", lines)
    assert tuple(found.elements) == (e.Element(key=e.Concat((IPv4Address("10.0.0.1"), 80))),)
    assert found == Set(
        name="s",
        key=("ipv4_addr", "inet_service"),
        flags=("dynamic", "timeout"),
        timeout=10_800,
        gc_interval=10,
        size=65_535,
        policy="memory",
        auto_merge=True,
        statements=(s.Counter(),),
        comment="clients",
        elements=tuple(found.elements),
    )


def test_a_map_has_a_type_of_values() -> None:
    found = read_set("m", "ip", ["type ipv4_addr . inet_proto : verdict"])
    assert (found.key, found.value) == (("ipv4_addr", "inet_proto"), ("verdict",))


def test_a_type_may_be_that_of_an_expression() -> None:
    found = read_set("m", "ip", ["typeof ip daddr . th dport : meta mark"])
    assert (found.key, found.value) == (("ipv4_addr", "inet_service"), ("mark",))
    assert found.typeof == (
        (e.Payload("ip", "daddr"), e.Payload("th", "dport")),
        (e.Meta("mark"),),
    )


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["size many", "type mark"],
        ["type mark", "colour green"],
        ["type mark", "elements = { 1"],
        ["type mark", "counter drop"],
        ["type mark", "timeout soon"],
    ],
)
def test_a_set_with_a_line_that_nft_does_not_print_is_not_understood(lines: list[str]) -> None:
    with pytest.raises(NotUnderstood):
        read_set("s", "ip", lines)


def test_elements_with_a_quote_that_is_never_closed_are_unknown() -> None:
    found = read_set("s", "ip", ["type ifname", 'elements = { "eth0 }'])
    assert [each.key for each in found.elements] == [e.Unknown(' "eth0 ')]


@pytest.mark.parametrize(
    ("kind", "lines", "properties"),
    [
        ("counter", ["packets 3 bytes 180"], (("packets", 3), ("bytes", 180))),
        ("quota", ["25 mbytes"], (("bytes", 26_214_400), ("used", 0), ("over", False))),
        ("quota", ["over 1 kbytes used 5 bytes"], (("bytes", 1_024), ("used", 5), ("over", True))),
        (
            "ct helper",
            ['type "ftp" protocol tcp', "l3proto ip"],
            (("type", "ftp"), ("protocol", "tcp"), ("l3proto", "ip")),
        ),
        ("synproxy", ["mss 1460", "wscale 7"], (("text", "mss 1460"), ("text", "wscale 7"))),
    ],
)
def test_a_named_object_says_what_it_keeps(
    kind: str, lines: list[str], properties: tuple[tuple[str, e.Constant], ...]
) -> None:
    found = read_object(kind, "x", "ip", ['comment "why"', *lines])
    assert found == NamedObject(kind=kind, name="x", properties=properties, comment="why")


def test_a_limit_keeps_its_rate_and_burst() -> None:
    found = dict(
        read_object("limit", "x", "ip", ["rate over 10/minute burst 3 packets"]).properties
    )
    assert (found["rate"], found["per"], found["burst"], found["over"]) == (10, "minute", 3, True)


def test_an_object_with_another_line_is_not_understood() -> None:
    with pytest.raises(NotUnderstood):
        read_object("counter", "x", "ip", ["octets 3"])


def test_a_quota_is_told_in_bytes() -> None:
    quota = s.Quota(amount=2, unit="kbytes", used=1, used_unit="mbytes", over=True)
    assert quota_properties(quota) == [("bytes", 2_048), ("used", 1_048_576), ("over", True)]


def test_a_flowtable_has_hook_priority_and_devices() -> None:
    lines = ["hook ingress priority filter + 1", 'devices = { "eth0", eth1 }']
    assert read_flowtable("f", "inet", lines) == Flowtable(
        name="f", hook="ingress", priority=1, devices=("eth0", "eth1")
    )
    assert read_flowtable("f", "inet", []) == Flowtable(name="f")


def test_quotes_around_a_text_are_taken_away() -> None:
    assert [unquoted(text) for text in ('"a b"', " x ")] == ["a b", "x"]
