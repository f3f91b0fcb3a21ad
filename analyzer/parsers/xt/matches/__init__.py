"""One module per xtables match. To add one, write it, and its name in `known` and here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.model.iptables import matches as model
from analyzer.parsers.xt.extension import Extensions
from analyzer.parsers.xt.known import MATCHES_READ

#: Parsers of what follows ``-m``.
MATCHES: Final = Extensions(__name__, MATCHES_READ)

#: The types of their values, by which a renderer finds the name.
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
