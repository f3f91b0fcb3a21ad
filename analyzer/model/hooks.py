"""The iptables tables of each hook, in the order of their priorities, and the hooks of devices.

Source: Linux, include/uapi/linux/netfilter_ipv4.h, ``nf_ip_hook_priorities``; nft(8), "ADDRESS
FAMILIES".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

TABLES: Final[dict[str, tuple[str, ...]]] = {
    "PREROUTING": ("raw", "mangle", "nat"),
    "INPUT": ("mangle", "filter", "security", "nat"),
    "FORWARD": ("mangle", "filter", "security"),
    "OUTPUT": ("raw", "mangle", "nat", "filter", "security"),
    "POSTROUTING": ("mangle", "nat"),
}

#: The hooks of devices, by family of nft, and the hooks of IP before or after whose chains these
#: are called.
AT_DEVICES: Final[dict[str, dict[str, str]]] = {
    "netdev": {"ingress": "PREROUTING", "egress": "POSTROUTING"},
    "inet": {"ingress": "PREROUTING"},
}

#: What a base chain may do with packets that none of its rules decided on.
POLICIES: Final = frozenset({"ACCEPT", "DROP"})

_BY_TABLE: Final = {"raw": -300, "mangle": -150, "nat": -100, "filter": 0, "security": 50}
#: Priorities of iptables' chains, by table and hook.
PRIORITIES: Final[dict[tuple[str, str], int]] = {
    (table, hook): 100 if table == "nat" and hook in {"INPUT", "POSTROUTING"} else _BY_TABLE[table]
    for hook, tables in TABLES.items()
    for table in tables
}
