"""``ip daddr``, ``th dport``, ``@nh,96,32``: fields of the packet's headers.

Source: nft(8), "PAYLOAD EXPRESSIONS"; libnftables-json(5), "PAYLOAD"; src/json.c,
``payload_expr_json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.model.nft.expressions import Payload, RawPayload
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, integer, known_only, mapping, string
from analyzer.parsers.nft.words import Words

_PORTS: Final = "sport dport"
#: Fields that have a name, by header.
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "ether": "saddr daddr type",
        "vlan": "id dei cfi pcp type",
        "ip": "version hdrlength dscp ecn length id frag-off ttl protocol checksum saddr daddr",
        "ip6": "version dscp ecn flowlabel length nexthdr hoplimit saddr daddr",
        "icmp": "type code checksum id sequence gateway mtu",
        "icmpv6": "type code checksum parameter-problem packet-too-big id sequence max-delay mtu "
        "taddr daddr",
        "igmp": "type mrt checksum group",
        "tcp": f"{_PORTS} sequence ackseq doff reserved flags window checksum urgptr",
        "udp": f"{_PORTS} length checksum",
        "udplite": f"{_PORTS} csumcov checksum",
        "sctp": f"{_PORTS} vtag checksum",
        "dccp": f"{_PORTS} type",
        "th": _PORTS,
        "ah": "nexthdr hdrlength reserved spi sequence",
        "esp": "spi sequence",
        "comp": "nexthdr flags cpi",
        "gre": "flags version protocol",
    }.items()
}
_ARP: Final = frozenset(["htype", "ptype", "hlen", "plen", "operation"])
_ARP_ADDRESS: Final = frozenset({"ip", "ether"})


def _read_json(_: str, body: object, __: JsonReader) -> Payload | RawPayload:
    given = mapping(body)
    if "base" in given:
        known_only(given, frozenset({"base", "offset", "len"}))
        return RawPayload(string(given["base"]), *(_number(given, n) for n in ("offset", "len")))
    known_only(given, frozenset({"protocol", "field"}))
    return Payload(string(given.get("protocol")), string(given.get("field")))


def _number(given: Mapping[str, object], name: str) -> int:
    return integer(given.get(name))


def _read_text(words: Words) -> Payload | None:
    protocol, field = words.peek(), words.peek(1)
    if protocol == "arp":
        if field in {"saddr", "daddr"} and words.peek(2) in _ARP_ADDRESS:
            words.at += 3
            return Payload("arp", f"{field} {words.peek(-1)}")
        known = _ARP
    else:
        known = FIELDS[protocol]
    if field not in known:
        return None
    words.at += 2
    return Payload(protocol, field)


def raw(word: str) -> RawPayload:
    """Return the value of ``@base,offset,length``."""
    base, offset, length = word[1:].split(",")
    try:
        return RawPayload(base, int(offset), int(length))
    except ValueError:  # thousands of digits
        raise NotUnderstood(word) from None


def _write(given: Payload | RawPayload, _: Write) -> str:
    match given:
        case Payload(protocol, field):
            return f"{protocol} {field}"
        case RawPayload(base, offset, length):
            return f"@{base},{offset},{length}"


PAYLOAD: Final = Extension(
    keys=("payload",),
    words=(*FIELDS, "arp"),
    types=(Payload, RawPayload),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
