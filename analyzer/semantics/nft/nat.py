"""What nat statements of nft do to a packet, as targets of iptables do it.

Source: Linux, net/netfilter/nft_nat.c, nft_masq.c, nft_redir.c; nft(8), "NAT STATEMENTS".
"""

from __future__ import annotations

from functools import reduce
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.iptables import targets
from analyzer.model.iptables.options import Range as Ports
from analyzer.model.iptables.targets import NatRange
from analyzer.model.nft.expressions import Concat, Expression, Prefix, Range
from analyzer.model.nft.statements import Dnat, Masquerade, Redirect, Snat
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.nft.matching import Lookups
from analyzer.semantics.nft.operands import Operand, operands
from analyzer.semantics.translation import masqueraded, redirected, sourced, translated

_PORT_MAX: Final = 0xFFFF
_Target: TypeAlias = targets.Dnat | targets.Snat | targets.Masquerade | targets.Redirect


@value
class Translations:
    """What a nat statement may do, as iptables targets, and the packet after it."""

    ways: tuple[tuple[_Target, Packet, Dyadic | None], ...]
    applies: Ternary
    is_sure: bool


class NatStatements:
    """The effect of one table's nat statements on packets of one family."""

    def __init__(self, lookups: Lookups, family: str) -> None:
        self._lookups = lookups
        self._family = family

    def translation(
        self, given: Dnat | Snat | Masquerade | Redirect, packet: Packet
    ) -> Translations | None:
        """Return what a nat statement may do; None if nothing to packets of this family."""
        if isinstance(given, Dnat | Snat) and given.family not in {None, self._family}:
            return None
        address = None if isinstance(given, Masquerade | Redirect) else given.address
        addresses = operands(self._lookups, address, packet)
        ports = operands(self._lookups, given.port, packet)
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
        for operand in (address, given.port):
            each = operands(self._lookups, operand, packet)
            chances = [one.chance for one in each.values if one.chance is not None]
            drawn = reduce(Dyadic.__add__, chances, NEVER) if chances else ALWAYS
            sure = each.is_sure or (bool(chances) and each.is_drawn)
            known = each.applies if sure else each.applies & Ternary.UNKNOWN
            known = known if each.values else Ternary.FALSE
            result = MatchResult(result.known & known, result.chance * drawn)
        return result

    def _translated(
        self,
        given: Dnat | Snat | Masquerade | Redirect,
        address: Expression | None,
        port: Expression | None,
        packet: Packet,
    ) -> tuple[_Target, Packet]:
        match given:
            case Masquerade():
                return targets.Masquerade(ports=_ports(port)), masqueraded(packet)
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
                first, last = _all_of(self._family)
        ports = _ports(port)
        return NatRange(
            first,
            last,
            None if ports is None else ports.first,
            None if ports is None or ports.first == ports.last else ports.last,
        )


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
