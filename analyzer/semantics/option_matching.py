"""Options of matches: absent, given or negated; and ports."""

from __future__ import annotations

from functools import reduce
from typing import Final, TypeVar

from analyzer.model.bits import Bits
from analyzer.model.iptables.matches import MatchMultiport
from analyzer.model.iptables.options import Option, Range
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.semantics.situation import Situation

T = TypeVar("T")

_ALL_PORTS: Final = Range(0, 0xFFFF)


def signed(option: Option[T] | None, holds: Ternary) -> Ternary:
    """Return the result of an option: true if it is absent."""
    if option is None:
        return Ternary.TRUE
    return ~holds if option.negated else holds


def port(number: int | None, option: Option[Range] | None) -> Ternary:
    """Return whether a port, None if not known, satisfies an option."""
    if option is None:
        return Ternary.TRUE
    if number is None:
        whole = option.value == _ALL_PORTS
        return signed(option, Ternary.TRUE if whole else Ternary.UNKNOWN)
    return signed(option, Ternary.of(number in option.value))


def source_port(packet: Packet, option: Option[Range] | None, situation: Situation) -> Ternary:
    """Return whether a packet's source port satisfies an option."""
    if option is None or packet.source_port is not None or option.value == _ALL_PORTS:
        return port(packet.source_port, option)
    return signed(option, _source_port_in(packet, (option.value,), situation))


def _source_port_in(packet: Packet, ports: tuple[Range, ...], situation: Situation) -> Ternary:
    return _among(situation.source_port(packet), ports, situation)


def destination_port(packet: Packet, option: Option[Range] | None, situation: Situation) -> Ternary:
    """Evaluate a match on the destination port."""
    if option is None:
        return Ternary.TRUE
    return signed(option, _destination_port_in(packet, (option.value,), situation))


def _destination_port_in(packet: Packet, ports: tuple[Range, ...], situation: Situation) -> Ternary:
    situation.ask_port(packet)
    port = packet.destination_port
    if port is not None:
        return Ternary.of(any(port in each for each in ports))
    return _among(situation.destination_port(packet), ports, situation)


def _among(held: Bits, ports: tuple[Range, ...], situation: Situation) -> Ternary:
    among = (held.is_within(each.first, each.last) for each in ports)
    return situation.told_by_port(held, reduce(Ternary.__or__, among, Ternary.FALSE))


def multiport(match: MatchMultiport, packet: Packet, situation: Situation) -> Ternary:
    """Evaluate ``-m multiport``."""

    def source(option: Option[tuple[Range, ...]]) -> Ternary:
        return _source_port_in(packet, option.value, situation)

    def destination(option: Option[tuple[Range, ...]]) -> Ternary:
        return _destination_port_in(packet, option.value, situation)

    def either(option: Option[tuple[Range, ...]]) -> Ternary:
        return source(option) | destination(option)

    evaluated = (
        signed(option, evaluate(option))
        for option, evaluate in (
            (match.source_ports, source),
            (match.destination_ports, destination),
            (match.ports, either),
        )
        if option is not None
    )
    return reduce(Ternary.__and__, evaluated, Ternary.TRUE)
