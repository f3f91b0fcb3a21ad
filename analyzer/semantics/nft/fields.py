"""The value that an nft expression loads from a packet.

Source: nft(8), "EXPRESSION TYPES"; Linux, net/netfilter/nft_payload.c, nft_meta.c, nft_ct.c,
nft_fib.c, nft_numgen.c, nft_hash.c, nft_bitwise.c; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from analyzer.model.addresses import Address
from analyzer.model.bits import ANY, Bits
from analyzer.model.nft import names
from analyzer.model.nft.expressions import (
    Binary,
    Concat,
    Constant,
    Ct,
    Expression,
    Fib,
    Flags,
    Ipsec,
    Jhash,
    Meta,
    Numgen,
    Payload,
    RawPayload,
    Rt,
    Socket,
    Symhash,
)
from analyzer.model.packet import Packet
from analyzer.model.probability import NUMGEN_BITS
from analyzer.model.region import Region
from analyzer.model.routing import LOOPBACK
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumed import ADDRESS_TYPE, POLICY
from analyzer.semantics.flow_matching import sent, state_of
from analyzer.semantics.nft.held import Draw, Held, Read, ReplyRoute, Type
from analyzer.semantics.node_matching import has_socket, passes_reverse_path
from analyzer.semantics.situation import EPHEMERAL, FIRST, Situation

#: Numbers of the packet's protocol, as iptables prints it. Source: IANA, protocol numbers.
_NUMBERS: Final = {"ipv6-icmp": 58, **names.PROTOCOLS}
#: Protocols whose header begins with two ports.
_WITH_PORTS: Final = frozenset({"tcp", "udp", "sctp", "dccp", "udplite"})
_ETHER_TYPES: Final = {"ip": 0x0800, "arp": 0x0806, "vlan": 0x8100, "ip6": 0x86DD}
_STATES: Final = {"NEW": 8, "ESTABLISHED": 2, "RELATED": 4, "INVALID": 1, "UNTRACKED": 64}
_SYN: Final = names.TCP_FLAGS["syn"]
#: Flags that the first TCP packet does not have; it may have ECN and URG.
_NOT_FIRST: Final = frozenset({"fin", "rst", "ack"})
#: Fields with names at places of `@nh` and `@th`: base, offset, length.
_PLACES: Final = {
    ("th", 0, 16): ("th", "sport"),
    ("th", 16, 16): ("th", "dport"),
}
_PLACES_BY_FAMILY: Final = {
    "ip": {
        ("nh", 72, 8): ("ip", "protocol"),
        ("nh", 96, 32): ("ip", "saddr"),
        ("nh", 128, 32): ("ip", "daddr"),
    },
    "ip6": {
        ("nh", 48, 8): ("ip6", "nexthdr"),
        ("nh", 64, 128): ("ip6", "saddr"),
        ("nh", 192, 128): ("ip6", "daddr"),
    },
}
#: Fields of a reply, by the corresponding ones of the first packet.
_SWAPPED: Final = {
    "saddr": "daddr",
    "daddr": "saddr",
    "proto-src": "proto-dst",
    "proto-dst": "proto-src",
}
_MARK_BITS: Final = 32


_NOTHING: Final = Read(Ternary.UNKNOWN, ANY)
_NONE: Final[Mapping[str, int]] = {}


def read(given: Expression, packet: Packet, family: str, situation: Situation) -> Read:
    """Return the value of an expression on the left of a comparison; `family` is the packet's."""
    match given:
        case Payload(protocol, field):
            return _payload(protocol, field, packet, family, situation)
        case RawPayload(base, offset, length):
            place = base, offset, length
            known = _PLACES.get(place) or _PLACES_BY_FAMILY[family].get(place)
            return _NOTHING if known is None else _payload(*known, packet, family, situation)
        case Meta(key):
            return _meta(key, packet, family, situation)
        case Ct(key, direction):
            return _ct(key, direction, packet, family, situation)
        case Fib(result, flags):
            return _fib(result, flags, packet, situation)
        case Socket():
            return Read(has_socket(packet, situation), ANY)
        case Ipsec() if situation.assume(POLICY) is not None:
            return Read(Ternary.FALSE, ANY)
        case Rt("ipsec") if situation.assume(POLICY) is not None:
            return Read(Ternary.TRUE, Bits(0))
        case Numgen(mode, modulus, offset):
            return _drawn(Draw(modulus, offset, mode == "random"))
        case Jhash(_, modulus, _, offset) | Symhash(modulus, offset):
            return _drawn(Draw(modulus, offset, is_random=False))
        case Concat(parts):
            reads = [read(part, packet, family, situation) for part in parts]
            applies = Ternary.TRUE
            for each in reads:
                applies &= each.applies
            words = tuple(w if isinstance(w := r.words, Mapping) else _NONE for r in reads)
            held = tuple(each.held for each in reads)
            if packet.is_answer:  # a key with the client's port is left open, and nothing assumed
                held = tuple(ANY if each is EPHEMERAL else each for each in held)
            return Read(applies, held, words)
        case Binary(operator, left, right):
            one = read(left, packet, family, situation)
            if isinstance(one.held, Bits):  # what is computed of it rests on it
                situation.told_by_port(one.held, Ternary.TRUE)
            number_ = constant_number(right, one.words if isinstance(one.words, Mapping) else _NONE)
            if number_ is None:
                return _computed(operator, one, read(right, packet, family, situation), given)
            return _computed(operator, one, Read(Ternary.TRUE, Bits(number_)), given)
        case bool() | int() | IPv4Address() | IPv6Address():
            return Read(Ternary.TRUE, Bits(int(given)))
        case str():
            return Read(Ternary.TRUE, None)
        case Flags():
            return Read(Ternary.TRUE, ANY)
        case _:
            return _NOTHING


def _drawn(draw: Draw) -> Read:
    # With a single number there is no draw.
    return Read(Ternary.TRUE, Bits(draw.offset) if draw.modulus == 1 else draw)


def number(constant: Constant, words: Mapping[str, int]) -> int | None:
    """Return the number of a constant; None for an unknown word."""
    match constant:
        case bool() | int():
            return int(constant)
        case str():
            return words.get(constant)
        case _:
            return int(constant)


def _payload(protocol: str, field: str, packet: Packet, family: str, situation: Situation) -> Read:
    match protocol, field:
        case "ip" | "ip6", _ if protocol != family:
            return Read(Ternary.FALSE, ANY)
        case "ip" | "ip6", "saddr":
            return Read(Ternary.TRUE, _address(packet.source, packet.sources))
        case "ip" | "ip6", "daddr":
            return Read(Ternary.TRUE, _address(packet.destination, packet.destinations))
        case ("ip", "protocol") | ("ip6", "nexthdr"):
            return Read(Ternary.TRUE, _protocol(packet), _NUMBERS)
        case "ip", "version":
            return Read(Ternary.TRUE, Bits(4))
        case "ip6", "version":
            return Read(Ternary.TRUE, Bits(6))
        case "ip" | "ip6", _:
            return Read(Ternary.TRUE, ANY)
        case "th", "sport" | "dport":
            if packet.protocol not in _WITH_PORTS:
                return Read(Ternary.TRUE, ANY)  # whatever stands there
            return Read(Ternary.TRUE, _port(packet, field, situation))
        case "tcp", "flags":
            flags = names.TCP_FLAGS
            open_ = sum(bit for word, bit in flags.items() if word not in _NOT_FIRST) & ~_SYN
            if packet.is_answer:
                held = Bits(_SYN | flags["ack"], open_)
            else:
                held = Bits(_SYN, open_) if situation.opens_flow else ANY
            return Read(_is(packet, "tcp"), held, flags)
        case "icmp", _:
            of_icmp = _is(packet, "icmp") & Ternary.of(family == "ip")
            return Read(of_icmp, _icmp(packet, field), names.ICMP_TYPES)
        case "icmpv6", _:
            of_icmp = _is(packet, "ipv6-icmp") & Ternary.of(family == "ip6")
            return Read(of_icmp, _icmp(packet, field), names.ICMPV6_TYPES)
        case _, "sport" | "dport":
            return Read(_is(packet, protocol), _port(packet, field, situation))
        case _:
            known = protocol in _NUMBERS
            return Read(_is(packet, protocol) & Ternary.UNKNOWN if known else Ternary.UNKNOWN, ANY)


def _is(packet: Packet, protocol: str) -> Ternary:
    if packet.protocol is None:
        return Ternary.UNKNOWN
    return Ternary.of(packet.protocol == protocol)


def _address(address: Address | None, among: Region | None) -> Bits | Region:
    if address is None:
        return among or ANY
    return Bits(int(address))


def _port(packet: Packet, field: str, situation: Situation | None = None) -> Bits:
    if situation is not None:
        if field == "sport":
            return situation.source_port(packet)
        situation.ask_port(packet)
        return situation.destination_port(packet)
    port = packet.source_port if field == "sport" else packet.destination_port
    return ANY if port is None else Bits(port)


def _protocol(packet: Packet) -> Bits:
    if packet.protocol is None:
        return ANY
    text = packet.protocol
    found = int(text) if text.isdecimal() else _NUMBERS.get(text)
    return ANY if found is None else Bits(found)


def _icmp(packet: Packet, field: str) -> Bits:
    if packet.icmp is None or field not in {"type", "code"}:
        return ANY
    return Bits(packet.icmp[0 if field == "type" else 1])


def _meta(key: str, packet: Packet, family: str, situation: Situation) -> Read:
    match key:
        case "mark":
            return Read(Ternary.TRUE, Bits(packet.mark.value, packet.mark.unknown))
        case "l4proto":
            return Read(Ternary.TRUE, _protocol(packet), _NUMBERS)
        case "nfproto":
            numbers = names.NF_PROTOCOLS
            own = numbers["ipv4" if family == "ip" else "ipv6"]
            return Read(Ternary.TRUE, Bits(own), numbers)
        case "protocol":
            return Read(Ternary.TRUE, Bits(_ETHER_TYPES[family]), _ETHER_TYPES)
        case "iifname" | "iif":
            return Read(Ternary.TRUE, situation.came_by(packet))
        case "oifname" | "oif":
            return Read(Ternary.TRUE, situation.leaves_by(packet))
        case "random":
            return Read(Ternary.TRUE, Draw(1 << NUMGEN_BITS))
        case "skuid" | "skgid":
            # A flow that the node only forwards has no socket here.
            forwarded = situation.is_forwarded(packet)
            return Read(Ternary.FALSE if forwarded else Ternary.UNKNOWN, ANY)
        case "pkttype" if situation.assume(ADDRESS_TYPE) is not None:
            return Read(Ternary.TRUE, Bits(names.PACKET_TYPES["host"]), names.PACKET_TYPES)
        case "ipsec" | "secpath":
            return _NOTHING if situation.assume(POLICY) is None else Read(Ternary.TRUE, Bits(0))
        case _:
            return _NOTHING


def _ct(key: str, direction: str | None, packet: Packet, family: str, situation: Situation) -> Read:
    if key == "state":
        state = state_of(packet, situation)
        return Read(Ternary.TRUE, ANY if state is None else Bits(_STATES[state]), names.CT_STATES)
    if packet.tracked is None or packet.template:
        applies = Ternary.UNKNOWN
    else:
        # A packet without an entry has only the state.
        applies = Ternary.of(packet.tracked and situation.has_entry)
    if key.startswith(("ip ", "ip6 ")) and not key.startswith(f"{family} "):
        return Read(Ternary.FALSE, ANY)
    first = situation.state in FIRST
    match key:
        case "mark":
            return Read(applies, Bits(packet.flow_mark.value, packet.flow_mark.unknown))
        case "status" if first or packet.is_answer:
            return Read(applies, _status(packet), names.CT_STATUSES)
        case "direction" if first or packet.is_answer:
            return Read(applies, Bits(int(packet.is_answer)), names.CT_DIRECTIONS)
        case "l3proto":
            return Read(applies, ANY, names.NF_PROTOCOLS)
        case "protocol":
            return Read(applies, _protocol(packet), _NUMBERS)
        case _ if packet.is_answer:
            situation.ask_any_port()  # as some of these do
            return Read(applies, _tuple_of_answer(key, direction, packet))
        case _ if first:
            situation.ask_port(packet)  # as some of these do
            return Read(applies, _tuple(key, direction, packet, sent(packet, situation)))
        case _:
            return Read(applies, ANY, names.CT_STATUSES if key == "status" else _NONE)


def _status(packet: Packet) -> Bits:
    """Return the status of a flow whose first packet passes, or the answer to it.

    Bits without a name are not followed: for which directions nat is settled, and others. Source:
    Linux, include/uapi/linux/netfilter/nf_conntrack_common.h, ``enum ip_conntrack_status``.
    """
    bits = names.CT_STATUSES
    # A packet that comes back to the node that sent it was confirmed on its way out.
    held = bits["confirmed"] if packet.in_interface == LOOPBACK else 0
    unknown = ((1 << _MARK_BITS) - 1) & ~sum(bits.values())
    if packet.is_answer:
        held, unknown = bits["confirmed"] | bits["seen-reply"], unknown | bits["assured"]
    found = Bits(held, unknown)
    for word, changed in (("dnat", packet.translated), ("snat", packet.masqueraded)):
        # A source that is masqueraded as itself does not count as changed.
        is_known = changed is not None and not (word == "snat" and changed)
        found |= (Bits(bits[word]) if changed else Bits(0)) if is_known else Bits(0, bits[word])
    return found


def _tuple(key: str, direction: str | None, packet: Packet, flow: Packet | None) -> Bits | Region:
    """Return an address or port of a flow whose first packet passes."""
    field = key.removeprefix("ip ").removeprefix("ip6 ")
    first = direction in {None, "original"}
    # A reply goes from the packet's destination to its source, as translated so far.
    seen = flow if first else packet
    if seen is None:
        return ANY
    match field if first else _SWAPPED.get(field, field):
        case "saddr":
            return _address(seen.source, seen.sources)
        case "daddr":
            return _address(seen.destination, seen.destinations)
        case "proto-src":
            return _port(seen, "sport")
        case "proto-dst":
            return _port(seen, "dport")
        case _:
            return ANY


def _tuple_of_answer(key: str, direction: str | None, packet: Packet) -> Bits | Region:
    """Return an address or port of a flow that an answer belongs to."""
    if direction != "reply":
        to, port = packet.original or (None, None)
        flow = Packet(
            source=packet.destination,
            sources=packet.destinations,
            destination=to,
            destination_port=port,
        )
        return _tuple(key, "original", packet, flow)
    if packet.masqueraded is not False:  # it goes to an address of the node first
        packet = replace(packet, destination=None, destinations=None)
    # In reply to what it answers, not to itself.
    field = key.removeprefix("ip ").removeprefix("ip6 ")
    return _tuple(field, "original", packet, replace(packet, destination_port=None))


def _fib(result: str, flags: tuple[str, ...], packet: Packet, situation: Situation) -> Read:
    if result != "type":
        if {"saddr", "iif"} <= set(flags):
            return Read(Ternary.TRUE, ReplyRoute(passes_reverse_path(packet, situation)))
        return Read(Ternary.TRUE, None if result == "oifname" else ANY)
    if "daddr" in flags:
        local, of = situation.is_local(packet), packet.destination or packet.destinations
    else:
        local, of = situation.is_from_node(packet), packet.source or packet.sources
    if {"iif", "oif"} & set(flags):
        local &= Ternary.UNKNOWN  # it may be an address of another device
    return Read(Ternary.TRUE, Type(local, of, situation.assume), names.ADDRESS_TYPES)


def _computed(operator: str, left: Read, right: Read, given: Binary) -> Read:
    words = left.words if isinstance(left.words, Mapping) else _NONE
    applies = left.applies & right.applies
    held, other = left.held, right.held
    number_ = other.known if isinstance(other, Bits) else None
    if isinstance(held, Draw) and number_ is not None:
        return Read(applies, _cut(operator, held, number_))
    if not isinstance(held, Bits) or not isinstance(other, Bits):
        return Read(applies, ANY, words)
    match operator:
        case "&":
            held &= other
        case "|":
            held |= other
        case "^":
            held ^= other
        case "<<" | ">>" if number_ is not None and _is_mark(given.left):
            held = held.shifted(number_ if operator == "<<" else -number_, _MARK_BITS)
        case _:
            held = ANY
    return Read(applies, held, words)


def _is_mark(given: Expression) -> bool:
    """Return whether an expression has the width of a mark."""
    match given:
        case Meta("mark") | Ct("mark"):
            return True
        case Binary(_, left, _):
            return _is_mark(left)
        case _:
            return False


def _cut(operator: str, draw: Draw, other: int) -> Held:
    """Return the lowest bits of 32 random ones."""
    whole = draw == Draw(1 << NUMGEN_BITS)
    lowest = operator == "&" and other & (other + 1) == 0 and other >> NUMGEN_BITS == 0
    if not whole or not lowest:
        return ANY
    return Draw(other + 1) if other else Bits(0)


def constant_number(given: Expression, words: Mapping[str, int]) -> int | None:
    """Return the number that a constant, flags or a computation of these has, or None."""
    match given:
        case Flags(parts):
            found = [number(part, words) for part in parts]
            if None in found:
                return None
            return sum(set(filter(None, found)))
        case Binary("|", left, right):
            one, other = constant_number(left, words), constant_number(right, words)
            return None if one is None or other is None else one | other
        case bool() | int() | str() | IPv4Address() | IPv6Address():
            return number(given, words)
        case _:
            return None
