"""The contents of ipsets, as ``ipset save`` prints them, for rules with ``-m set``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from analyzer.model.intervals import Interval
from analyzer.model.value import value


@value
class PortKey:
    """A port of a protocol; None for any protocol, as in ``bitmap:port``."""

    protocol: str | None
    port: int


@value
class Opaque:
    """A part of an entry that our packets do not have: a MAC address, an ICMP code."""

    text: str


#: One part of an entry: addresses, ports, a device, a mark, a set, or one that is not compared.
EntryPart = Interval | PortKey | Opaque | str | int


@value
class IpsetEntry:
    """One element of a set.

    Attributes:
        lengths: the prefix lengths of its networks, by which the kernel looks it up.
        nomatch: it excludes part of what a wider entry contains.
        fades: it has a timeout, so it may have expired.
    """

    parts: tuple[EntryPart, ...]
    lengths: tuple[int, ...] = ()
    nomatch: bool = False
    fades: bool = False


@value(kw_only=True)
class Ipset:
    """One set.

    Attributes:
        kinds: what its entries consist of, one for each dimension: ``ip``, ``net``, ``port``,
            ``mac``, ``iface``, ``mark``, ``set``.
        version: IP version; None if entries contain no address.
        mask: the bits of an address, or of a mark, that are compared.
        understood: False if its type or one of its options is unknown; then every lookup has an
            unknown result.
    """

    name: str
    type: str
    kinds: tuple[str, ...]
    version: int | None
    entries: tuple[IpsetEntry, ...] = ()
    mask: int | None = None
    understood: bool = True


#: All sets of a node, by name.
Ipsets = Mapping[str, Ipset]
NO_SETS: Ipsets = MappingProxyType({})
