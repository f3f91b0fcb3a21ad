"""The options and the help of ``repair``."""

from __future__ import annotations

from argparse import ArgumentTypeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Minutes after which endpoints and their addresses are likely to be others.
_OLD: Final = 15
_DIGITS: Final = 9


def _minutes(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a positive number of minutes")
    return int(text)


OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--print": {
        "dest": "prints",
        "choices": ["patch", "undo", "conntrack"],
        "default": "patch",
        "help": "the change, its undo, or the commands that free pinned flows (default: patch)",
    },
    "--family": {
        "choices": ["ip", "ip6"],
        "help": "the IP version whose rules to change, if there are dumps of both",
    },
    "--max-age": {
        "metavar": "MINUTES",
        "type": _minutes,
        "default": _OLD,
        "help": f"warn if the dump is older (default: {_OLD})",
    },
}

EPILOG: Final = (
    "Nothing is run and nothing is changed: the output is for iptables-restore --noflush, or "
    "nft, on the node that the dump is from. New flows get chains of their own before "
    "kube-proxy's, in which dead endpoints are left out of the draws. Exit status 1: not all "
    "routes are covered."
)
