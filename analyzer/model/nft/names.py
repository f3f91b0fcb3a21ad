"""The numbers of the names that nft prints.

Source: nftables, src/ct.c, src/fib.c, src/proto.c, src/rule.c (``std_prios``); the manual page
nft(8); IANA's protocol numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: inet_proto.
PROTOCOLS: Final[Mapping[str, int]] = {
    "ip": 0,
    "icmp": 1,
    "igmp": 2,
    "ipencap": 4,
    "tcp": 6,
    "udp": 17,
    "dccp": 33,
    "ipv6": 41,
    "ipv6-route": 43,
    "ipv6-frag": 44,
    "gre": 47,
    "esp": 50,
    "ah": 51,
    "icmpv6": 58,
    "ipv6-icmp": 58,
    "ipv6-nonxt": 59,
    "ipv6-opts": 60,
    "comp": 108,
    "sctp": 132,
    "udplite": 136,
}
#: ct_state, bits.
CT_STATES: Final[Mapping[str, int]] = {
    "invalid": 1,
    "established": 2,
    "related": 4,
    "new": 8,
    "untracked": 64,
}
#: ct_status, bits.
CT_STATUSES: Final[Mapping[str, int]] = {
    "expected": 1,
    "seen-reply": 2,
    "assured": 4,
    "confirmed": 8,
    "snat": 16,
    "dnat": 32,
    "dying": 512,
}
#: ct_dir.
CT_DIRECTIONS: Final[Mapping[str, int]] = {"original": 0, "reply": 1}
#: fib_addrtype.
ADDRESS_TYPES: Final[Mapping[str, int]] = {
    "unspec": 0,
    "unicast": 1,
    "local": 2,
    "broadcast": 3,
    "anycast": 4,
    "multicast": 5,
    "blackhole": 6,
    "unreachable": 7,
    "prohibit": 8,
}
#: pkt_type; `unicast` is an older name of `host`.
PACKET_TYPES: Final[Mapping[str, int]] = {
    "host": 0,
    "unicast": 0,
    "broadcast": 1,
    "multicast": 2,
    "other": 3,
}
#: tcp_flag, bits.
TCP_FLAGS: Final[Mapping[str, int]] = {
    "fin": 1,
    "syn": 2,
    "rst": 4,
    "psh": 8,
    "ack": 16,
    "urg": 32,
    "ecn": 64,
    "cwr": 128,
}
#: nf_proto.
NF_PROTOCOLS: Final[Mapping[str, int]] = {"ipv4": 2, "ipv6": 10}
#: icmp_type.
ICMP_TYPES: Final[Mapping[str, int]] = {
    "echo-reply": 0,
    "destination-unreachable": 3,
    "source-quench": 4,
    "redirect": 5,
    "echo-request": 8,
    "router-advertisement": 9,
    "router-solicitation": 10,
    "time-exceeded": 11,
    "parameter-problem": 12,
    "timestamp-request": 13,
    "timestamp-reply": 14,
    "info-request": 15,
    "info-reply": 16,
    "address-mask-request": 17,
    "address-mask-reply": 18,
}
#: icmpv6_type.
ICMPV6_TYPES: Final[Mapping[str, int]] = {
    "destination-unreachable": 1,
    "packet-too-big": 2,
    "time-exceeded": 3,
    "parameter-problem": 4,
    "echo-request": 128,
    "echo-reply": 129,
    "mld-listener-query": 130,
    "mld-listener-report": 131,
    "mld-listener-done": 132,
    "mld-listener-reduction": 132,
    "nd-router-solicit": 133,
    "nd-router-advert": 134,
    "nd-neighbor-solicit": 135,
    "nd-neighbor-advert": 136,
    "nd-redirect": 137,
    "router-renumbering": 138,
    "ind-neighbor-solicit": 141,
    "ind-neighbor-advert": 142,
    "mld2-listener-report": 143,
}
_PRIORITIES: Final[Mapping[str, int]] = {
    "raw": -300,
    "mangle": -150,
    "dstnat": -100,
    "filter": 0,
    "security": 50,
    "srcnat": 100,
}
_BRIDGE_PRIORITIES: Final[Mapping[str, int]] = {
    "dstnat": -300,
    "filter": -200,
    "out": 100,
    "srcnat": 300,
}


def priority_number(name: str, family: str) -> int | None:
    """Return the number of a named priority of base chains; None of other words."""
    return (_BRIDGE_PRIORITIES if family == "bridge" else _PRIORITIES).get(name)
