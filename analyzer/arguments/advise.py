"""The options and the help of ``advise``."""

from __future__ import annotations

from argparse import ArgumentTypeError

from analyzer.advice.measures import MEASURES
from analyzer.arguments.control_plane import OPTIONS as CONTROL_PLANE
from analyzer.arguments.parser import several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Of numbers of nodes, or of Services to show.
_COUNT_DIGITS: Final = 9


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _COUNT_DIGITS and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--measure": {
        "metavar": "NAME",
        **several(),
        "help": (
            "judge only these, for example spread; joined with + they are applied one after "
            "another: spread+local"
        ),
    },
    "--objects-of": {
        "metavar": "NAME",
        "help": (
            "print the objects as that measure leaves them, for the selected Services, as a v1 "
            "List for kubeodds whatif --from-objects"
        ),
    },
    "--dead-node": {
        "metavar": "NODE",
        **several(),
        "help": "judge the failure of these nodes, together (default: of any one node)",
    },
    "--dead-zone": {
        "metavar": "ZONE",
        **several(),
        "help": "the same for all nodes of a zone",
    },
    "--depth": {
        "metavar": "K",
        "type": _count,
        "default": 1,
        "help": "judge the failure of any K nodes together (default: 1)",
    },
    **CONTROL_PLANE,
    "--top": {
        "metavar": "N",
        "type": _count,
        "default": 3,
        "help": "judge measures for the N worst Services (default: 3)",
    },
    "--all": {
        "action": "store_true",
        "help": "judge every Service, and also show measures that do not help or are refused",
    },
}

EPILOG: Final = (
    f"Measures: {', '.join(MEASURES)}. Each measure is applied to the objects of one Service, and "
    "the rules of every node are predicted again: the numbers are those that whatif gives for "
    "the objects of --objects-of. Worst loss is that of the most expensive failure, on the worst "
    "route at the worst node; mean loss is over all these failures and the nodes that are alive."
)
