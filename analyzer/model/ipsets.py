"""The contents of ipsets, as ``ipset save`` prints them, for rules with ``-m set``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from analyzer.model.region import Interval
from analyzer.model.value import value


@value
class PortKey:
    """Ports of a protocol; None: of whatever protocol, as in ``bitmap:port``."""

    protocol: str | None
    port: int


@value
class Opaque:
    """A part of an entry that no packet of ours tells of: a MAC address, a code of ICMP."""

    text: str


#: One part of an entry: addresses, ports, a device, a mark, a set, or what is not looked at.
Part = Interval | PortKey | Opaque | str | int


@value
class Entry:
    """One element of a set.

    Attributes:
        lengths: the lengths of its networks' prefixes, by which the kernel looks it up.
        nomatch: it takes out what a wider entry has.
        fades: it has a timeout, so that it may be gone by now.
    """

    parts: tuple[Part, ...]
    lengths: tuple[int, ...] = ()
    nomatch: bool = False
    fades: bool = False


@value(kw_only=True)
class Ipset:
    """One set.

    Attributes:
        kinds: what its entries have, one for each dimension: ``ip``, ``net``, ``port``, ``mac``,
            ``iface``, ``mark``, ``set``.
        version: of IP; None: entries hold no address.
        mask: the bits of an address that count, or of a mark.
        understood: False: its type or an option of it is not known, so that nothing is told.
    """

    name: str
    type: str
    kinds: tuple[str, ...]
    version: int | None
    entries: tuple[Entry, ...] = ()
    mask: int | None = None
    understood: bool = True


#: All sets of a node, by name.
Ipsets = Mapping[str, Ipset]
NO_SETS: Ipsets = MappingProxyType({})
