"""The words of netfilter that values may keep; no other word is kept."""

from __future__ import annotations

import re

from analyzer.model.nft import names as nft_names
from analyzer.parsers.xt.matches.addrtype import TYPES
from analyzer.parsers.xt.matches.conntrack import STATES, STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


def listed(text: str) -> tuple[str, ...]:
    """Return the words of a blank-separated list."""
    return tuple(text.split())


#: Protocols by the names of /etc/protocols that iptables-save prints.
PROTOCOLS: Final = frozenset(
    listed("""
    tcp udp sctp icmp icmpv6 ipv6-icmp all any ip ipv6 esp ah gre udplite dccp ipcomp ipencap ipip
    ospf pim igmp vrrp mh ipv6-route ipv6-frag ipv6-nonxt ipv6-opts ipv4 l2tp rsvp eigrp egp igp
    """)
)
_HELPERS: Final = frozenset(
    listed("ftp tftp irc sip pptp h323 RAS Q.931 amanda sane snmp netbios-ns snmp_trap")
)
_OTHERS: Final = frozenset(
    listed("""
    ORIGINAL REPLY set rcheck update remove rsource rdest unicast broadcast multicast
    bm kmp in out ipsec none transport tunnel GATE IPIP MASQ
    add-set del-set map-set save restore all any only mark src dst
    new related destroy reply assured protoinfo helper mark natseqinfo secmark
    SYN ACK FIN RST URG PSH ALL NONE
    DATA INIT INIT_ACK SACK HEARTBEAT HEARTBEAT_ACK ABORT SHUTDOWN SHUTDOWN_ACK ERROR COOKIE_ECHO
    COOKIE_ACK ECN_ECNE ECN_CWR SHUTDOWN_COMPLETE I_DATA RE_CONFIG PAD ASCONF ASCONF_ACK FORWARD_TSN
    I_FORWARD_TSN srcip srcport dstip dstport
    tcp-reset tcp-rst admin-prohib net-unreach host-unreach proto-unreach port-unreach
    """)
)
_REJECTS: Final = re.compile(
    r"icmp6?-(?:net|host|proto|port|addr|adm|no-route|policy|reject|fail)[a-z-]{0,20}"
)
_ALL: Final = frozenset((*TYPES, *STATES, *STATUSES, *_OTHERS, *_HELPERS, *PROTOCOLS))
_NUMBER: Final = re.compile(r"(?:0x[0-9a-fA-F]{1,16}|\d{1,20})")
_RATE: Final = re.compile(r"\d{1,20}(?:[kmg]?b)?(?:/(?:s|sec|second|m|min|minute|h|hour|d|day))?")
_FLAGS: Final = re.compile(r"([A-Z_]+):[A-Za-z]{1,8}")
#: What nft prints without quotes, families and what its statements call things.
_NFT: Final = frozenset(
    (
        *nft_names.PROTOCOLS,
        *nft_names.CT_STATES,
        *nft_names.CT_STATUSES,
        *nft_names.CT_DIRECTIONS,
        *nft_names.ADDRESS_TYPES,
        *nft_names.TCP_FLAGS,
        *nft_names.NF_PROTOCOLS,
        *nft_names.ICMP_TYPES,
        *nft_names.ICMPV6_TYPES,
        *(
            "ip",
            "ip6",
            "inet",
            "arp",
            "bridge",
            "netdev",
            "vlan",
            "8021q",
            "8021ad",
            "ppp",
            "ether",
        ),
        *("host", "broadcast", "multicast", "other", "loopback", "unicast", "original", "reply"),
        *("request", "nak", "rreply", "rrequest", "inrequest", "inreply"),
        *("net-unreachable", "host-unreachable", "prot-unreachable", "port-unreachable"),
        *("net-prohibited", "host-prohibited", "admin-prohibited", "no-route", "addr-unreachable"),
        *("cs0", "cs1", "cs2", "cs3", "cs4", "cs5", "cs6", "cs7", "be", "ef", "lephb"),
        *("af11", "af12", "af13", "af21", "af22", "af23", "af31", "af32", "af33", "af41", "af42"),
        *("af43", "va", "not-ect", "ect0", "ect1", "ce", "default", "linux", "tcp reset"),
    )
)


def is_word(text: str) -> bool:
    """Return whether a text is a number, or words of netfilter with commas between them."""
    if _NUMBER.fullmatch(text) or _RATE.fullmatch(text):
        return True
    return all(
        part in _ALL or _REJECTS.fullmatch(part) or _is_flagged(part) for part in text.split(",")
    )


def _is_flagged(text: str) -> bool:
    found = _FLAGS.fullmatch(text)
    return found is not None and found[1] in _ALL


def is_protocol(text: str) -> bool:
    """Return whether a text is the name or number of an IP protocol."""
    return text in PROTOCOLS or _NUMBER.fullmatch(text) is not None


def is_nft_word(text: str) -> bool:
    """Return whether a text is a symbolic constant that nft prints for a number."""
    return text in _NFT or text in _HELPERS
