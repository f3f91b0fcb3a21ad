"""``-m pkttype``. Source: extensions/libxt_pkttype.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchPkttype
from analyzer.parsers.xt.options import SoleOption
from analyzer.parsers.xt.values import one_of

PKTTYPE: Final = SoleOption(
    MatchPkttype, "packet_type", "--pkt-type", one_of("unicast", "broadcast", "multicast")
)
