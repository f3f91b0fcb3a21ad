"""``-m multiport``. Source: extensions/libxt_multiport.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchMultiport
from analyzer.parsers.xt.options import Options, negatable
from analyzer.parsers.xt.values import PORT_LIST

MULTIPORT: Final = Options(
    MatchMultiport,
    (
        negatable("--sports", "source_ports", PORT_LIST, "--source-ports"),
        negatable("--dports", "destination_ports", PORT_LIST, "--destination-ports"),
        negatable("--ports", "ports", PORT_LIST),
    ),
)
