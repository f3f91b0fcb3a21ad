"""One file per xtables match. To add one, write the file and add its line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analyzer.model import matches as model
from analyzer.parsers.xt.extension import Extension
from analyzer.parsers.xt.matches.addrtype import ADDRTYPE
from analyzer.parsers.xt.matches.comment import COMMENT
from analyzer.parsers.xt.matches.connlimit import CONNLIMIT
from analyzer.parsers.xt.matches.connmark import CONNMARK
from analyzer.parsers.xt.matches.conntrack import CONNTRACK
from analyzer.parsers.xt.matches.hashlimit import HASHLIMIT
from analyzer.parsers.xt.matches.hl import HL
from analyzer.parsers.xt.matches.icmp import ICMP
from analyzer.parsers.xt.matches.icmp6 import ICMP6
from analyzer.parsers.xt.matches.iprange import IPRANGE
from analyzer.parsers.xt.matches.ipvs import IPVS
from analyzer.parsers.xt.matches.length import LENGTH
from analyzer.parsers.xt.matches.limit import LIMIT
from analyzer.parsers.xt.matches.mac import MAC
from analyzer.parsers.xt.matches.mark import MARK
from analyzer.parsers.xt.matches.multiport import MULTIPORT
from analyzer.parsers.xt.matches.nfacct import NFACCT
from analyzer.parsers.xt.matches.owner import OWNER
from analyzer.parsers.xt.matches.physdev import PHYSDEV
from analyzer.parsers.xt.matches.pkttype import PKTTYPE
from analyzer.parsers.xt.matches.policy import POLICY
from analyzer.parsers.xt.matches.recent import RECENT
from analyzer.parsers.xt.matches.rpfilter import RPFILTER
from analyzer.parsers.xt.matches.sctp import SCTP
from analyzer.parsers.xt.matches.set import SET
from analyzer.parsers.xt.matches.socket import SOCKET
from analyzer.parsers.xt.matches.state import STATE
from analyzer.parsers.xt.matches.statistic import STATISTIC
from analyzer.parsers.xt.matches.string import STRING_MATCH
from analyzer.parsers.xt.matches.tcp import TCP
from analyzer.parsers.xt.matches.tcpmss import TCPMSS
from analyzer.parsers.xt.matches.ttl import TTL
from analyzer.parsers.xt.matches.udp import UDP

#: What stands behind ``-m``, and what reads it.
MATCHES: Final[Mapping[str, Extension[Any]]] = {
    "addrtype": ADDRTYPE,
    "comment": COMMENT,
    "connlimit": CONNLIMIT,
    "connmark": CONNMARK,
    "conntrack": CONNTRACK,
    "hashlimit": HASHLIMIT,
    "hl": HL,
    "icmp": ICMP,
    "icmp6": ICMP6,
    "iprange": IPRANGE,
    "ipvs": IPVS,
    "length": LENGTH,
    "limit": LIMIT,
    "mac": MAC,
    "mark": MARK,
    "multiport": MULTIPORT,
    "nfacct": NFACCT,
    "owner": OWNER,
    "physdev": PHYSDEV,
    "pkttype": PKTTYPE,
    "policy": POLICY,
    "recent": RECENT,
    "rpfilter": RPFILTER,
    "sctp": SCTP,
    "set": SET,
    "socket": SOCKET,
    "state": STATE,
    "statistic": STATISTIC,
    "string": STRING_MATCH,
    "tcp": TCP,
    "tcpmss": TCPMSS,
    "ttl": TTL,
    "udp": UDP,
}

#: The values that each of them gives: how a value finds the way back to its name.
MATCH_NAMES: Final[Mapping[type, str]] = {
    model.MatchAddrtype: "addrtype",
    model.MatchComment: "comment",
    model.MatchConnlimit: "connlimit",
    model.MatchConnmark: "connmark",
    model.MatchConntrack: "conntrack",
    model.MatchHashlimit: "hashlimit",
    model.MatchHl: "hl",
    model.MatchIcmp: "icmp",
    model.MatchIcmp6: "icmp6",
    model.MatchIprange: "iprange",
    model.MatchIpvs: "ipvs",
    model.MatchLength: "length",
    model.MatchLimit: "limit",
    model.MatchMac: "mac",
    model.MatchMark: "mark",
    model.MatchMultiport: "multiport",
    model.MatchNfacct: "nfacct",
    model.MatchNth: "statistic",
    model.MatchOwner: "owner",
    model.MatchPhysdev: "physdev",
    model.MatchPkttype: "pkttype",
    model.MatchPolicy: "policy",
    model.MatchRandom: "statistic",
    model.MatchRecent: "recent",
    model.MatchRpfilter: "rpfilter",
    model.MatchSctp: "sctp",
    model.MatchSet: "set",
    model.MatchSocket: "socket",
    model.MatchState: "state",
    model.MatchString: "string",
    model.MatchTcp: "tcp",
    model.MatchTcpmss: "tcpmss",
    model.MatchTtl: "ttl",
    model.MatchUdp: "udp",
}
