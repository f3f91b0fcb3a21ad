"""The packet that a ruleset is evaluated for."""

from __future__ import annotations

from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.addresses import Address
    from analyzer.model.devices import Devices, Side
    from analyzer.model.region import Parted, Region
    from analyzer.model.source_marks import SourceMarks

#: Every bit of a mark.
ALL_BITS: Final = 0xFFFFFFFF


@value
class Mark:
    """The mark of a packet or of a flow, 32 bits, as far as it is known.

    Attributes:
        value: the bits that are known to be set.
        unknown: the bits that may be set or not; none of them is in `value`.
    """

    value: int = 0
    unknown: int = 0

    def equals(self, wanted: int, mask: int) -> Ternary:
        """Return whether the bits of `mask` equal `wanted`."""
        seen = mask & ~self.unknown
        if self.value & seen != wanted & ~(mask & self.unknown):
            return Ternary.FALSE
        return Ternary.UNKNOWN if mask & self.unknown else Ternary.TRUE

    def with_bits(self, value: int, mask: int) -> Mark:
        """Return the mark with the bits of `mask` cleared and those of `value` flipped."""
        unknown = self.unknown & ~mask
        return Mark((self.value & ~mask ^ value) & ~unknown, unknown)

    def with_mark(self, other: Mark, mask: int, other_mask: int) -> Mark:
        """Return the mark with the bits of `mask` cleared and those of the other mark flipped."""
        cleared = self.with_bits(0, mask)
        unknown = cleared.unknown | other.unknown & other_mask
        return Mark((cleared.value ^ other.value & other_mask) & ~unknown, unknown)

    def joined(self, other: Mark) -> Mark:
        """Return a mark that is one of the two, with the bits unknown in which they differ."""
        return self.blurred(other.unknown | self.value ^ other.value)

    def blurred(self, bits: int) -> Mark:
        """Return the mark with `bits` unknown."""
        return Mark(self.value & ~bits, self.unknown | bits)


#: The zones of a flow that no rule has put into one.
NO_ZONES: Final = (0, 0)
#: An unknown mark.
UNKNOWN_MARK: Final = Mark(0, ALL_BITS)
#: The name that rules compare where there is no device: the node makes the packet, or takes it.
#: Source: Linux, net/ipv4/netfilter/ip_tables.c, ``ipt_do_table``, ``nulldevname``.
NO_DEVICE: Final = ""


class MarksDiffer(Exception):  # noqa: N818  # no error: a question that has two answers
    """A rule needs a mark that depends on the packet's source."""


@value(kw_only=True, slots=False)
class Packet:
    """The first packet of a flow. A field that is None is not known.

    Attributes:
        protocol: as iptables prints it: ``tcp``, ``udp``, ``icmp``, a number.
        icmp: type and code of an ICMP packet.
        mark: the packet's mark, 0 unless something set it.
        flow_mark: the mark of the flow's conntrack entry, 0 for a new one.
        in_interface: the device it came in by, or `NO_DEVICE`.
        out_interface: the device it leaves by, or `NO_DEVICE`.
        comes_from: where it comes from, if the device that it came in by is not known.
        came_by: devices of which, according to rules passed so far, it came in by one.
        leaves_by: likewise, devices of which it leaves by one, according to rules or its route.
        is_routed: whether it leaves by a device that is not known, on a route to `destination`,
            which is not one of the node's own addresses.
        bridge_port: whether it passes a port of a bridge on its way.
        to_node: whether it goes to an address of the node, if the address is not known.
        from_node: whether its source is an address of the node, if these are not known.
        cluster_ip: its destination, if that is the ClusterIP of a Service; None if not known.
        translated: whether a DNAT of this ruleset has changed its destination.
        masqueraded: whether one of its rules has changed its source.
        is_masquerades: whether its source, or the destination of an answer, is an address of the
            node that MASQUERADE chose.
        original: the address and port that it was sent to when conntrack saw it first, or others
            that no rule distinguishes from them; None: not known.
        is_port_own: whether its source port, known or not, is still the one that it was sent from.
        tracked: whether conntrack tracks the flow; if not, nat chains are not evaluated.
        template: whether raw's CT target attached a template for the entry to come.
        zones: conntrack's zones for the flow and for answers to it; None: not known.
        is_answer: whether it answers the flow's first packet: then `translated`, `masqueraded` and
            `original` are about that one, and rules that match on some of its destinations split
            the flow's sources.
        sources: its possible sources, while `source` is not known.
        destinations: its possible destinations, likewise.
        marks: its marks by its source, if rules that match on the source may set them without
            splitting `sources`; `mark` is then what they have in common. None: it has one mark.
    """

    protocol: str | None = None
    source: Address | None = None
    source_port: int | None = None
    destination: Address | None = None
    destination_port: int | None = None
    icmp: tuple[int, int] | None = None
    mark: Mark = Mark()
    flow_mark: Mark = Mark()
    in_interface: str | None = None
    out_interface: str | None = None
    comes_from: Side | None = None
    came_by: Devices | None = None
    leaves_by: Devices | None = None
    is_routed: bool = False
    bridge_port: bool | None = None
    to_node: bool | None = None
    from_node: bool | None = None
    cluster_ip: Address | None = None
    translated: bool | None = False
    masqueraded: bool | None = False
    is_masquerades: bool = False
    original: tuple[Address | None, int | None] | None = None
    is_port_own: bool | None = True
    tracked: bool | None = True
    template: bool = False
    zones: tuple[int, int] | None = NO_ZONES
    is_answer: bool = False
    sources: Region | None = None
    destinations: Region | None = None
    marks: SourceMarks | None = None

    def parted(self, by: Parted) -> tuple[Packet, Packet]:
        """Return the packets inside and outside of what a rule matches on."""
        if self.sources is self.destinations:  # it is sent to its own source
            parts = ((each, each) for each in (by.inside, by.outside))
            inside, outside = (replace(self, sources=a, destinations=b) for a, b in parts)
            return inside, outside
        if by.region is self.sources:
            return replace(self, sources=by.inside), replace(self, sources=by.outside)
        return replace(self, destinations=by.inside), replace(self, destinations=by.outside)

    @property
    def clients(self) -> Region | None:
        """The possible sources of the flow, however rules have split them."""
        return self.destinations if self.is_answer else self.sources

    def of_clients(self, region: Region | None) -> Packet:
        """Return the packet of a flow from other sources; None: nothing is known of them."""
        if self.is_answer:
            return replace(self, destinations=region)
        return replace(self, sources=region)

    def from_all(self) -> Packet:
        """Return the packet of a flow from all sources again, however rules have split them."""
        clients = self.destinations if self.is_answer else self.sources
        if clients is None or clients.whole is clients:
            return self
        return self.of_clients(clients.whole)

    def with_one_mark(self) -> Packet:
        """Return the packet with a mark that does not depend on its source.

        Raises:
            MarksDiffer: it does.
        """
        if self.marks is None:
            return self
        if len(self.marks.parts) > 1:
            raise MarksDiffer
        return replace(self, marks=None)

    def __hash__(self) -> int:
        # Only fields in which the packets of one traversal differ: hashing all of them would take
        # as long as matching a rule.
        mark, of, to = self.mark, self.source, self.destination
        return hash(
            (
                mark.value,
                mark.unknown,
                self.flow_mark.value,
                # Of ipaddress, not public: much quicker than an address' own hash, and as good.
                None if of is None else of._ip,  # type: ignore[union-attr]  # noqa: SLF001  # above
                None if to is None else to._ip,  # type: ignore[union-attr]  # noqa: SLF001  # above
                self.destination_port,
                self.protocol,
                self.sources,
                self.marks,
            )
        )


#: An unknown packet.
UNKNOWN_PACKET = Packet(
    mark=UNKNOWN_MARK,
    flow_mark=UNKNOWN_MARK,
    translated=None,
    masqueraded=None,
    is_port_own=None,
    tracked=None,
    zones=None,
)
