"""The value that an nft expression loads from a packet.

Source: nft(8), "EXPRESSION TYPES"; Linux, net/netfilter/nft_payload.c, nft_meta.c, nft_ct.c,
nft_fib.c, nft_numgen.c, nft_hash.c, nft_bitwise.c; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from analyzer.model.bits import ANY, Bits
from analyzer.model.nft import names
from analyzer.model.nft.expressions import (
    Binary,
    Concat,
    Constant,
    Ct,
    Expression,
    Exthdr,
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
from analyzer.model.ternary import Ternary
from analyzer.semantics.assumed import ADDRESS_TYPE, POLICY
from analyzer.semantics.nft.ct_fields import ct
from analyzer.semantics.nft.header_fields import NUMBERS, payload, protocol_of, segment_size
from analyzer.semantics.nft.values import Draw, Evaluated, ReplyRoute, Type, Value
from analyzer.semantics.node_matching import has_socket, passes_reverse_path
from analyzer.semantics.situation import EPHEMERAL, Situation

_ETHER_TYPES: Final = {"ip": 0x0800, "arp": 0x0806, "vlan": 0x8100, "ip6": 0x86DD}
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
_MARK_BITS: Final = 32


_NOTHING: Final = Evaluated(Ternary.UNKNOWN, ANY)
_NONE: Final[Mapping[str, int]] = {}


def read(given: Expression, packet: Packet, family: str, situation: Situation) -> Evaluated:
    """Return the value of an expression on the left of a comparison; `family` is the packet's."""
    match given:
        case Payload(protocol, field):
            return payload(protocol, field, packet, family, situation)
        case RawPayload(base, offset, length):
            place = base, offset, length
            known = _PLACES.get(place) or _PLACES_BY_FAMILY[family].get(place)
            return _NOTHING if known is None else payload(*known, packet, family, situation)
        case Meta(key):
            return _meta(key, packet, family, situation)
        case Ct(key, direction):
            return ct(key, direction, packet, family, situation)
        case Fib(result, flags):
            return _fib(result, flags, packet, situation)
        case Socket():
            return Evaluated(has_socket(packet, situation), ANY)
        case Exthdr("tcp option", "maxseg", field):
            return segment_size(field, packet, situation)
        case Ipsec() if situation.assume(POLICY) is not None:
            return Evaluated(Ternary.FALSE, ANY)
        case Rt("ipsec") if situation.assume(POLICY) is not None:
            return Evaluated(Ternary.TRUE, Bits(0))
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
            return Evaluated(applies, held, words)
        case Binary(operator, left, right):
            one = read(left, packet, family, situation)
            if isinstance(one.held, Bits):  # what is computed of it rests on it
                situation.told_by_port(one.held, Ternary.TRUE)
                situation.told_by_size(one.held, Ternary.TRUE)
            number_ = constant_number(right, one.words if isinstance(one.words, Mapping) else _NONE)
            if number_ is None:
                return _computed(operator, one, read(right, packet, family, situation), given)
            return _computed(operator, one, Evaluated(Ternary.TRUE, Bits(number_)), given)
        case bool() | int() | IPv4Address() | IPv6Address():
            return Evaluated(Ternary.TRUE, Bits(int(given)))
        case str():
            return Evaluated(Ternary.TRUE, None)
        case Flags():
            return Evaluated(Ternary.TRUE, ANY)
        case _:
            return _NOTHING


def _drawn(draw: Draw) -> Evaluated:
    # With a single number there is no draw.
    return Evaluated(Ternary.TRUE, Bits(draw.offset) if draw.modulus == 1 else draw)


def number(constant: Constant, words: Mapping[str, int]) -> int | None:
    """Return the number of a constant; None for an unknown word."""
    match constant:
        case bool() | int():
            return int(constant)
        case str():
            return words.get(constant)
        case _:
            return int(constant)


def _meta(key: str, packet: Packet, family: str, situation: Situation) -> Evaluated:
    match key:
        case "mark":
            return Evaluated(Ternary.TRUE, Bits(packet.mark.value, packet.mark.unknown))
        case "l4proto":
            return Evaluated(Ternary.TRUE, protocol_of(packet, situation), NUMBERS)
        case "nfproto":
            numbers = names.NF_PROTOCOLS
            own = numbers["ipv4" if family == "ip" else "ipv6"]
            return Evaluated(Ternary.TRUE, Bits(own), numbers)
        case "protocol":
            return Evaluated(Ternary.TRUE, Bits(_ETHER_TYPES[family]), _ETHER_TYPES)
        case "iifname" | "iif":
            return Evaluated(Ternary.TRUE, situation.came_by(packet))
        case "oifname" | "oif":
            return Evaluated(Ternary.TRUE, situation.leaves_by(packet))
        case "random":
            return Evaluated(Ternary.TRUE, Draw(1 << NUMGEN_BITS))
        case "skuid" | "skgid":
            # A flow that the node only forwards has no socket here.
            forwarded = situation.is_forwarded(packet)
            return Evaluated(Ternary.FALSE if forwarded else Ternary.UNKNOWN, ANY)
        case "pkttype" if situation.assume(ADDRESS_TYPE) is not None:
            return Evaluated(Ternary.TRUE, Bits(names.PACKET_TYPES["host"]), names.PACKET_TYPES)
        case "ipsec" | "secpath":
            return (
                _NOTHING if situation.assume(POLICY) is None else Evaluated(Ternary.TRUE, Bits(0))
            )
        case _:
            return _NOTHING


def _fib(result: str, flags: tuple[str, ...], packet: Packet, situation: Situation) -> Evaluated:
    if result != "type":
        if {"saddr", "iif"} <= set(flags):
            return Evaluated(Ternary.TRUE, ReplyRoute(passes_reverse_path(packet, situation)))
        return Evaluated(Ternary.TRUE, None if result == "oifname" else ANY)
    if "daddr" in flags:
        local, of = situation.is_local(packet), packet.destination or packet.destinations
    else:
        local, of = situation.is_from_node(packet), packet.source or packet.sources
    if {"iif", "oif"} & set(flags):
        local &= Ternary.UNKNOWN  # it may be an address of another device
    return Evaluated(Ternary.TRUE, Type(local, of, situation.assume), names.ADDRESS_TYPES)


def _computed(operator: str, left: Evaluated, right: Evaluated, given: Binary) -> Evaluated:
    words = left.words if isinstance(left.words, Mapping) else _NONE
    applies = left.applies & right.applies
    held, other = left.held, right.held
    number_ = other.known if isinstance(other, Bits) else None
    if isinstance(held, Draw) and number_ is not None:
        return Evaluated(applies, _cut(operator, held, number_))
    if not isinstance(held, Bits) or not isinstance(other, Bits):
        return Evaluated(applies, ANY, words)
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
    return Evaluated(applies, held, words)


def _is_mark(given: Expression) -> bool:
    """Return whether an expression has the width of a mark."""
    match given:
        case Meta("mark") | Ct("mark"):
            return True
        case Binary(_, left, _):
            return _is_mark(left)
        case _:
            return False


def _cut(operator: str, draw: Draw, other: int) -> Value:
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
