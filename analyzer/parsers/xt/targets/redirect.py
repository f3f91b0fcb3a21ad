"""``-j REDIRECT``. Source: extensions/libipt_REDIRECT.c."""

from typing import Final

from analyzer.model.iptables.targets import Redirect
from analyzer.parsers.xt.options import Options, flag, plain
from analyzer.parsers.xt.targets.masquerade import PORT_RANGE

REDIRECT: Final = Options(
    Redirect, (plain("--to-ports", "ports", PORT_RANGE), flag("--random", "random"))
)
