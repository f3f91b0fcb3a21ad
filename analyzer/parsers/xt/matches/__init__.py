"""One file per xtables match. To add one, write the file and add its line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analyzer.model import matches as model
from analyzer.parsers.xt.extension import Extension
from analyzer.parsers.xt.matches.addrtype import ADDRTYPE
from analyzer.parsers.xt.matches.comment import COMMENT
from analyzer.parsers.xt.matches.conntrack import CONNTRACK
from analyzer.parsers.xt.matches.mark import MARK
from analyzer.parsers.xt.matches.nfacct import NFACCT
from analyzer.parsers.xt.matches.physdev import PHYSDEV
from analyzer.parsers.xt.matches.recent import RECENT
from analyzer.parsers.xt.matches.sctp import SCTP
from analyzer.parsers.xt.matches.statistic import STATISTIC
from analyzer.parsers.xt.matches.tcp import TCP
from analyzer.parsers.xt.matches.udp import UDP

#: What stands behind ``-m``, and what reads it.
MATCHES: Final[Mapping[str, Extension[Any]]] = {
    "addrtype": ADDRTYPE,
    "comment": COMMENT,
    "conntrack": CONNTRACK,
    "mark": MARK,
    "nfacct": NFACCT,
    "physdev": PHYSDEV,
    "recent": RECENT,
    "sctp": SCTP,
    "statistic": STATISTIC,
    "tcp": TCP,
    "udp": UDP,
}

#: The values that each of them gives: how a value finds the way back to its name.
MATCH_NAMES: Final[Mapping[type, str]] = {
    model.MatchAddrtype: "addrtype",
    model.MatchComment: "comment",
    model.MatchConntrack: "conntrack",
    model.MatchMark: "mark",
    model.MatchNfacct: "nfacct",
    model.MatchNth: "statistic",
    model.MatchPhysdev: "physdev",
    model.MatchRandom: "statistic",
    model.MatchRecent: "recent",
    model.MatchSctp: "sctp",
    model.MatchTcp: "tcp",
    model.MatchUdp: "udp",
}
