"""The plainest shapes of kube-proxy's rows, each a regular expression for whole rows.

Every character counts: what a shape lets through is taken to mean what kube-proxy means by it.
"""

from __future__ import annotations

import re
from typing import Final

_COMMENT: Final = r'(?:-m comment --comment (?:"[^"\\\n]*"|[\w-]+) )?'
_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_PORT: Final = r"(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])"
_PROTOCOL: Final = r"(tcp|udp|sctp)"
_DRAWN: Final = r"-m statistic --mode random --probability \d\.\d{5,11} "


class Shapes:
    """The shapes, for rows with or without counters before them, of one IP version.

    Literal text first, wherever it can be: the engine then skips to it.
    """

    def __init__(self, family: str, *, counted: bool) -> None:
        row = r"\[\d+:\d+\] -A" if counted else "-A"
        if family == "ip":
            address, length, to = rf"(?:{_OCTET}\.){{3}}{_OCTET}", 32, r"\2"
        else:
            address, length, to = "[0-9a-f.:]*:[0-9a-f.:]+", 128, r"\[\2\]"
        host = rf"({address})/{length}"
        #: A KUBE-SEP chain: hairpin flows are marked, then all are sent on.
        self.endpoint = re.compile(
            rf"{row} (KUBE-SEP-\w+) -s {host} {_COMMENT}-j KUBE-MARK-MASQ\n"
            rf"{row} \1 -p {_PROTOCOL} {_COMMENT}-m \3 -j DNAT --to-destination {to}:({_PORT})\n"
        )
        #: A KUBE-SVC or KUBE-SVL chain: flows from outside are marked, an endpoint is drawn.
        self.service = re.compile(
            rf"(?:{row} \S+ (?:! -s (\S+) )?-d {host} -p {_PROTOCOL} {_COMMENT}-m \3 "
            rf"--dport ({_PORT}) -j KUBE-MARK-MASQ\n)?"
            rf"((?:{row} \S+ {_COMMENT}{_DRAWN}-j KUBE-SEP-\w+\n)*+)"
            rf"{row} \S+ {_COMMENT}-j (KUBE-SEP-\w+)\n"
        )
        self.draw = re.compile(r"--probability ([\d.]+) -j (KUBE-SEP-\w+)\n")
        #: A row of KUBE-SERVICES for one address and port; for one address.
        self.entry = re.compile(
            rf"{row} KUBE-SERVICES (?:! -s (\S+) )?-d {host} -p {_PROTOCOL} "
            r'-m comment --comment "([^"\\\n]*)" -m \3 '
            rf"--dport ({_PORT}) -j (KUBE-[A-Z]+(?:-\w+)*)"
        )
        self.other_host = re.compile(rf"{row} KUBE-SERVICES (?:! -s \S+ )?-d {host} ")
        self.node_ports = re.compile(
            rf"{row} KUBE-SERVICES (?:! -d ::1/128 )?{_COMMENT}-m addrtype --dst-type LOCAL "
            r"-j KUBE-NODEPORTS"
        )
        self.entrance = re.compile(rf"{row} (?:PREROUTING|OUTPUT) {_COMMENT}-j KUBE-SERVICES\n")
        self.exit = re.compile(rf"{row} POSTROUTING {_COMMENT}-j KUBE-POSTROUTING\n")
        #: What is marked gets an address of the node: as written up to 1.16, and from 1.17 on.
        self.masquerade = re.compile(
            rf"{row} KUBE-POSTROUTING {_COMMENT}-m mark --mark (0x[0-9a-f]+)/\1 -j MASQUERADE"
            r"(?: --random-fully)?\n"
            rf"|{row} KUBE-POSTROUTING -m mark ! --mark (0x[0-9a-f]+)/\2 -j RETURN\n"
            rf"{row} KUBE-POSTROUTING -j MARK --set-xmark \2/0x0\n"
            rf"{row} KUBE-POSTROUTING {_COMMENT}-j MASQUERADE(?: --random-fully)?\n"
        )
        self.mark = re.compile(rf"{row} KUBE-MARK-MASQ -j MARK --set-xmark (0x[0-9a-f]+)/\1\n")
