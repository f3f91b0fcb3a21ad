"""Whether a packet matches an ipset whose contents ``ipset save`` gives.

Theory of operation
===================

The kernel looks a packet up in a set of networks by their prefixes, the longest first, and the
first entry that contains it decides: it is in the set, or not (``nomatch``). So here, with what is
known of the packet. Known parts (a port, a device) select the entries that may contain it. If one
other part is a region of addresses, these entries are overlaid, the widest first: which addresses
are in the set, and which may be (a timeout may have expired). A set that rules fill is not known.

Source: Linux, net/netfilter/xt_set.c, ``match_set``; net/netfilter/ipset/ip_set_core.c,
``ip_set_test``; ip_set_hash_gen.h, ``mtype_test_cidrs``; ip_set_list_set.c, ``list_set_ktest``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final

from analyzer.model.addresses import Address
from analyzer.model.intervals import Interval, Intervals, holds, joined, without
from analyzer.model.ipsets import NO_SETS, EntryPart, Ipset, IpsetEntry, Ipsets, Opaque, PortKey
from analyzer.model.iptables.matches import MatchSet
from analyzer.model.packet import Packet
from analyzer.model.region import Region
from analyzer.model.ternary import Ternary
from analyzer.model.value import value

_DEEPEST: Final = 1  # levels of sets in sets; the kernel has just one
#: Kinds of sets with addresses only.
_OF_ADDRESSES: Final = frozenset((("ip",), ("net",)))
#: Kinds of entries with a port, or with the entries of a set that they name.
_WITH_PORTS: Final = frozenset(("port", "set"))
#: Protocols whose port the kernel looks up in a set of ports alone.
_OF_BITMAP: Final = frozenset(("tcp", "udp"))


@value
class Dimension:
    """What is known of a packet in one dimension.

    Attributes:
        holds: returns whether a part of an entry contains it.
        region: the addresses of which it is one; None if `holds` decides.
    """

    holds: Callable[[EntryPart], Ternary]
    region: Region | None = None
    key: Hashable = None


class NodeIpsets:
    """The ipsets of a node. `changed` returns the names of those that rules fill themselves."""

    def __init__(
        self, sets: Ipsets = NO_SETS, changed: Callable[[], frozenset[str]] = frozenset
    ) -> None:
        self._sets = sets
        self._find_changed = changed
        self._changed: frozenset[str] | None = None
        self._laid: dict[Hashable, tuple[Intervals, Intervals]] = {}
        #: Sets that rules look up, and whose contents are not known.
        self.missed: dict[str, None] = {}
        self._spans: dict[str, Intervals] = {}

    def __bool__(self) -> bool:
        return bool(self._sets)

    @property
    def hold_ports(self) -> bool:
        """Whether there is a set of ports alone."""
        return any(each.kinds == ("port",) for each in self._sets.values())

    def may_hold_ports(self, name: str) -> bool:
        """Return whether a set may contain ports."""
        of = self._sets.get(name)
        return of is not None and any(kind in _WITH_PORTS for kind in of.kinds)

    def holds(
        self, match: MatchSet, packet: Packet, device: Callable[[str], str | None]
    ) -> Ternary:
        """Return whether a packet is in the set that a match names, whatever ``!`` says.

        `device` returns the device by which it comes in (``src``) or leaves (``dst``), if known.

        Raises:
            Parted: some addresses of a region of the packet are, and some are not.
        """
        name, flags = match.match_set.value
        counted = (
            *(match.packets_equal, match.packets_below, match.packets_above),
            *(match.bytes_equal, match.bytes_below, match.bytes_above),
        )
        found = self._in(name, flags.split(","), packet, device, match, 0)
        return found if all(each is None for each in counted) else found & Ternary.UNKNOWN

    def tells(self, address: Address) -> Hashable:
        """Return a key for what the sets can tell about an address."""
        return tuple([self._told(each, address) for each in self._sets.values()])

    def asked(self, version: int) -> Iterator[Intervals]:
        """Yield what rules ask of an address that match on a set of addresses alone."""
        for each in (s for s in self._sets.values() if (s.version, len(s.kinds)) == (version, 1)):
            yield from self._lay(each, (), each.entries, 0, returned=False)

    def _told(self, of: Ipset, address: Address) -> Hashable:
        if of.version != address.version:
            return None
        number = int(address)
        if len(of.kinds) > 1:
            if of.name not in self._spans:
                parts = [part for entry in of.entries for part in entry.parts]
                self._spans[of.name] = joined([part for part in parts if isinstance(part, tuple)])
            # The other parts of its entries are not considered.
            return number if holds(self._spans[of.name], number) else None
        certain, possible = self._lay(of, (), of.entries, 0, returned=False)
        return holds(certain, number), holds(possible, number)

    def _in(
        self,
        name: str,
        flags: Sequence[str],
        packet: Packet,
        device: Callable[[str], str | None],
        match: MatchSet,
        depth: int,
    ) -> Ternary:
        if self._changed is None:
            self._changed = self._find_changed()
        of = self._sets.get(name)
        if of is None:
            self.missed[name] = None
        if of is None or name in self._changed or not of.understood:
            return Ternary.UNKNOWN
        if of.kinds == ("set",):
            if depth == _DEEPEST:
                return Ternary.UNKNOWN
            found = Ternary.FALSE
            for entry in of.entries:
                inner = self._in(str(entry.parts[0]), flags, packet, device, match, depth + 1)
                found |= inner & Ternary.UNKNOWN if entry.fades else inner
            return found
        version = _version(packet)
        if len(flags) < len(of.kinds):
            return Ternary.FALSE
        if of.version is not None and version != of.version:
            return Ternary.FALSE if version is not None else Ternary.UNKNOWN
        asked = [
            _asked(kind, flag, packet, device, of)
            for kind, flag in zip(of.kinds, flags, strict=False)
        ]
        # In a set without networks there is nothing that could be excluded.
        returned = match.return_nomatch and "net" in of.kinds
        if of.kinds in _OF_ADDRESSES:
            return _among(self._lay(of, (), of.entries, 0, returned=returned), asked[0])
        if of.kinds == ("net", "iface"):
            return self._by_device(of, *asked, returned=returned)
        return self._looked_up(of, asked, returned=returned)

    def _by_device(
        self, of: Ipset, address: Dimension, device: Dimension, *, returned: bool
    ) -> Ternary:
        """Look a packet up by a network and a device.

        If a network is in the set, with any device, wider ones are not looked up. Source: Linux,
        net/netfilter/ipset/ip_set_hash_netiface.c, ``hash_netiface4_data_equal``, whose ``multi``
        ends the loop of ``mtype_test_cidrs``.
        """
        key = of.name, device.key, returned
        if key not in self._laid:
            found: dict[Interval, Ternary] = {}
            for entry in sorted(of.entries, key=_order, reverse=True):
                net, part = entry.parts
                assert isinstance(net, tuple)
                held = device.holds(part)
                said = held if held is not Ternary.TRUE else _outcome(entry, returned=returned)
                before = found.get(net, Ternary.FALSE)
                found[net] = Ternary.UNKNOWN if entry.fades else before | said
            self._laid[key] = _overlaid(found)
        return _among(self._laid[key], address)

    def _looked_up(self, of: Ipset, asked: Sequence[Dimension], *, returned: bool) -> Ternary:
        regions = [at for at, each in enumerate(asked) if each.region is not None]
        found = [
            (entry, known)
            for entry in of.entries
            if (known := _held(entry, asked)) is not Ternary.FALSE
        ]
        if not found:
            return Ternary.FALSE
        if not regions:
            return _decided(sorted(found, key=lambda each: _order(each[0])), returned=returned)
        if any(known is Ternary.UNKNOWN for _, known in found):
            return Ternary.UNKNOWN
        entries = [entry for entry, _ in found]
        if len(regions) > 1:
            entries = _parted(entries, regions[1:], asked)
            if not entries:
                return Ternary.FALSE
        at = regions[0]
        # With more than one region the entries depend on how rules have split them.
        key = (of.name, at, tuple([each.key for each in asked]), returned)
        laid = self._lay(of, None if regions[1:] else key, entries, at, returned=returned)
        return _among(laid, asked[at])

    def _lay(
        self, of: Ipset, key: Hashable, entries: Sequence[IpsetEntry], at: int, *, returned: bool
    ) -> tuple[Intervals, Intervals]:
        """Return the addresses that are in a set, and those that may be."""
        if key == ():
            key = (of.name, at, returned)
        if key not in self._laid or key is None:
            laid = _laid(entries, at, returned=returned)
            if key is None:
                return laid
            self._laid[key] = laid
        return self._laid[key]


def _among(laid: tuple[Intervals, Intervals], asked: Dimension) -> Ternary:
    """Return whether an address is among those that are, or may be, in a set.

    Raises:
        Parted: some addresses of a region are.
    """
    certain, possible = laid
    if isinstance(asked.key, int):
        if holds(certain, asked.key):
            return Ternary.TRUE
        return Ternary.of(holds(possible, asked.key)) & Ternary.UNKNOWN
    if asked.region is None:
        return Ternary.UNKNOWN if possible else Ternary.FALSE
    if asked.region.is_within(certain) is Ternary.TRUE:
        return Ternary.TRUE
    return asked.region.is_within(possible) & Ternary.UNKNOWN


def _overlaid(found: Mapping[Interval, Ternary]) -> tuple[Intervals, Intervals]:
    """Overlay networks with what is known of them, the widest first; return as `_laid` does."""
    certain: Intervals = ()
    possible: Intervals = ()
    for span, known in found.items():
        certain = joined([*certain, span]) if known is Ternary.TRUE else without(certain, (span,))
        is_out = known is Ternary.FALSE
        possible = without(possible, (span,)) if is_out else joined([*possible, span])
    return certain, possible


def _version(packet: Packet) -> int | None:
    for each in (packet.source, packet.sources, packet.destination, packet.destinations):
        if each is not None:
            return each.version
    return None


def _order(entry: IpsetEntry) -> tuple[int, ...]:
    return tuple([-length for length in entry.lengths])


def _held(entry: IpsetEntry, asked: Sequence[Dimension]) -> Ternary:
    found = Ternary.TRUE
    for each, part in zip(asked, entry.parts, strict=True):
        found &= each.holds(part)
        if found is Ternary.FALSE:
            break
    return found


def _outcome(entry: IpsetEntry, *, returned: bool) -> Ternary:
    return Ternary.of(entry.nomatch is returned)


def _decided(found: Sequence[tuple[IpsetEntry, Ternary]], *, returned: bool) -> Ternary:
    """Return the result of the first entry that contains a packet; of some it is not known."""
    said: set[Ternary] = set()
    for entry, known in found:
        said.add(_outcome(entry, returned=returned))
        if known is Ternary.TRUE and not entry.fades:
            break
    else:
        said.add(Ternary.FALSE)
    return said.pop() if len(said) == 1 else Ternary.UNKNOWN


def _parted(
    entries: Sequence[IpsetEntry], others: Sequence[int], asked: Sequence[Dimension]
) -> list[IpsetEntry]:
    """Return the entries that contain all of other regions, without those that contain none.

    Raises:
        Parted: an entry contains part of a region.
    """
    found: list[IpsetEntry] = []
    for entry in entries:
        for at in others:
            region, part = asked[at].region, entry.parts[at]
            assert region is not None
            if not isinstance(part, tuple) or region.is_within((part,)) is Ternary.FALSE:
                break
        else:
            found.append(entry)
    return found


def _laid(entries: Sequence[IpsetEntry], at: int, *, returned: bool) -> tuple[Intervals, Intervals]:
    """Overlay entries, and return what is in the set, and what may be."""
    certain: Intervals = ()
    possible: Intervals = ()
    layers: dict[tuple[int, ...], list[IpsetEntry]] = {}
    for entry in entries:
        layers.setdefault(_order(entry), []).append(entry)
    for order in sorted(layers, reverse=True):
        # Two entries of the same order do not overlap, unless more than one part has networks.
        layer = layers[order]
        every: dict[tuple[bool, bool], list[Interval]] = {}
        for entry in layer:
            part = entry.parts[at]
            if isinstance(part, tuple):
                is_in = _outcome(entry, returned=returned) is Ternary.TRUE
                every.setdefault((is_in, entry.fades), []).append(part)
        for (is_in, fades), spans in every.items():
            where = joined(spans)
            if is_in:
                possible = joined([*possible, *where])
                certain = certain if fades else joined([*certain, *where])
            else:
                certain = without(certain, where)
                possible = possible if fades else without(possible, where)
    return certain, possible


def _asked(
    kind: str, flag: str, packet: Packet, device: Callable[[str], str | None], of: Ipset
) -> Dimension:
    """Return what is known of a packet in one dimension: its ``src`` or ``dst``."""
    match kind:
        case "ip" | "net":
            address = packet.source if flag == "src" else packet.destination
            region = packet.sources if flag == "src" else packet.destinations
            if address is not None:
                return _address(int(address))
            if region is None:
                return Dimension(lambda _: Ternary.UNKNOWN)
            # Which of its addresses entries contain is found for all entries together.
            return Dimension(lambda part: _meets(part, region), region)
        case "port":
            port = packet.source_port if flag == "src" else packet.destination_port
            return Dimension(
                lambda part: _port(part, packet.protocol, port), None, (packet.protocol, port)
            )
        case "iface":
            name = device(flag)
            return Dimension(lambda part: _device(part, name), None, name)
        case "mark":
            mask = of.mask if of.mask is not None else 0xFFFFFFFF
            mark = packet.with_one_mark().mark
            return Dimension(
                lambda part: mark.equals(part, mask) if isinstance(part, int) else Ternary.UNKNOWN,
                None,
                mark,
            )
        case _:
            return Dimension(lambda _: Ternary.UNKNOWN)


def _address(number: int) -> Dimension:
    def inside(part: EntryPart) -> Ternary:
        return Ternary.of(isinstance(part, tuple) and part[0] <= number <= part[1])

    return Dimension(inside, None, number)


def _meets(part: EntryPart, region: Region) -> Ternary:
    return Ternary.of(isinstance(part, tuple) and bool(region.common((part,))))


def _port(part: EntryPart, protocol: str | None, port: int | None) -> Ternary:
    match part:
        case PortKey(None, wanted):
            if protocol is not None and protocol not in _OF_BITMAP:
                return Ternary.UNKNOWN
            here = Ternary.UNKNOWN if protocol is None else Ternary.TRUE
        case PortKey(named, wanted):
            here = Ternary.UNKNOWN if protocol is None else Ternary.of(protocol == named)
        case Opaque(text):
            # For protocols without ports.
            known = protocol is not None and protocol != text.partition(":")[0]
            return Ternary.FALSE if known and protocol in {"tcp", "udp"} else Ternary.UNKNOWN
        case _:
            return Ternary.UNKNOWN
    return here & (Ternary.UNKNOWN if port is None else Ternary.of(port == wanted))


def _device(part: EntryPart, name: str | None) -> Ternary:
    if name is None or not isinstance(part, str):
        return Ternary.UNKNOWN
    if part.endswith("+"):
        return Ternary.of(name.startswith(part[:-1]))
    return Ternary.of(name == part)
