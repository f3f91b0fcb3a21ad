"""The options and the help of ``whatif``."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable

from analyzer.arguments.control_plane import OPTIONS as CONTROL_PLANE
from analyzer.arguments.parser import Parser, percentage, several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Of failures.
_KINDS: Final = ("node", "zone", "control-plane", "set")
#: Of numbers of nodes, or of failures to show.
_COUNT_DIGITS: Final = 9


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _COUNT_DIGITS and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def _kind(text: str) -> str:
    if text not in _KINDS:
        raise ArgumentTypeError(f"{text!r} is not one of {', '.join(_KINDS)}")
    return text


#: Options of ``whatif`` besides the dump.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--only": {
        "metavar": "KIND",
        **several(_kind),
        "help": "node, zone, control-plane, or set (of several nodes); default: all of them",
    },
    "--depth": {
        "metavar": "K",
        "type": _count,
        "default": 2,
        "help": "up to this many nodes fail together (default: 2, all pairs)",
    },
    **CONTROL_PLANE,
    "--components": {
        "action": "store_true",
        "help": "no DUMP: what still works and what stops when a component is down, with sources",
    },
    "--top": {
        "metavar": "N",
        "type": _count,
        "help": "failures of each kind to show (default: 3; sets in other formats: 100)",
    },
    "--all": {"action": "store_true", "help": "show every node, zone and ServicePort"},
    "--sort": {
        "choices": ["loss", "mean", "name"],
        "default": "loss",
        "help": "by worst loss, by mean over all ServicePorts, or by name (default: loss)",
    },
    "--max-loss": {
        "metavar": "PERCENT",
        "type": percentage,
        "help": (
            "exit with 1 if a failure may cost a ServicePort more (for example 60%%), or not "
            "everything is judged"
        ),
    },
    "--min-survives": {
        "metavar": "K",
        "type": _count,
        "help": (
            "exit with 1 if a ServicePort may not survive the loss of any K nodes, or not "
            "everything is judged"
        ),
    },
    "--min-survives-zones": {
        "metavar": "K",
        "type": _count,
        "help": "the same for any K zones",
    },
}

#: What the words of its answers mean.
EPILOG: Final = (
    "Worst loss is that of the ServicePort that loses most, on its worst route; mean loss is "
    "over all ServicePorts with endpoints; total loss and partial loss are those of `loss`. A "
    "ServicePort survives K nodes if each of its routes keeps a living endpoint whichever K "
    "nodes are lost; routes only to this node's own endpoints (Local policies) count only if "
    "there is no other. Zones are counted likewise."
)


def components_parser(add_output_options: Callable[[ArgumentParser, str], None]) -> Parser:
    """Return the parser of ``whatif --components``, which takes no dump and no objects."""
    parser = Parser(
        prog="kubeodds whatif",
        description="what still works and what stops when a component is down",
        examples=("kubeodds whatif --components", "kubeodds whatif --components -o json"),
    )
    parser.set_defaults(verb="whatif", dumps=[], strict=False, verbose=False)
    parser.add_argument("--components", action="store_true", required=True, help="that table")
    add_output_options(parser, "whatif --components")
    return parser
