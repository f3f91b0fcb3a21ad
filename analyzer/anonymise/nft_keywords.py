"""Keywords of nft, and names of xtables extensions, which are kept.

Source: nft(8); iptables-extensions(8) of 1.8.11.
"""

from __future__ import annotations

from analyzer.anonymise.words import listed
from analyzer.parsers.nft import ct, meta, payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What nft calls parts of packets, of flows and of its own statements.
KEYWORDS: Final = frozenset(
    (
        *payload.FIELDS,
        *(field for fields in payload.FIELDS.values() for field in fields),
        *meta.KEYS,
        *ct.KEYS,
        *(f"{family} {key}" for family in ("ip", "ip6") for key in ("saddr", "daddr")),
        *listed(
            "arp htype ptype hlen plen operation classid nexthop mtu ipsec transparent wildcard"
        ),
        *("saddr ip", "daddr ip", "saddr ether", "daddr ether"),
        *listed("reqid spi in out name version type oif oifname iif saddr daddr mark check"),
        *listed("random inc exthdr frag hbh rt dst mh srh auth maxseg sack window eol noop"),
        *("tcp option", "ip option", "sctp chunk", "dccp option", "fastopen", "md5sig", "mptcp"),
        *listed("timestamp tsval tsecr left right kind length size count left0 right0"),
        *("sack-perm", "sack-permitted", "sack0", "sack1", "sack2", "sack3", "lsrr", "ra", "rr"),
        *("ssrr", "addr", "ptr", "value", "segments-left", "hdrlength", "nexthdr", "hbh"),
        *listed("& | ^ << >> == != < > <= >= ! second minute hour day week packets bytes kbytes"),
        *listed("mbytes gbytes emerg alert crit err warn warning notice info debug audit all"),
        *("tcp sequence", "tcp options", "ip options", "skuid", "ether", "random"),
        *("fully-random", "persistent", "netmap", "bypass", "fanout", "add", "update", "delete"),
        *("icmp", "icmpv6", "icmpx", "tcp reset", "match", "target", "watcher", "ll", "nh", "th"),
        *("ih", "counter", "quota", "limit", "ct helper", "ct timeout", "ct expectation"),
        *("secmark", "synproxy", "tunnel", "last", "original", "reply", "ip", "ip6", "verdict"),
    )
)
#: Extensions of xtables, which iptables-nft puts into nft's tables.
EXTENSIONS: Final = frozenset(
    listed("""
    addrtype bpf cgroup cluster comment connbytes connlabel connlimit connmark conntrack cpu dccp
    devgroup dscp ecn esp hashlimit helper hl icmp icmp6 iprange ipvs length limit mac mark
    multiport nfacct osf owner physdev pkttype policy quota rateest realm recent rpfilter sctp set
    socket state statistic string tcp tcpmss time tos ttl u32 udp AUDIT CHECKSUM CLASSIFY CONNMARK
    CONNSECMARK CT DNAT DNPT DSCP ECN HL HMARK IDLETIMER LED LOG MARK MASQUERADE NETMAP NFLOG
    NFQUEUE NOTRACK RATEEST REDIRECT REJECT SECMARK SET SNAT SNPT SYNPROXY TCPMSS TCPOPTSTRIP TEE
    TOS TPROXY TRACE TTL ULOG
    """)
)
