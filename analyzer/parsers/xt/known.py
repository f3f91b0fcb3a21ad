"""The names of known extensions, without importing their parsers.

Source: iptables-extensions(8) of 1.8.11, and the targets that were removed before it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


_MATCHES_READ: Final = """
addrtype comment connlimit connmark conntrack hashlimit hl icmp icmp6 iprange ipvs length limit
mac mark multiport nfacct owner physdev pkttype policy recent rpfilter sctp set socket state
statistic string tcp tcpmss ttl udp
"""
_TARGETS_READ: Final = """
ACCEPT AUDIT CHECKSUM CLASSIFY CONNMARK CT DNAT DROP DSCP ECN HL LOG MARK MASQUERADE NFLOG NFQUEUE
NOTRACK REDIRECT REJECT RETURN SET SNAT TCPMSS TCPOPTSTRIP TEE TOS TPROXY TRACE TTL
"""
_OTHER_TARGETS: Final = """
BALANCE CLUSTERIP CONNSECMARK DNPT HMARK IDLETIMER LED MIRROR NETMAP QUEUE RATEEST SAME SECMARK SNPT
SYNPROXY TARPIT ULOG
"""

#: Those that we parse: the keys of MATCHES and of TARGETS.
MATCHES_READ: Final = frozenset(_MATCHES_READ.split())
TARGETS_READ: Final = frozenset(_TARGETS_READ.split())

#: All existing targets, so that one which we cannot parse is not taken for a chain.
XTABLES_TARGETS: Final = TARGETS_READ | frozenset(_OTHER_TARGETS.split())
