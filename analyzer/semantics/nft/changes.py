"""How nft statements change a packet: its marks, its fields, whether conntrack sees it.

Source: Linux, net/netfilter/nft_meta.c, nft_ct.c, nft_payload.c; nft(8), "STATEMENTS".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from analyzer.model.addresses import Address
from analyzer.model.bits import Bits
from analyzer.model.nft.expressions import (
    Continue,
    Expression,
    Exthdr,
    MapLookup,
    Payload,
)
from analyzer.model.nft.statements import (
    Counter,
    CtSet,
    Dup,
    FlowAdd,
    Log,
    Mangle,
    MetaSet,
    Notrack,
    Statement,
)
from analyzer.model.packet import ALL_BITS, UNKNOWN_MARK, Mark, Packet
from analyzer.model.probability import Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value
from analyzer.semantics.nft.matching import Lookups
from analyzer.semantics.nft.operands import operands
from analyzer.semantics.nft.values import Draw, Value
from analyzer.semantics.situation import Situation

#: Most marks that are followed one by one.
_MOST_DRAWN: Final = 256


@value
class ChangedPackets:
    """The packets that a statement may make of one."""

    ways: tuple[tuple[Packet, Dyadic | None], ...]
    applies: Ternary = Ternary.TRUE
    is_sure: bool = True


class Changes:
    """The effect of one table's statements on a packet."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    def changed(
        self, given: MetaSet | CtSet | Mangle | Notrack, packet: Packet, situation: Situation
    ) -> ChangedPackets:
        """Return the effect of a statement that changes a packet or its flow."""
        match given:
            case MetaSet("mark", operand):
                return self._set(operand, packet, lambda mark: replace(packet, mark=mark))
            case CtSet("mark", operand):
                if packet.tracked is False or not situation.has_entry:
                    return self._set(operand, packet, lambda _: packet)
                old, is_tracked = packet.flow_mark, packet.tracked
                return self._set(
                    operand,
                    packet,
                    lambda new: replace(packet, flow_mark=new if is_tracked else new.joined(old)),
                )
            case CtSet("zone", zone, direction) if not situation.has_entry:
                if packet.template:
                    return ChangedPackets(((packet, None),))
                # A template in place of an entry, which also undoes a notrack.
                put = replace(packet, template=True, tracked=True, zones=zones_set(zone, direction))
                return ChangedPackets(((put, None),))
            case MetaSet(_, operand) | CtSet(_, operand):
                # A priority, a class: not followed, but its operand may end the rule.
                return self._set(operand, packet, lambda _: packet)
            case Notrack():
                # A packet with an entry, or a template in place of it, stays as it is.
                has_one = situation.has_entry or packet.template
                return ChangedPackets(
                    ((packet if has_one else replace(packet, tracked=False), None),)
                )
            case Mangle(Payload(protocol, field), operand):
                return self._field_set(protocol, field, operand, packet)
            case Mangle(Exthdr("tcp option")):  # a smaller MSS, as a rule: no address or port
                return ChangedPackets(((packet, None),), Ternary.UNKNOWN)
            case Mangle():
                return ChangedPackets(((_rewritten(packet), None),))

    def marked(
        self, statements: Iterable[Statement], packet: Packet, situation: Situation
    ) -> Packet | None:
        """Return the packet after statements that certainly at most set marks; None: they do more.

        Raises:
            Parted: a mark depends on the source.
        """
        for each in statements:
            match each:
                case MetaSet("mark") | CtSet("mark"):
                    made = self.changed(each, packet, situation)
                    if not made.is_sure or made.applies is not Ternary.TRUE or made.ways[1:]:
                        return None
                    packet = made.ways[0][0]
                case Counter() | Log() | Dup() | FlowAdd() | Continue():
                    pass
                case _:
                    return None
        return packet

    def _set(
        self, operand: Expression, packet: Packet, made: Callable[[Mark], Packet]
    ) -> ChangedPackets:
        """Return the packets that `made` returns for the marks that an operand may give."""
        if isinstance(operand, MapLookup):
            found = operands(self._lookups, operand, packet)
            marks = [(self._mark(each.given, packet), each.chance) for each in found.values]
            applies, is_sure = found.applies, found.is_sure
        else:
            got = self._lookups.given(operand, packet)
            applies, is_sure = got.applies, True
            marks = _drawn(got.held) or [(_mark(got.held), None)]
        ways = [(made(mark), chance) for mark, chance in marks]
        if all(chance is None for _, chance in ways):
            ways = list(dict.fromkeys(ways))
        return ChangedPackets(tuple(ways), applies, is_sure)

    def _mark(self, given: Expression | None, packet: Packet) -> Mark:
        return UNKNOWN_MARK if given is None else _mark(self._lookups.given(given, packet).held)

    def _field_set(
        self, protocol: str, field: str, operand: Expression, packet: Packet
    ) -> ChangedPackets:
        there = self._lookups.read(Payload(protocol, field), packet).applies
        name = _FIELDS.get(field)
        if name is None or protocol not in _HEADERS:
            return ChangedPackets(((packet, None),), there)  # a field that no answer rests on
        found = operands(self._lookups, operand, packet)
        ways = tuple((_with_field(packet, name, each.given), each.chance) for each in found.values)
        return ChangedPackets(ways, there & found.applies, found.is_sure)


_FIELDS: Final = {
    "saddr": "source",
    "daddr": "destination",
    "sport": "source_port",
    "dport": "destination_port",
}
_HEADERS: Final = frozenset({"ip", "ip6", "th", "tcp", "udp", "sctp", "dccp", "udplite"})


def _with_field(packet: Packet, name: str, given: Expression | None) -> Packet:
    changed: Address | int | None = None
    if name in {"source", "destination"}:
        if isinstance(given, IPv4Address | IPv6Address):
            changed = given
    elif isinstance(given, int):
        changed = given
    packet = replace(packet, **{name: changed})
    match name:
        case "destination":
            kept = not packet.is_answer and packet.is_masquerades
            nowhere = replace(packet, to_node=None, cluster_ip=None, original=None)
            return replace(nowhere, destinations=None, is_masquerades=kept)
        case "source":
            kept = packet.is_answer and packet.is_masquerades
            return replace(packet, from_node=None, sources=None, is_masquerades=kept)
        case "source_port":
            return replace(packet, is_port_own=False)
        case "destination_port":
            return replace(packet, original=None)
        case _:
            return packet


def zones_set(zone: Expression, direction: str | None) -> tuple[int, int] | None:
    """Return the zones of a flow and of answers to it; None: not known.

    Source: Linux, net/netfilter/nft_ct.c, ``nft_ct_set_zone_eval``.
    """
    if not isinstance(zone, int):
        return None
    return 0 if direction == "reply" else zone, 0 if direction == "original" else zone


def _rewritten(packet: Packet) -> Packet:
    """Return a packet of which some unknown bytes were overwritten."""
    return replace(
        packet,
        source=None,
        sources=None,
        destination=None,
        destinations=None,
        is_masquerades=False,
        source_port=None,
        is_port_own=False,
        destination_port=None,
        to_node=None,
        from_node=None,
        cluster_ip=None,
        original=None,
    )


def _mark(held: Value) -> Mark:
    if not isinstance(held, Bits):
        return UNKNOWN_MARK
    return Mark(held.value & ALL_BITS, held.unknown & ALL_BITS)


def _drawn(held: Value) -> list[tuple[Mark, Dyadic | None]]:
    """Return the marks of a random draw, if they are not too many."""
    if not isinstance(held, Draw) or not held.is_random or held.modulus > _MOST_DRAWN:
        return []
    numbers = range(held.offset, held.offset + held.modulus)
    return [(Mark(number & ALL_BITS), held.chance(number, number)) for number in numbers]
