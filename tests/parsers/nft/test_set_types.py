from __future__ import annotations

import pytest

from analyzer.model.nft import expressions as e
from analyzer.parsers.nft.extension import NotUnderstood
from analyzer.parsers.nft.set_types import type_of, typeof, types


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ipv4_addr", ("ipv4_addr",)),
        ("ipv4_addr . inet_proto . inet_service", ("ipv4_addr", "inet_proto", "inet_service")),
        ("interval ipv4_addr", ("ipv4_addr",)),
    ],
)
def test_a_type_has_one_part_for_each_of_a_concatenation(text: str, parts: tuple[str, ...]) -> None:
    assert types(text) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ip daddr", (e.Payload("ip", "daddr"),)),
        ("meta l4proto . th dport", (e.Meta("l4proto"), e.Payload("th", "dport"))),
        ("interval ip saddr", (e.Payload("ip", "saddr"),)),
        ("verdict", ("verdict",)),
    ],
)
def test_typeof_names_expressions(text: str, parts: tuple[e.Expression, ...]) -> None:
    assert typeof(text, "ip") == parts


@pytest.mark.parametrize("text", ["ip daddr accept", "meta colour", ""])
def test_other_text_is_no_typeof(text: str) -> None:
    with pytest.raises(NotUnderstood):
        typeof(text, "ip")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (e.Payload("ip", "saddr"), "ipv4_addr"),
        (e.Payload("ip6", "daddr"), "ipv6_addr"),
        (e.Payload("ether", "saddr"), "ether_addr"),
        (e.Payload("ether", "type"), "ether_type"),
        (e.Payload("th", "dport"), "inet_service"),
        (e.Payload("udp", "sport"), "inet_service"),
        (e.Payload("ip", "protocol"), "inet_proto"),
        (e.Payload("ip6", "nexthdr"), "inet_proto"),
        (e.Payload("icmpv6", "code"), "icmpv6_code"),
        (e.Payload("tcp", "flags"), "tcp_flag"),
        (e.Payload("ip", "dscp"), "dscp"),
        (e.Payload("ip", "ttl"), "integer"),
        (e.Meta("mark"), "mark"),
        (e.Meta("iifname"), "ifname"),
        (e.Meta("iif"), "iface_index"),
        (e.Meta("cpu"), "integer"),
        (e.Ct("state"), "ct_state"),
        (e.Ct("ip daddr", "original"), "ipv4_addr"),
        (e.Ct("bytes"), "integer"),
        (e.Fib("type", ("daddr",)), "fib_addrtype"),
        (e.Fib("oif", ("daddr",)), "integer"),
        ("verdict", "verdict"),
        (e.Numgen("random", 2), "integer"),
    ],
)
def test_an_expression_has_the_type_of_what_it_gives(given: e.Expression, kind: str) -> None:
    assert type_of(given) == kind
