"""Whether operands, and the keys of elements, cover a packet's values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.bits import WIDTH, Bits
from analyzer.model.devices import Devices, as_pattern
from analyzer.model.devices import covers as covers_name
from analyzer.model.intervals import Interval
from analyzer.model.nft.expressions import (
    Binary,
    Concat,
    Expression,
    Flags,
    Prefix,
    Range,
    Wildcard,
)
from analyzer.model.region import Parted, Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.nft.fields import constant_number, number
from analyzer.semantics.nft.values import Evaluated, ReplyRoute, Type, Value

_Words: TypeAlias = Mapping[str, int] | tuple[Mapping[str, int], ...]

_MOST: Final = (1 << WIDTH) - 1
_NONE: Final[Mapping[str, int]] = {}


def covers(given: Expression, held: Value, words: _Words) -> Ternary:
    """Return whether an operand, or the key of an element, covers a packet's value."""
    match given, held:
        case Wildcard(), _:
            return Ternary.TRUE
        case Concat(parts), tuple():
            if len(parts) != len(held) or not isinstance(words, tuple):
                return Ternary.UNKNOWN
            return _covers_all(zip(parts, held, words, strict=True))
        case str(), str():
            return _is_name(given, held)
        case str(), Devices():
            return held.is_named(as_pattern(given))
        case ((str() | int()), Type()) if isinstance(words, Mapping):
            wanted = number(given, words)
            return Ternary.UNKNOWN if wanted is None else held.equals(wanted)
        case ((bool() | int() | str()), ReplyRoute()):
            return held.equals(given)
        case _, Bits() if isinstance(words, Mapping):
            return _covers_number(given, held, words)
        case _, Region() if isinstance(words, Mapping):
            interval = interval_of(given, words)
            return Ternary.UNKNOWN if interval is None else _is_among(held, interval)
        case _:
            return Ternary.UNKNOWN


def _covers_all(parts: Iterable[tuple[Expression, Value, Mapping[str, int]]]) -> Ternary:
    result, parted = Ternary.TRUE, None
    for given, held, words in parts:
        try:
            result &= covers(given, held, words)
        except Parted as by:
            parted = by  # which matters only where all else is covered
        if result is Ternary.FALSE:
            return result
    if parted is not None:
        raise parted
    return result


def _is_among(held: Region, interval: Interval) -> Ternary:
    """Return whether the address lies in an interval, which may be empty."""
    first, last = interval
    return held.is_within((interval,) if first <= last else ())


def _covers_number(given: Expression, held: Bits, words: Mapping[str, int]) -> Ternary:
    if isinstance(given, Prefix):
        bits = given.address.max_prefixlen
        mask = ((1 << given.length) - 1) << (bits - given.length)
        return held.equals(int(given.address) & mask, mask)
    interval = interval_of(given, words)
    if interval is None:
        return Ternary.UNKNOWN
    first, last = interval
    return held.equals(first) if first == last else held.is_within(first, last)


def interval_of(given: Expression, words: Mapping[str, int]) -> Interval | None:
    """Return the first and the last number that an operand covers."""
    match given:
        case Range(first, last):
            low, high = number(first, words), number(last, words)
            return None if low is None or high is None else (low, high)
        case Prefix(address, length):
            rest = (1 << (address.max_prefixlen - length)) - 1
            return int(address) & ~rest, int(address) | rest  # nft leaves out what is beyond
        case Flags() | Binary() | bool() | int() | str() | IPv4Address() | IPv6Address():
            only = constant_number(given, words)
            return None if only is None else (only, only)
        case _:
            return None


def reversed_range(given: Expression, words: _Words) -> tuple[int, int] | None:
    """Return the ends of a range that ends before it begins, or None.

    nft joins ``th dport < 80 th dport > 53`` and lists it as ``th dport != 80-53``, ``>=`` and
    ``<=`` likewise as ``80-53``; if the left side is a draw, there are two. ``< 53`` and ``> 80``,
    which nothing satisfies, is listed like everything outside 53 to 80, and is read as that.

    Source: listings of nft 1.0.6 compared with the expressions of its netlink messages.
    """
    if not isinstance(given, Range) or not isinstance(words, Mapping):
        return None
    first, last = number(given.first, words), number(given.last, words)
    return None if first is None or last is None or first <= last else (first, last)


def _is_name(wanted: str, name: str) -> Ternary:
    if wanted.endswith("*") and not wanted.endswith("\\*"):
        return Ternary.of(name.startswith(wanted[:-1]))
    return Ternary.of(name == wanted.replace("\\*", "*"))


def are_all_named(held: Value, keys: Sequence[Expression]) -> bool:
    """Return whether each device that it may be, of those known one by one, has a key."""
    if not isinstance(held, Devices) or not held.names:
        return False
    patterns = {as_pattern(key) for key in keys if isinstance(key, str)}
    others = held.names - patterns
    return all(any(covers_name(each, name) for each in patterns) for name in others)


def ordered(left: Evaluated, operator: str, right: Expression) -> Ternary:
    """Return whether a packet's value compares to an operand as `operator` says."""
    words = left.words if isinstance(left.words, Mapping) else _NONE
    interval = interval_of(right, words)
    held = left.held
    if interval is None or not isinstance(held, Bits | Region):
        return Ternary.UNKNOWN
    first, last = interval
    match operator:
        case "<":
            wanted = 0, first - 1
        case "<=":
            wanted = 0, last
        case ">":
            wanted = last + 1, _MOST
        case ">=":
            wanted = first, _MOST
        case _:
            return Ternary.UNKNOWN
    if isinstance(held, Region):
        return _is_among(held, wanted)
    return held.is_within(*wanted) if wanted[0] <= wanted[1] else Ternary.FALSE
