"""Types of sets: ``type ipv4_addr . inet_service : verdict``, ``typeof ip daddr``.

Source: nft(8), "SETS" and "MAPS"; the data types in src/proto.c, src/meta.c and src/ct.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.model.nft.expressions import Concat, Ct, Expression, Fib, Meta, Payload
from analyzer.parsers.nft.expressions import words_of
from analyzer.parsers.nft.extension import NotUnderstood

Types = tuple[str, ...]
_PROTOCOLS: Final = frozenset({"protocol", "nexthdr"})
_META: Final[Mapping[str, str]] = {
    "l4proto": "inet_proto",
    "protocol": "ether_type",
    "nfproto": "nf_proto",
    "mark": "mark",
    "iifname": "ifname",
    "oifname": "ifname",
    "iif": "iface_index",
    "oif": "iface_index",
    "skuid": "uid",
    "skgid": "gid",
    "pkttype": "pkt_type",
}
_CT: Final[Mapping[str, str]] = {
    "state": "ct_state",
    "status": "ct_status",
    "direction": "ct_dir",
    "mark": "mark",
    "ip saddr": "ipv4_addr",
    "ip daddr": "ipv4_addr",
    "ip6 saddr": "ipv6_addr",
    "ip6 daddr": "ipv6_addr",
    "proto-src": "inet_service",
    "proto-dst": "inet_service",
    "protocol": "inet_proto",
}


def types(text: str) -> Types:
    """Return the parts of ``ipv4_addr . inet_service``; ``interval`` shows in the elements."""
    return tuple(part.strip() for part in text.removeprefix("interval ").split(" . "))


def typeof(text: str, family: str) -> tuple[Expression, ...]:
    """Return the expressions of ``typeof``.

    Raises:
        NotUnderstood: it is not an expression.
    """
    words = words_of(text.removeprefix("interval "), family)
    if words.peek() == "verdict":
        return (words.take(),)
    found = words.expression()
    if not words.done:
        raise NotUnderstood(text)
    return found.parts if isinstance(found, Concat) else (found,)


def type_of(given: Expression) -> str:
    """Return the type of an expression's value; ``integer`` if it is a plain number."""
    match given:
        case Payload("ip", "saddr" | "daddr"):
            return "ipv4_addr"
        case Payload("ip6", "saddr" | "daddr"):
            return "ipv6_addr"
        case Payload("ether", "saddr" | "daddr"):
            return "ether_addr"
        case Payload("ether" | "vlan", "type"):
            return "ether_type"
        case Payload(_, "sport" | "dport"):
            return "inet_service"
        case Payload("ip" | "ip6", field) if field in _PROTOCOLS:
            return "inet_proto"
        case Payload("icmp" | "icmpv6" as protocol, "type" | "code" as field):
            return f"{protocol}_{field}"
        case Payload("tcp", "flags"):
            return "tcp_flag"
        case Payload("ip" | "ip6", "dscp"):
            return "dscp"
        case Meta(key):
            return _META.get(key, "integer")
        case Ct(key):
            return _CT.get(key, "integer")
        case Fib("type"):
            return "fib_addrtype"
        case str():
            return given
        case _:
            return "integer"
