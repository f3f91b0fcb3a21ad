"""One file per xtables target. To add one, write the file and add its line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analyzer.model import targets as model
from analyzer.parsers.xt.extension import Extension
from analyzer.parsers.xt.targets.connmark import CONNMARK
from analyzer.parsers.xt.targets.ct import CT, NOTRACK
from analyzer.parsers.xt.targets.dnat import DNAT
from analyzer.parsers.xt.targets.log import LOG
from analyzer.parsers.xt.targets.mark import MARK
from analyzer.parsers.xt.targets.masquerade import MASQUERADE
from analyzer.parsers.xt.targets.nflog import NFLOG
from analyzer.parsers.xt.targets.nfqueue import NFQUEUE
from analyzer.parsers.xt.targets.redirect import REDIRECT
from analyzer.parsers.xt.targets.reject import REJECT
from analyzer.parsers.xt.targets.set import SET
from analyzer.parsers.xt.targets.simple import ACCEPT, CHECKSUM, DROP, RETURN, TRACE
from analyzer.parsers.xt.targets.snat import SNAT
from analyzer.parsers.xt.targets.tcpmss import TCPMSS
from analyzer.parsers.xt.targets.tproxy import TPROXY

#: What stands behind ``-j``, other than a chain, and what reads it.
TARGETS: Final[Mapping[str, Extension[Any]]] = {
    "ACCEPT": ACCEPT,
    "CHECKSUM": CHECKSUM,
    "CONNMARK": CONNMARK,
    "CT": CT,
    "DNAT": DNAT,
    "DROP": DROP,
    "LOG": LOG,
    "MARK": MARK,
    "MASQUERADE": MASQUERADE,
    "NFLOG": NFLOG,
    "NFQUEUE": NFQUEUE,
    "NOTRACK": NOTRACK,
    "REDIRECT": REDIRECT,
    "REJECT": REJECT,
    "RETURN": RETURN,
    "SET": SET,
    "SNAT": SNAT,
    "TCPMSS": TCPMSS,
    "TPROXY": TPROXY,
    "TRACE": TRACE,
}

#: The values that each of them gives: how a value finds the way back to its name.
TARGET_NAMES: Final[Mapping[type, str]] = {
    model.Accept: "ACCEPT",
    model.ChangeSet: "SET",
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
    model.Return: "RETURN",
    model.SetConnmark: "CONNMARK",
    model.SetMark: "MARK",
    model.SetMss: "TCPMSS",
    model.Snat: "SNAT",
    model.Tproxy: "TPROXY",
    model.Trace: "TRACE",
}
