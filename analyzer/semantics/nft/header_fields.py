"""The value that an nft expression loads from a packet's headers.

Source: nft(8), "PAYLOAD EXPRESSIONS"; Linux, net/netfilter/nft_payload.c; seen on Linux 6.18.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.addresses import Address
from analyzer.model.bits import ANY, Bits
from analyzer.model.nft import names
from analyzer.model.packet import Packet
from analyzer.model.region import Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.assumed import SEGMENT_SIZE
from analyzer.semantics.masquerade import is_from_masquerade, is_to_masquerade
from analyzer.semantics.nft.values import Evaluated
from analyzer.semantics.situation import (
    HAS_SEGMENT_SIZE,
    PROTOCOL,
    SEGMENT_SIZES,
    Situation,
)

#: Numbers of the packet's protocol, as iptables prints it. Source: IANA, protocol numbers.
NUMBERS: Final = {"ipv6-icmp": 58, **names.PROTOCOLS}
#: Protocols whose header begins with two ports.
_WITH_PORTS: Final = frozenset({"tcp", "udp", "sctp", "dccp", "udplite"})
_SYN: Final = names.TCP_FLAGS["syn"]
#: Flags that the first TCP packet does not have; it may have ECN and URG.
_NOT_FIRST: Final = frozenset({"fin", "rst", "ack"})


def payload(
    protocol: str, field: str, packet: Packet, family: str, situation: Situation
) -> Evaluated:
    """Return the value of a header's field; `family` is the packet's."""
    match protocol, field:
        case "ip" | "ip6", _ if protocol != family:
            return Evaluated(Ternary.FALSE, ANY)
        case "ip" | "ip6", "saddr":
            held = address_of(packet.source, packet.sources)
            return Evaluated(Ternary.TRUE, _chosen(held, is_from_masquerade(packet), situation))
        case "ip" | "ip6", "daddr":
            held = address_of(packet.destination, packet.destinations)
            return Evaluated(Ternary.TRUE, _chosen(held, is_to_masquerade(packet), situation))
        case ("ip", "protocol") | ("ip6", "nexthdr"):
            return Evaluated(Ternary.TRUE, protocol_of(packet, situation), NUMBERS)
        case "ip", "version":
            return Evaluated(Ternary.TRUE, Bits(4))
        case "ip6", "version":
            return Evaluated(Ternary.TRUE, Bits(6))
        case "ip" | "ip6", _:
            return Evaluated(Ternary.TRUE, ANY)
        case "th", "sport" | "dport":
            if packet.protocol is None:
                situation.ask(PROTOCOL)
            if packet.protocol not in _WITH_PORTS:
                return Evaluated(Ternary.TRUE, ANY)  # whatever stands there
            return Evaluated(Ternary.TRUE, port_of(packet, field, situation))
        case "tcp", "flags":
            flags = names.TCP_FLAGS
            open_ = sum(bit for word, bit in flags.items() if word not in _NOT_FIRST) & ~_SYN
            if packet.is_answer:
                held = Bits(_SYN | flags["ack"], open_)
            else:
                held = Bits(_SYN, open_) if situation.opens_flow else ANY
            return Evaluated(_is(packet, "tcp", situation), held, flags)
        case "icmp", _:
            of_icmp = _is(packet, "icmp", situation) & Ternary.of(family == "ip")
            return Evaluated(of_icmp, _icmp(packet, field), names.ICMP_TYPES)
        case "icmpv6", _:
            of_icmp = _is(packet, "ipv6-icmp", situation) & Ternary.of(family == "ip6")
            return Evaluated(of_icmp, _icmp(packet, field), names.ICMPV6_TYPES)
        case _, "sport" | "dport":
            return Evaluated(_is(packet, protocol, situation), port_of(packet, field, situation))
        case _:
            known = protocol in NUMBERS
            applies = _is(packet, protocol, situation) if known else Ternary.UNKNOWN
            return Evaluated(applies & Ternary.UNKNOWN, ANY)


def _is(packet: Packet, protocol: str, situation: Situation) -> Ternary:
    if packet.protocol is None:
        situation.ask(PROTOCOL)
        return Ternary.UNKNOWN
    return Ternary.of(packet.protocol == protocol)


def _chosen(held: Bits | Region, by_masquerade: bool, situation: Situation) -> Bits | Region:
    """Return what is known of an address, also if MASQUERADE chose it."""
    known = situation.masquerades
    return known.bits if held is ANY and by_masquerade and known is not None else held


def address_of(address: Address | None, among: Region | None) -> Bits | Region:
    """Return what is known of an address, or of one among some."""
    if address is None:
        return among or ANY
    return Bits(int(address))


def port_of(packet: Packet, field: str, situation: Situation | None = None) -> Bits:
    """Return a port, ``sport`` or ``dport``; without a situation nothing is assumed of it."""
    if situation is not None:
        if field == "sport":
            return situation.source_port(packet)
        situation.ask_port(packet)
        return situation.destination_port(packet)
    port = packet.source_port if field == "sport" else packet.destination_port
    return ANY if port is None else Bits(port)


def segment_size(field: str | None, packet: Packet, situation: Situation) -> Evaluated:
    """Return ``tcp option maxseg``, without a field whether it is there.

    Of another protocol it is absent: nft lists a rule alike whether it breaks there, or not.

    Source: Linux, net/netfilter/nft_exthdr.c, ``nft_exthdr_tcp_eval``.
    """
    is_tcp = _is(packet, "tcp", situation)
    if is_tcp is Ternary.FALSE:
        return Evaluated(is_tcp, ANY) if field is not None else Evaluated(Ternary.UNKNOWN, Bits(0))
    begins = is_tcp is Ternary.TRUE and situation.begins_connection(packet)
    if not begins or situation.assumed is None or SEGMENT_SIZE not in situation.assumed.values:
        return Evaluated(Ternary.UNKNOWN, ANY)
    match field:
        case None:
            return Evaluated(Ternary.TRUE, HAS_SEGMENT_SIZE)
        case "size":
            return Evaluated(Ternary.TRUE, SEGMENT_SIZES)
        case _:
            return Evaluated(Ternary.UNKNOWN, ANY)


def protocol_of(packet: Packet, situation: Situation) -> Bits:
    """Return the number of the packet's protocol."""
    if packet.protocol is None:
        situation.ask(PROTOCOL)
        return ANY
    text = packet.protocol
    found = int(text) if text.isdecimal() else NUMBERS.get(text)
    return ANY if found is None else Bits(found)


def _icmp(packet: Packet, field: str) -> Bits:
    if packet.icmp is None or field not in {"type", "code"}:
        return ANY
    return Bits(packet.icmp[0 if field == "type" else 1])
