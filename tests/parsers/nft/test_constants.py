from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from analyzer.model.addresses import Address
from analyzer.model.nft import expressions as e
from analyzer.parsers.nft.constants import address, from_string, from_word, write
from analyzer.parsers.nft.extension import NotUnderstood

ONE, TWO = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")


@pytest.mark.parametrize(
    ("word", "constant"),
    [
        ("80", 80),
        ("0x50", 80),
        ("10.0.0.1", ONE),
        ("fd00::1", IPv6Address("fd00::1")),
        ("10.0.0.0/8", e.Prefix(IPv4Address("10.0.0.0"), 8)),
        ("fd00::/64", e.Prefix(IPv6Address("fd00::"), 64)),
        ("1-9", e.Range(1, 9)),
        ("10.0.0.1-10.0.0.2", e.Range(ONE, TWO)),
        ("00:11:22:33:44:55-00:11:22:33:44:66", e.Range("00:11:22:33:44:55", "00:11:22:33:44:66")),
        # A dash within a word is a part of it.
        ("echo-request", "echo-request"),
        ("tcp", "tcp"),
        ("00:11:22:33:44:55", "00:11:22:33:44:55"),
        ("exists", True),
        ("missing", False),
        ("*", e.Wildcard()),
        ("@set", e.SetRef("set")),
        ("_odd", "_odd"),
    ],
)
def test_an_unquoted_word_is_a_constant(word: str, constant: e.Expression) -> None:
    found = from_word(word)
    assert found == constant
    assert type(found) is type(constant)


@pytest.mark.parametrize("word", ["", "10.0.0.0/33", "1.2.3/8", "@", "!", ".", "/24"])
def test_other_words_are_not_understood(word: str) -> None:
    with pytest.raises(NotUnderstood):
        from_word(word)


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("10.0.0.1", ONE),
        ("@set", e.SetRef("set")),
        ("*", e.Wildcard()),
        ("0x50 [invalid type]", 80),
        ("x [invalid type]", "x [invalid type]"),
        # A JSON string of digits is a name: a device may be called so.
        ("80", "80"),
        ("exists", "exists"),
        ("", ""),
        ("@", "@"),
    ],
)
def test_a_string_of_json_is_a_constant(text: str, constant: e.Expression) -> None:
    assert from_string(text) == constant


@pytest.mark.parametrize(
    ("text", "found"),
    [("10.0.0.1", ONE), ("::1", IPv6Address("::1")), ("10", None), ("cafe", None), ("a.b", None)],
)
def test_an_address_has_dots_or_colons(text: str, found: Address | None) -> None:
    assert address(text) == found


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        (True, "exists"),
        (False, "missing"),
        (1, "1"),
        ("tcp", "tcp"),
        ("established", "established"),
        ("eth0", '"eth0"'),
        (ONE, "10.0.0.1"),
        (IPv6Address("::ffff:10.0.0.1"), "::ffff:10.0.0.1"),
    ],
)
def test_only_well_known_words_are_written_without_quotes(constant: e.Constant, text: str) -> None:
    assert write(constant) == text
