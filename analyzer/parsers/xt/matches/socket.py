"""``-m socket``. Source: extensions/libxt_socket.c, ``socket_mt3_save``."""

from typing import Final

from analyzer.model.iptables.matches import MatchSocket
from analyzer.parsers.xt.options import Options, flag

SOCKET: Final = Options(
    MatchSocket,
    (
        flag("--transparent", "transparent"),
        flag("--nowildcard", "no_wildcard"),
        flag("--restore-skmark", "restore_mark"),
    ),
)
