"""One module per xtables target. To add one, write it, and its name in `known` and here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.model.iptables import targets as model
from analyzer.parsers.xt.extension import Extensions
from analyzer.parsers.xt.known import TARGETS_READ

#: Modules of targets that have none of their own.
_FILES: Final = {
    "NOTRACK": "ct",
    **dict.fromkeys(("DSCP", "ECN", "HL", "TCPOPTSTRIP", "TOS", "TTL"), "fields"),
    **dict.fromkeys(("AUDIT", "CLASSIFY", "TEE"), "beside"),
    **dict.fromkeys(("ACCEPT", "CHECKSUM", "DROP", "RETURN", "TRACE"), "simple"),
}
#: Parsers of what follows ``-j``, other than chains.
TARGETS: Final = Extensions(__name__, TARGETS_READ, _FILES)

#: The types of their values, by which a renderer finds the name.
TARGET_NAMES: Final[Mapping[type, str]] = {
    model.Accept: "ACCEPT",
    model.Audit: "AUDIT",
    model.ChangeHops: "HL",
    model.ChangeSet: "SET",
    model.ChangeTtl: "TTL",
    model.Classify: "CLASSIFY",
    model.ConnectionTracking: "CT",
    model.CopyConnmark: "CONNMARK",
    model.Dnat: "DNAT",
    model.Drop: "DROP",
    model.FillChecksum: "CHECKSUM",
    model.Log: "LOG",
    model.Masquerade: "MASQUERADE",
    model.NfLog: "NFLOG",
    model.NoTrack: "NOTRACK",
    model.Queue: "NFQUEUE",
    model.Redirect: "REDIRECT",
    model.Reject: "REJECT",
    model.RemoveEcn: "ECN",
    model.Return: "RETURN",
    model.SetConnmark: "CONNMARK",
    model.SetDscp: "DSCP",
    model.SetMark: "MARK",
    model.SetMss: "TCPMSS",
    model.SetTos: "TOS",
    model.Snat: "SNAT",
    model.StripOptions: "TCPOPTSTRIP",
    model.Tee: "TEE",
    model.Tproxy: "TPROXY",
    model.Trace: "TRACE",
}
