"""Values of many options: numbers, ranges, masks, addresses, strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analyzer.model.addresses import (
    Address,
    Network,
    address_from_text,
    address_to_text,
    network_from_text,
    network_to_text,
)
from analyzer.model.iptables.options import AddressRange, Masked, Range
from analyzer.parsers.words import Words, bare, quoted
from analyzer.parsers.xt.options import Codec, Spelling, negatable

#: Most digits: Python's int() takes quadratic time and refuses 4,300.
_MOST_DIGITS: Final = 20
_MOST_HEXADECIMAL: Final = 16
_HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
PORT_MAX: Final = 0xFFFF
MARK_MAX: Final = 0xFFFFFFFF


def number_from_text(text: str) -> int | None:
    """Return the number that C's strtoul would read, including octal; None for other text."""
    if text[:2] in ("0x", "0X"):
        digits = text[2:]
        fits = 0 < len(digits) <= _MOST_HEXADECIMAL and _HEXADECIMAL.issuperset(digits)
        return int(digits, 16) if fits else None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        return None
    if text[0] == "0" and text.isdigit() and not set(text) & set("89"):
        return int(text, 8)
    return int(text)


def number(*, most: int, expected: str | None = None, hexadecimal: bool = False) -> Codec[int]:
    """Return the codec of a number from 0 to `most`, printed in decimal or `hexadecimal`."""
    expected = expected or f"a number from 0 to {most}"

    def read(words: Words) -> int:
        word = words.take(expected)
        value = number_from_text(word.text)
        if value is None or value > most:
            words.fail(f"expected {expected}", span=word.span)
        return value

    return Codec(read, hex if hexadecimal else str)


def read_range(text: str, *, separator: str, most: int) -> Range | None:
    """Return the range that ``first:last`` names; an empty side represents its extreme."""
    first, found, last = text.partition(separator)
    low = number_from_text(first) if first else 0
    high = (number_from_text(last) if last else most) if found else low
    if low is None or high is None or not first + found or max(low, high) > most:
        return None
    return Range(low, high) if low <= high else None


def ranges(*, most: int, separator: str = ":", expected: str) -> Codec[Range]:
    """Return the codec of ``first[:last]``."""

    def read(words: Words) -> Range:
        word = words.take(expected)
        value = read_range(word.text, separator=separator, most=most)
        if value is None:
            words.fail(f"expected {expected}", span=word.span)
        return value

    def write(value: Range) -> str:
        if value.first == value.last:
            return str(value.first)
        return f"{value.first}{separator}{value.last}"

    return Codec(read, write)


PORTS: Final = ranges(most=PORT_MAX, expected="a port or a range of ports")


def port_spellings() -> tuple[Spelling, ...]:
    """Return ``--sport`` and ``--dport``, which tcp, udp and sctp share."""
    return (
        negatable("--sport", "source_port", PORTS, "--source-port"),
        negatable("--dport", "destination_port", PORTS, "--destination-port"),
    )


def _read_masked(words: Words) -> Masked:
    word = words.take("a mark, as 0x4000/0x4000")
    value, slash, mask = word.text.partition("/")
    low = number_from_text(value)
    high = number_from_text(mask) if slash else MARK_MAX
    if low is None or high is None or max(low, high) > MARK_MAX:
        words.fail("expected a mark, for example 0x4000/0x4000", span=word.span)
    return Masked(low, high)


def _write_masked(value: Masked) -> str:
    return f"{value.value:#x}" + ("" if value.mask == MARK_MAX else f"/{value.mask:#x}")


#: ``value[/mask]`` in hexadecimal. Source: libxt_mark.c, ``print_mark``.
MASKED: Final = Codec(_read_masked, _write_masked)


def _read_network(words: Words) -> Network:
    word = words.take("an address or a network")
    value = network_from_text(word.text)
    if value is None:
        words.fail("expected an address or a network", span=word.span)
    return value


#: A network with its prefix length, as ``-s`` prints it.
NETWORK: Final = Codec(_read_network, network_to_text)


def _write_host_or_network(network: Network) -> str:
    alone = network.num_addresses == 1
    return address_to_text(network.network_address) if alone else network_to_text(network)


#: A network, printed without its prefix length if it is a single address.
HOST_OR_NETWORK: Final = Codec(_read_network, _write_host_or_network)

#: Any one word, quoted if iptables-save quotes it.
STRING: Final[Codec[str]] = Codec(read=lambda words: words.take("a word").text, write=quoted)

#: Any one word that iptables-save never quotes, for example an address mask.
WORD: Final[Codec[str]] = Codec(read=STRING.read, write=bare)


def one_of(*choices: str) -> Codec[str]:
    """Return the codec of one of `choices`."""
    expected = f"{', '.join(choices[:-1])} or {choices[-1]}"

    def read(words: Words) -> str:
        word = words.take(expected)
        if word.text not in choices:
            words.fail(f"expected {expected}", span=word.span)
        return word.text

    return Codec(read, str)


def words_of(expected: str, known: Sequence[str]) -> Codec[tuple[str, ...]]:
    """Return the codec of words joined by commas, put in the order of `known`."""

    def read(words: Words) -> tuple[str, ...]:
        word = words.take(expected)
        parts = set(word.text.split(","))
        if not parts.issubset(known):
            words.fail(f"expected {expected}", span=word.span)
        return tuple(each for each in known if each in parts)

    return Codec(read, ",".join)


def _read_port_list(words: Words) -> tuple[Range, ...]:
    expected = "ports joined by commas, for example 80,8000:8080"
    word = words.take(expected)
    found = [read_range(part, separator=":", most=PORT_MAX) for part in word.text.split(",")]
    if None in found:
        words.fail(f"expected {expected}", span=word.span)
    return tuple(each for each in found if each is not None)


#: Ports and ranges joined by commas.
PORT_LIST: Final[Codec[tuple[Range, ...]]] = Codec(
    _read_port_list, lambda ports: ",".join(map(PORTS.write, ports))
)


def _read_address_range(words: Words) -> AddressRange:
    expected = "a range of addresses, for example 10.0.0.1-10.0.0.9"
    word = words.take(expected)
    low, dash, high = word.text.partition("-")
    first, last = address_from_text(low), address_from_text(high if dash else low)
    if first is None or last is None or first.version != last.version:
        words.fail(f"expected {expected}", span=word.span)
    return AddressRange(first, last)


def _write_address_range(value: AddressRange) -> str:
    return f"{address_to_text(value.first)}-{address_to_text(value.last)}"


ADDRESS_RANGE: Final = Codec(_read_address_range, _write_address_range)


def _read_address(words: Words) -> Address:
    word = words.take("an address")
    value = address_from_text(word.text)
    if value is None:
        words.fail("expected an address", span=word.span)
    return value


ADDRESS: Final[Codec[Address]] = Codec(_read_address, address_to_text)
