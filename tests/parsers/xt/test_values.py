from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from analyzer.errors import ParseError
from analyzer.model.diagnostics import Location
from analyzer.model.iptables.options import AddressRange, Masked, Range
from analyzer.parsers.words import Words
from analyzer.parsers.xt import values as v
from analyzer.parsers.xt.options import Codec


def read(codec: Codec[Any], text: str) -> Any:
    return codec.read(Words(text, Location("dump", 1)))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("80", 80),
        ("0x50", 80),
        ("0X50", 80),
        # As strtoul() reads it.
        ("0120", 80),
        ("089", 89),
        ("0", 0),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("0x", None),
        ("1e3", None),
        ("\u0661", None),
        ("9" * 21, None),
        ("0x" + "f" * 17, None),
    ],
)
def test_a_number_is_decimal_hexadecimal_or_octal(text: str, number: int | None) -> None:
    assert v.number_from_text(text) == number


@pytest.mark.parametrize(
    ("codec", "text", "value", "written"),
    [
        (v.number(most=9), "9", 9, "9"),
        (v.number(most=255, hexadecimal=True), "255", 255, "0xff"),
        (v.PORTS, "80", Range(80, 80), "80"),
        (v.PORTS, "80:90", Range(80, 90), "80:90"),
        (v.PORTS, ":90", Range(0, 90), "0:90"),
        (v.PORTS, "80:", Range(80, 65535), "80:65535"),
        (v.PORTS, ":", Range(0, 65535), "0:65535"),
        (v.ranges(most=9, separator="-", expected="x"), "1-2", Range(1, 2), "1-2"),
        (v.PORT_LIST, "80,8000:8080", (Range(80, 80), Range(8000, 8080)), "80,8000:8080"),
        (v.MASKED, "0x4000/0x4000", Masked(0x4000, 0x4000), "0x4000/0x4000"),
        (v.MASKED, "16384", Masked(0x4000), "0x4000"),
        (v.MASKED, "1/0xffffffff", Masked(1), "0x1"),
        (v.NETWORK, "10.1.2.3/16", ip_network("10.1.0.0/16"), "10.1.0.0/16"),
        (v.NETWORK, "10.1.2.3", ip_network("10.1.2.3/32"), "10.1.2.3/32"),
        (v.HOST_OR_NETWORK, "10.1.2.3", ip_network("10.1.2.3/32"), "10.1.2.3"),
        (v.HOST_OR_NETWORK, "fd00::/64", ip_network("fd00::/64"), "fd00::/64"),
        (v.STRING, '"a b"', "a b", '"a b"'),
        (v.STRING, "a", "a", "a"),
        (v.WORD, "255.255.255.255", "255.255.255.255", "255.255.255.255"),
        (v.STRING, "a.b", "a.b", '"a.b"'),
        (v.one_of("in", "out"), "out", "out", "out"),
        (
            v.words_of("states", ("NEW", "RELATED")),
            "RELATED,NEW",
            ("NEW", "RELATED"),
            "NEW,RELATED",
        ),
        (
            v.ADDRESS_RANGE,
            "10.0.0.1-10.0.0.9",
            AddressRange(ip_address("10.0.0.1"), ip_address("10.0.0.9")),
            "10.0.0.1-10.0.0.9",
        ),
        (
            v.ADDRESS_RANGE,
            "10.0.0.1",
            AddressRange(ip_address("10.0.0.1"), ip_address("10.0.0.1")),
            "10.0.0.1-10.0.0.1",
        ),
        (v.ADDRESS, "::ffff:10.0.0.1", ip_address("::ffff:10.0.0.1"), "::ffff:10.0.0.1"),
    ],
)
def test_a_value_is_read_and_printed_as_iptables_save_prints_it(
    codec: Codec[Any], text: str, value: Any, written: str
) -> None:
    assert read(codec, text) == value
    assert codec.write(value) == written


@pytest.mark.parametrize(
    ("codec", "text", "message"),
    [
        (v.number(most=9), "10", "expected a number from 0 to 9"),
        (v.number(most=9, expected="a digit"), "x", "expected a digit"),
        (v.PORTS, "90:80", "expected a port or a range of ports"),
        (v.PORTS, "65536", "expected a port or a range of ports"),
        (v.PORTS, "", "expected a port or a range of ports"),
        (v.PORT_LIST, "80,,81", "expected ports joined by commas, for example 80,8000:8080"),
        (v.MASKED, "0x100000000", "expected a mark, for example 0x4000/0x4000"),
        (v.MASKED, "1/", "expected a mark, for example 0x4000/0x4000"),
        (v.NETWORK, "10.0.0.0/33", "expected an address or a network"),
        (v.one_of("a", "b", "c"), "d", "expected a, b or c"),
        (v.words_of("states", ("NEW",)), "NEW,OLD", "expected states"),
        (
            v.ADDRESS_RANGE,
            "10.0.0.1-::1",
            ("expected a range of addresses, for example 10.0.0.1-10.0.0.9"),
        ),
        (v.ADDRESS, "10.0.0.0/8", "expected an address"),
        (v.STRING, "", "expected a word"),
    ],
)
def test_other_words_are_refused_saying_what_was_expected(
    codec: Codec[Any], text: str, message: str
) -> None:
    with pytest.raises(ParseError) as caught:
        read(codec, text)
    assert caught.value.message == message
    assert caught.value.span == (0, max(1, len(text)))


def test_source_and_destination_ports_may_be_negated() -> None:
    spellings = v.port_spellings()
    assert [(s.text, s.name, s.negatable) for s in spellings] == [
        ("--sport", "source_port", True),
        ("--dport", "destination_port", True),
    ]
    assert [s.also for s in spellings] == [("--source-port",), ("--destination-port",)]
