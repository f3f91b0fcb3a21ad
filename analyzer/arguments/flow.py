"""The options and the help of ``suspects`` and ``pinned``."""

from __future__ import annotations

from argparse import ArgumentTypeError

from analyzer.arguments.parser import several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: How often, at most, `suspects` may name an endpoint that answers like the others.
RATE: Final = 0.001


def _rate(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = 0.0
    if not text.endswith("%") or not 0 < value < 1:
        raise ArgumentTypeError(
            f"{text!r} is not a percentage between 0% and 100% (for example 0.1%)"
        )
    return value


_CONNTRACK: Final[dict[str, dict[str, Any]]] = {
    "--conntrack": {
        "metavar": "FILE",
        **several(),
        "help": "output of `conntrack -L` on the node, unless DUMP is a bundle that contains it",
    },
}

SUSPECTS: Final[dict[str, dict[str, Any]]] = {
    **_CONNTRACK,
    "--again": {
        "metavar": "FILE",
        **several(),
        "help": (
            "the same, taken some seconds later, as `collect --twice` does: ESTABLISHED flows "
            "that began in between were certainly answered"
        ),
    },
    "--neighbours": {
        "metavar": "FILE",
        "help": "output of `ip -j neighbour` on the node",
    },
    "--rules-again": {
        "metavar": "FILE",
        **several(),
        "help": (
            "output of `iptables-save -c` taken some seconds after DUMP, as `collect --twice` "
            "does: how many new flows were drawn for each endpoint in between"
        ),
    },
    "--error-rate": {
        "metavar": "PERCENT",
        "type": _rate,
        "default": RATE,
        "help": (
            "the highest chance of naming any endpoint that answers like the others (default: "
            "0.1%%)"
        ),
    },
    "--all": {"action": "store_true", "help": "show all endpoints that conntrack has flows to"},
}

PINNED: Final[dict[str, dict[str, Any]]] = dict(_CONNTRACK)

SUSPECTS_EPILOG: Final = (
    "The draws of the rules say how flows should be spread. Endpoints with too many unanswered "
    "flows, or too few answered ones, are named: exact binomial tests, corrected by Holm's "
    "procedure. An endpoint that is named may be dead, slow, or cut off. Exit status 1: some are "
    "named."
)
PINNED_EPILOG: Final = (
    "Flows that conntrack keeps at endpoints that are dead (--dead), that the rules no longer "
    "draw, or whose address belongs to another pod in the objects; with the command that deletes "
    "exactly these entries. Nothing is run. Exit status 1: there are some."
)
