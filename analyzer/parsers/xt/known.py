"""The names of xtables targets, so that one which we cannot read is not taken for a chain.

Source: iptables-extensions(8) of 1.8.11, and the targets that were removed before it.
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
ACCEPT AUDIT BALANCE CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DROP DSCP
ECN HL HMARK IDLETIMER LED LOG MARK MASQUERADE MIRROR NETMAP NFLOG NFQUEUE NOTRACK QUEUE
RATEEST REDIRECT REJECT RETURN SAME SECMARK SET SNAT SNPT SYNPROXY TARPIT TCPMSS TCPOPTSTRIP
TEE TOS TPROXY TRACE TTL ULOG
"""

XTABLES_TARGETS: Final = frozenset(_NAMES.split())
