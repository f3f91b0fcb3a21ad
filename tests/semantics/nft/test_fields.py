from __future__ import annotations

from ipaddress import IPv4Address, ip_address
from typing import Final

import pytest

from analyzer.model.bits import ANY, Bits
from analyzer.model.nft import expressions as e
from analyzer.model.nft import names
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.nft.fields import constant_number, number, read
from analyzer.semantics.nft.values import Draw, Type, Value
from analyzer.semantics.situation import Situation
from tests.support.nft.packets import (
    BACK,
    BEFORE,
    BLANK,
    HAZY,
    HERE,
    HIDDEN,
    LATER,
    LOST,
    MARKED,
    NODE,
    PACKET,
    PING,
    PING6,
    POD,
    SENT,
    SERVICE,
    SIX,
    UDP,
)

TRUE, FALSE, UNKNOWN = Ternary.TRUE, Ternary.FALSE, Ternary.UNKNOWN
PORT: Final = e.Payload("tcp", "dport")
#: Bits of a flow's status that no listing of nft names.
NAMELESS: Final = 0xFFFFFFFF & ~sum(names.CT_STATUSES.values())


def held(
    given: e.Expression, packet: Packet = PACKET, situation: Situation = HERE
) -> tuple[Ternary, Value]:
    source = packet.source or packet.destination
    found = read(given, packet, "ip6" if source and source.version == 6 else "ip", situation)
    return found.applies, found.held


@pytest.mark.parametrize(
    ("given", "packet", "want"),
    [
        (e.Payload("ip", "daddr"), PACKET, (TRUE, Bits(int(SERVICE)))),
        (e.Payload("ip", "saddr"), PACKET, (TRUE, Bits(int(POD)))),
        (e.Payload("ip", "daddr"), BLANK, (TRUE, ANY)),
        (e.Payload("ip", "daddr"), SIX, (FALSE, ANY)),
        (e.Payload("ip6", "daddr"), SIX, (TRUE, Bits(int(ip_address("fd00:2::4"))))),
        (e.Payload("ip", "protocol"), UDP, (TRUE, Bits(17))),
        (e.Payload("ip", "protocol"), replace(PACKET, protocol="132"), (TRUE, Bits(132))),
        (e.Payload("ip", "protocol"), replace(PACKET, protocol="odd"), (TRUE, ANY)),
        (e.Payload("ip", "version"), PACKET, (TRUE, Bits(4))),
        (e.Payload("ip6", "version"), SIX, (TRUE, Bits(6))),
        (e.Payload("ip", "ttl"), PACKET, (TRUE, ANY)),
        (PORT, PACKET, (TRUE, Bits(80))),
        (PORT, UDP, (FALSE, Bits(53))),
        (PORT, BLANK, (UNKNOWN, ANY)),
        (e.Payload("th", "dport"), UDP, (TRUE, Bits(53))),
        (e.Payload("th", "sport"), UDP, (TRUE, Bits(40_000))),
        # Other protocols have something where ports would stand.
        (e.Payload("th", "dport"), PING, (TRUE, ANY)),
        (e.Payload("th", "dport"), replace(UDP, protocol="gre"), (TRUE, ANY)),
        (e.RawPayload("nh", 128, 32), PACKET, (TRUE, Bits(int(SERVICE)))),
        (e.RawPayload("nh", 128, 32), SIX, (UNKNOWN, ANY)),
        (e.RawPayload("nh", 192, 128), SIX, (TRUE, Bits(int(ip_address("fd00:2::4"))))),
        (e.RawPayload("th", 16, 16), PACKET, (TRUE, Bits(80))),
        (e.RawPayload("th", 0, 32), PACKET, (UNKNOWN, ANY)),
        (e.Payload("icmp", "type"), PING, (TRUE, Bits(8))),
        (e.Payload("icmp", "code"), PING, (TRUE, Bits(0))),
        (e.Payload("icmp", "id"), PING, (TRUE, ANY)),
        (e.Payload("icmp", "type"), PACKET, (FALSE, ANY)),
        (e.Payload("icmpv6", "type"), PING6, (TRUE, Bits(128))),
        (e.Payload("icmpv6", "type"), PING, (FALSE, Bits(8))),
        (e.Payload("ah", "spi"), PACKET, (FALSE, ANY)),
        (e.Payload("ether", "type"), PACKET, (UNKNOWN, ANY)),
    ],
)
def test_a_header_that_a_packet_has_not_yields_nothing(
    given: e.Expression, packet: Packet, want: tuple[Ternary, Value]
) -> None:
    assert held(given, packet) == want


def test_the_first_packet_of_tcp_is_a_syn_of_which_urg_and_ecn_are_open() -> None:
    open_ = sum(names.TCP_FLAGS[word] for word in ("psh", "urg", "ecn", "cwr"))
    flags = e.Payload("tcp", "flags")
    assert held(flags) == (TRUE, Bits(names.TCP_FLAGS["syn"], open_))
    assert held(flags, situation=LATER) == (TRUE, ANY)
    assert held(flags, UDP)[0] is FALSE


@pytest.mark.parametrize(
    ("key", "packet", "want"),
    [
        ("mark", MARKED, Bits(0x4001)),
        ("mark", HAZY, Bits(0x4000, 1)),
        ("l4proto", PACKET, Bits(6)),
        ("l4proto", PING6, Bits(58)),
        ("nfproto", PACKET, Bits(2)),
        ("nfproto", SIX, Bits(10)),
        ("protocol", PACKET, Bits(0x0800)),
        ("protocol", SIX, Bits(0x86DD)),
        ("iifname", PACKET, "eth0"),
        ("oifname", PACKET, ""),
        ("iifname", BLANK, None),
        ("random", PACKET, Draw(1 << 32)),
    ],
)
def test_meta_knows_the_packet(key: str, packet: Packet, want: Value) -> None:
    assert held(e.Meta(key), packet) == (TRUE, want)


def test_only_a_packet_made_here_may_have_a_socket() -> None:
    made_here = replace(HERE, flow=replace(PACKET, in_interface=""))
    assert held(e.Meta("skuid"))[0] is FALSE
    assert held(e.Meta("skuid"), situation=made_here)[0] is UNKNOWN
    assert held(e.Meta("skuid"), situation=replace(HERE, flow=None))[0] is UNKNOWN


@pytest.mark.parametrize(
    ("given", "packet", "situation", "want"),
    [
        (e.Ct("state"), PACKET, HERE, (TRUE, Bits(8))),
        (e.Ct("state"), PACKET, LATER, (TRUE, Bits(2))),
        (e.Ct("state"), PACKET, BEFORE, (TRUE, Bits(1))),
        (e.Ct("state"), LOST, HERE, (TRUE, Bits(64))),
        (e.Ct("state"), replace(PACKET, tracked=None), HERE, (TRUE, ANY)),
        (e.Ct("mark"), MARKED, HERE, (TRUE, Bits(2))),
        # Without an entry there is nothing but the state.
        (e.Ct("mark"), replace(MARKED, tracked=False), HERE, (FALSE, Bits(2))),
        (e.Ct("mark"), MARKED, BEFORE, (FALSE, Bits(2))),
        (e.Ct("mark"), replace(MARKED, tracked=None), HERE, (UNKNOWN, Bits(2))),
        (e.Ct("direction"), PACKET, HERE, (TRUE, Bits(0))),
        (e.Ct("direction"), PACKET, LATER, (TRUE, ANY)),
        (e.Ct("protocol"), UDP, HERE, (TRUE, Bits(17))),
        (e.Ct("ip daddr", "original"), SENT, HERE, (TRUE, Bits(int(SERVICE)))),
        (e.Ct("ip saddr", "reply"), SENT, HERE, (TRUE, Bits(int(POD)))),
        (e.Ct("ip daddr", "reply"), HIDDEN, HERE, (TRUE, ANY)),
        (e.Ct("proto-dst", "original"), SENT, HERE, (TRUE, Bits(80))),
        (e.Ct("proto-src", "reply"), SENT, HERE, (TRUE, Bits(53))),
        (e.Ct("ip6 daddr", "original"), SENT, HERE, (FALSE, ANY)),
        (e.Ct("ip daddr", "original"), SENT, LATER, (TRUE, ANY)),
    ],
)
def test_conntrack_knows_the_flow(
    given: e.Expression, packet: Packet, situation: Situation, want: tuple[Ternary, Value]
) -> None:
    assert held(given, packet, situation) == want


@pytest.mark.parametrize(
    ("packet", "status"),
    [
        (PACKET, Bits(0, NAMELESS)),
        (SENT, Bits(32, NAMELESS)),
        (replace(PACKET, translated=None), Bits(0, NAMELESS | 32)),
        # A source may be masqueraded as what it was, which does not count as changed.
        (replace(PACKET, masqueraded=True), Bits(0, NAMELESS | 16)),
        (BACK, Bits(8, NAMELESS)),
    ],
)
def test_the_status_of_a_new_flow_tells_its_translations(packet: Packet, status: Bits) -> None:
    assert held(e.Ct("status"), packet) == (TRUE, status)


@pytest.mark.parametrize(
    ("flags", "local"),
    [
        (("daddr",), FALSE),
        (("saddr",), TRUE),
        (("saddr", "iif"), UNKNOWN),
        (("daddr", "iif"), FALSE),
    ],
)
def test_an_address_of_the_node_may_be_on_another_device(
    flags: tuple[str, ...], local: Ternary
) -> None:
    packet = replace(PACKET, source=NODE)
    applies, found = held(e.Fib("type", flags), packet)
    assert applies is TRUE
    assert isinstance(found, Type)
    assert found.local is local
    assert found.of == (packet.destination if "daddr" in flags else NODE)


def test_a_route_is_looked_up_in_no_dump() -> None:
    assert held(e.Fib("oifname", ("daddr",))) == (TRUE, None)
    assert held(e.Fib("oif", ("daddr",))) == (TRUE, ANY)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (e.Numgen("random", 3, 5), Draw(3, 5)),
        (e.Numgen("inc", 3), Draw(3, 0, is_random=False)),
        (e.Numgen("inc", 1, 5), Bits(5)),
        (e.Jhash(PORT, 4, None, 1), Draw(4, 1, is_random=False)),
        (e.Symhash(4), Draw(4, 0, is_random=False)),
        # The lowest bits of a random word are random themselves; others are not followed.
        (e.Binary("&", e.Meta("random"), 3), Draw(4)),
        (e.Binary("&", e.Meta("random"), 0), Bits(0)),
        (e.Binary("&", e.Meta("random"), 5), ANY),
        (e.Binary("&", e.Numgen("random", 3), 1), ANY),
        (e.Binary("|", e.Meta("random"), 1), ANY),
    ],
)
def test_numbers_are_drawn(given: e.Expression, want: Value) -> None:
    assert held(given) == (TRUE, want)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (e.Binary("&", e.Meta("mark"), 0x4000), Bits(0x4000)),
        (e.Binary("|", e.Meta("mark"), 2), Bits(0x4003)),
        (e.Binary("^", e.Meta("mark"), 1), Bits(0x4000)),
        (e.Binary("<<", e.Meta("mark"), 18), Bits(1 << 18)),
        (e.Binary(">>", e.Meta("mark"), 14), Bits(1)),
        (e.Binary("^", e.Meta("mark"), e.Ct("mark")), Bits(0x4003)),
        # How wide another field is, and so what falls out, is not followed.
        (e.Binary("<<", PORT, 1), ANY),
        (e.Binary("&", e.Meta("iifname"), 1), ANY),
        (e.Binary("&", e.Payload("ip", "daddr"), IPv4Address("255.255.0.0")), Bits(0x0A020000)),
    ],
)
def test_bits_are_computed(given: e.Expression, want: Value) -> None:
    assert held(given, MARKED) == (TRUE, want)


def test_a_computation_yields_nothing_where_one_of_its_sides_does_not() -> None:
    assert held(e.Binary("^", e.Meta("mark"), e.Ct("mark")), LOST)[0] is FALSE


def test_a_concatenation_yields_nothing_where_one_part_does_not() -> None:
    key = e.Concat((e.Payload("ip", "daddr"), PORT))
    assert held(key) == (TRUE, (Bits(int(SERVICE)), Bits(80)))
    assert held(key, UDP)[0] is FALSE
    assert held(key, SIX)[0] is FALSE


def test_what_no_reader_understands_may_yield_anything() -> None:
    assert held(e.Unknown("meta x")) == (UNKNOWN, ANY)
    assert held(e.Exthdr("tcp option", "maxseg")) == (UNKNOWN, ANY)


@pytest.mark.parametrize(
    ("constant", "want"),
    [(7, 7), (True, 1), ("tcp", 6), ("later", None), (IPv4Address("0.0.1.0"), 256)],
)
def test_a_constant_has_a_number(constant: e.Constant, want: int | None) -> None:
    assert number(constant, names.PROTOCOLS) == want


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (e.Flags(("syn", "ack")), 18),
        (e.Flags(("syn", "syn")), 2),
        (e.Flags(("syn", "odd")), None),
        (e.Binary("|", "syn", e.Binary("|", "ack", 1)), 19),
        (e.Binary("|", "syn", "odd"), None),
        (e.Binary("&", "syn", "ack"), None),
        (e.Meta("mark"), None),
        ("fin", 1),
    ],
)
def test_flags_are_one_number(given: e.Expression, want: int | None) -> None:
    assert constant_number(given, names.TCP_FLAGS) == want
