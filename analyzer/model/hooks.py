"""Which tables each hook calls, in the order of their priorities.

Source: Linux, include/uapi/linux/netfilter_ipv4.h, ``nf_ip_hook_priorities``.
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
