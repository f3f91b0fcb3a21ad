"""How nft statements change a packet: translations, marks, fields.

Source: Linux, net/netfilter/nft_nat.c, nft_masq.c, nft_redir.c, nft_meta.c, nft_ct.c,
nft_payload.c; nft(8), "STATEMENTS".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.bits import Bits
from analyzer.model.iptables import targets
from analyzer.model.iptables.options import Range as Ports
from analyzer.model.iptables.targets import NatRange
from analyzer.model.nft.expressions import (
    Concat,
    Expression,
    Exthdr,
    MapLookup,
    Payload,
    Prefix,
    Range,
)
from analyzer.model.nft.statements import (
    CtSet,
    Dnat,
    Mangle,
    Masquerade,
    MetaSet,
    Notrack,
    Redirect,
    Reject,
    Snat,
)
from analyzer.model.packet import ALL_BITS, UNKNOWN_MARK, Mark, Packet
from analyzer.model.probability import ALWAYS, NEVER, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.nft.matching import Lookups
from analyzer.semantics.nft.operands import Draw, Value
from analyzer.semantics.situation import Situation
from analyzer.semantics.translation import redirected, sourced, translated, with_source

_PORT_MAX: Final = 0xFFFF
#: Most marks that are followed one by one.
_MOST_DRAWN: Final = 256
#: iptables' names for nft's ICMP codes, if they are not just concatenated.
_ICMP: Final = {
    "prot-unreachable": "proto-unreachable",
    "no-route": "net-unreachable",
}
_ICMP6: Final = {
    "admin-prohibited": "adm-prohibited",
    "host-unreachable": "addr-unreachable",
}


@value
class Operand:
    """One value that an operand may have; None if there is no operand.

    `chance`: its probability, for a random draw.
    """

    given: Expression | None
    chance: Dyadic | None = None


@value
class Operands:
    """The values that an operand may have.

    Attributes:
        applies: whether it has any; a rule whose operand has none ends there.
        is_sure: whether it certainly has one of them, if it has any.
    """

    values: tuple[Operand, ...]
    applies: Ternary = Ternary.TRUE
    is_sure: bool = True

    @property
    def is_drawn(self) -> bool:
        """Whether nothing but a draw, if anything, decides between the values."""
        if len(self.values) == 1 and self.values[0].chance is None:
            return self.is_sure
        return all(each.chance is not None for each in self.values)


_Target: TypeAlias = targets.Dnat | targets.Snat | targets.Masquerade | targets.Redirect


@value
class Translations:
    """What a nat statement may do, as iptables targets, and the packet after it."""

    ways: tuple[tuple[_Target, Packet, Dyadic | None], ...]
    applies: Ternary
    is_sure: bool


@value
class Changed:
    """The packets that a statement may make of one."""

    ways: tuple[tuple[Packet, Dyadic | None], ...]
    applies: Ternary = Ternary.TRUE
    is_sure: bool = True


class Changes:
    """The effect of one table's statements on packets of one family."""

    def __init__(self, lookups: Lookups, family: str) -> None:
        self._lookups = lookups
        self.family = family

    def translation(
        self, given: Dnat | Snat | Masquerade | Redirect, packet: Packet
    ) -> Translations | None:
        """Return what a nat statement may do; None if nothing to packets of this family."""
        if isinstance(given, Dnat | Snat) and given.family not in {None, self.family}:
            return None
        address = None if isinstance(given, Masquerade | Redirect) else given.address
        addresses = self._operands(address, packet)
        ports = self._operands(given.port, packet)
        is_drawn = addresses.is_drawn and ports.is_drawn
        ways = [
            (
                *self._translated(given, one.given, other.given, packet),
                _both(one, other) if is_drawn else None,
            )
            for one in addresses.values
            for other in ports.values
        ]
        return Translations(
            tuple(ways), addresses.applies & ports.applies, addresses.is_sure and ports.is_sure
        )

    def is_there(self, given: Dnat | Snat | Masquerade | Redirect, packet: Packet) -> MatchResult:
        """Return whether the lookups for a translation find something; otherwise the rule ends.

        Source: Linux, net/netfilter/nft_nat.c, ``nft_nat_inet_eval``: a translation for another
        family does nothing, but its address and port have been looked up by then.
        """
        address = None if isinstance(given, Masquerade | Redirect) else given.address
        result = MatchResult(Ternary.TRUE)
        for each in (self._operands(address, packet), self._operands(given.port, packet)):
            chances = [one.chance for one in each.values if one.chance is not None]
            drawn = reduce(Dyadic.__add__, chances, NEVER) if chances else ALWAYS
            sure = each.is_sure or (bool(chances) and each.is_drawn)
            known = each.applies if sure else each.applies & Ternary.UNKNOWN
            known = known if each.values else Ternary.FALSE
            result = MatchResult(result.known & known, result.chance * drawn)
        return result

    def _operands(self, given: Expression | None, packet: Packet) -> Operands:
        if not isinstance(given, MapLookup):
            return Operands((Operand(given),))
        found = self._lookups.find(given, packet)
        values = tuple(Operand(hit.element.value, hit.chance) for hit in found.hits)
        return Operands(values, found.applies, found.is_sure)

    def _translated(
        self,
        given: Dnat | Snat | Masquerade | Redirect,
        address: Expression | None,
        port: Expression | None,
        packet: Packet,
    ) -> tuple[_Target, Packet]:
        match given:
            case Masquerade():
                # The new source is an address of the outgoing interface, not known here.
                return targets.Masquerade(ports=_ports(port)), with_source(packet, None)
            case Redirect():
                to_ports = _ports(port)
                local = self._lookups.situation.is_local(packet)
                return targets.Redirect(to_ports), redirected(packet, to_ports, local)
            case Dnat():
                to = self._range(address, port, packet.destination, prefix=given.prefix)
                return targets.Dnat(to), translated(packet, to)
            case Snat():
                to = self._range(address, port, packet.source, prefix=given.prefix)
                return targets.Snat(to), sourced(packet, to)

    def _range(
        self,
        address: Expression | None,
        port: Expression | None,
        now: Address | None,
        *,
        prefix: bool,
    ) -> NatRange:
        """Return the range that a translation leads to; computed parts may be anything."""
        if isinstance(address, Concat) and len(address.parts) == 2:  # noqa: PLR2004  # address . port
            address, port = address.parts
        first: Address | None
        last: Address | None
        match address:
            case IPv4Address() | IPv6Address():
                first, last = address, None
            case Range(IPv4Address() | IPv6Address() as low, IPv4Address() | IPv6Address() as high):
                first, last = low, high
            case Prefix() if prefix and now is not None and now.version == address.address.version:
                first, last = _moved(address, now), None
            case Prefix():
                first, last = address.address, _last_of(address)
            case None:
                first, last = None, None
            case _:
                first, last = _all_of(self.family)
        ports = _ports(port)
        return NatRange(
            first,
            last,
            None if ports is None else ports.first,
            None if ports is None or ports.first == ports.last else ports.last,
        )

    # --- marks and fields ---

    def changed(
        self, given: MetaSet | CtSet | Mangle | Notrack, packet: Packet, situation: Situation
    ) -> Changed:
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
                    return Changed(((packet, None),))
                # A template in place of an entry, which also undoes a notrack.
                put = replace(packet, template=True, tracked=True, zones=zones_set(zone, direction))
                return Changed(((put, None),))
            case MetaSet(_, operand) | CtSet(_, operand):
                # A priority, a class: not followed, but its operand may end the rule.
                return self._set(operand, packet, lambda _: packet)
            case Notrack():
                # A packet with an entry, or a template in place of it, stays as it is.
                has_one = situation.has_entry or packet.template
                return Changed(((packet if has_one else replace(packet, tracked=False), None),))
            case Mangle(Payload(protocol, field), operand):
                return self._field_set(protocol, field, operand, packet)
            case Mangle(Exthdr("tcp option")):  # a smaller MSS, as a rule: no address or port
                return Changed(((packet, None),), Ternary.UNKNOWN)
            case Mangle():
                return Changed(((_rewritten(packet), None),))

    def _set(self, operand: Expression, packet: Packet, made: Callable[[Mark], Packet]) -> Changed:
        """Return the packets that `made` returns for the marks that an operand may give."""
        if isinstance(operand, MapLookup):
            found = self._operands(operand, packet)
            marks = [(self._mark(each.given, packet), each.chance) for each in found.values]
            applies, is_sure = found.applies, found.is_sure
        else:
            got = self._lookups.given(operand, packet)
            applies, is_sure = got.applies, True
            marks = _drawn(got.held) or [(_mark(got.held), None)]
        ways = [(made(mark), chance) for mark, chance in marks]
        if all(chance is None for _, chance in ways):
            ways = list(dict.fromkeys(ways))
        return Changed(tuple(ways), applies, is_sure)

    def _mark(self, given: Expression | None, packet: Packet) -> Mark:
        return UNKNOWN_MARK if given is None else _mark(self._lookups.given(given, packet).held)

    def _field_set(self, protocol: str, field: str, operand: Expression, packet: Packet) -> Changed:
        there = self._lookups.read(Payload(protocol, field), packet).applies
        name = _FIELDS.get(field)
        if name is None or protocol not in _HEADERS:
            return Changed(((packet, None),), there)  # a field that no answer rests on
        found = self._operands(operand, packet)
        ways = tuple((_with_field(packet, name, each.given), each.chance) for each in found.values)
        return Changed(ways, there & found.applies, found.is_sure)


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
            return replace(packet, to_node=None, cluster_ip=None, original=None)
        case "source":
            return replace(packet, from_node=None)
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
        destination=None,
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


def _both(one: Operand, other: Operand) -> Dyadic | None:
    if one.chance is None or other.chance is None:
        return other.chance if one.chance is None else one.chance
    return one.chance * other.chance


def _ports(given: Expression | None) -> Ports | None:
    """Return the ports of an operand; a computed one may give any."""
    match given:
        case None:
            return None
        case int():
            return Ports(given, given)
        case Range(int() as first, int() as last):
            return Ports(first, last)
        case _:
            return Ports(0, _PORT_MAX)


def _moved(network: Prefix, now: Address) -> Address:
    """Return an address of `network` with the host bits of `now`."""
    bits = network.address.max_prefixlen - network.length
    host = int(now) & ((1 << bits) - 1)
    return type(network.address)(int(network.address) | host)


def _last_of(network: Prefix) -> Address:
    bits = network.address.max_prefixlen - network.length
    return type(network.address)(int(network.address) | ((1 << bits) - 1))


def _all_of(family: str) -> tuple[Address, Address]:
    if family == "ip":
        return IPv4Address(0), IPv4Address((1 << 32) - 1)
    return IPv6Address(0), IPv6Address((1 << 128) - 1)


def reject_name(given: Reject, family: str) -> str:
    """Return how a packet of a family is rejected, in the words of iptables.

    Source: nftables, src/datatype.c, ``icmpx_code_type``; Linux, nft_reject.c,
    ``nft_reject_icmp_code``.
    """
    if given.type == "tcp reset":
        return "tcp-reset"
    code = str(given.code)
    if family == "ip":
        return f"icmp-{_ICMP.get(code, code)}"
    return f"icmp6-{_ICMP6.get(code, code)}"
