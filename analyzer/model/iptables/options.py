"""The values that options of matches and targets take."""

from __future__ import annotations

from typing import Generic, TypeVar

from analyzer.model.addresses import Address
from analyzer.model.value import value

T = TypeVar("T")


@value
class Option(Generic[T]):
    """``[!] --option value`` of a match that has several."""

    value: T
    negated: bool = False


@value
class Range:
    """Numbers from `first` to `last`, both included; a single number is a range too."""

    first: int
    last: int

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last


@value
class Masked:
    """A number compared under a mask: ``value/mask``, both of 32 bits."""

    value: int
    mask: int = 0xFFFFFFFF


@value
class TcpFlags:
    """``--tcp-flags mask flags``: of the flags in `mask`, exactly those in `flags` are set."""

    mask: frozenset[str]
    flags: frozenset[str]


@value
class ChunkTypes:
    """``--chunk-types all|any|only types``; a type may have flags: ``DATA:Be``."""

    scope: str
    types: tuple[str, ...]


@value
class AddressRange:
    """Addresses from `first` to `last`, both included."""

    first: Address
    last: Address

    def __contains__(self, address: Address) -> bool:
        if address.version != self.first.version:
            return False
        return int(self.first) <= int(address) <= int(self.last)


@value(kw_only=True)
class PolicyElement:
    """What ``-m policy`` matches on in one IPsec transformation."""

    reqid: Option[int] | None = None
    spi: Option[int] | None = None
    protocol: Option[str] | None = None
    mode: Option[str] | None = None
    tunnel_source: Option[str] | None = None
    tunnel_destination: Option[str] | None = None
