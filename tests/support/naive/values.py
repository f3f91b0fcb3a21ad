"""Constants of nft as the naive interpreter compares them, with tables of its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final

from analyzer.model.nft import expressions as e

STATES: Final = {"invalid": 1, "established": 2, "related": 4, "new": 8, "untracked": 64}
_STATUSES: Final = {"seen-reply": 2, "assured": 4, "snat": 16, "dnat": 32}
#: Also ``few``: the widest mask under which random bits are drawn one by one.
NUMBERS: Final = {
    "tcp": 6,
    "udp": 17,
    "sctp": 132,
    "icmp": 1,
    "icmpv6": 58,
    "ipv6-icmp": 58,
    "ipv4": 2,
    "ipv6": 10,
    "original": 0,
    "reply": 1,
    "few": 7,
    **STATES,
    **_STATUSES,
}


@dataclass(frozen=True)
class Sample:
    """So many random bits."""

    bits: int

    @property
    def weights(self) -> tuple[Fraction, ...]:
        return (Fraction(1, 1 << self.bits),) * (1 << self.bits)

    def held(self, operator: str, right: int) -> tuple[int, int]:
        """The numbers that hold, from the first to before the last."""
        low, high = {
            "<": (0, right),
            "<=": (0, right + 1),
            ">": (right + 1, 1 << self.bits),
            ">=": (right, 1 << self.bits),
            "==": (right, right + 1),
        }[operator]
        return min(low, 1 << self.bits), min(high, 1 << self.bits)


def number(given: Any) -> Any:
    """A constant as it is compared: words as their numbers, names and addresses as they are."""
    match given:
        case e.Flags(names):
            return sum({number(name) for name in names})
        case e.Concat(parts):
            return tuple([number(part) for part in parts])
        case str():
            return NUMBERS.get(given, given)
        case int() | IPv4Address() | IPv6Address():
            return given
        case _:
            raise AssertionError(given)


def covers(given: Any, held: Any) -> bool:
    """Whether an operand, or an element of a set, covers a value."""
    match given:
        case e.Concat(parts):
            return all(covers(part, one) for part, one in zip(parts, held, strict=True))
        case e.Range(first, last):
            return bool(number(first) <= held <= number(last))
        case e.Prefix(address, length):
            kind = IPv4Network if address.version == 4 else IPv6Network
            return held in kind((int(address), length))
        case str() if given.endswith("*"):
            return bool(held.startswith(given[:-1]))
        case _:
            return bool(number(given) == held)
