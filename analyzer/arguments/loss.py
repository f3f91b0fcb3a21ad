"""What only ``loss`` is told, and what its answer means."""

from __future__ import annotations

from analyzer.arguments.parser import percentage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

EPILOG: Final = (
    "Partial loss (degraded in JSON): some new flows are certainly lost. Total loss "
    "(silenced): some are, and none reaches a living endpoint. Unknown: some may be, and none "
    "certainly is. A flow is lost on a dead endpoint; where a rule or policy that is not "
    "kube-proxy's drops or rejects it, behind its DNAT too; where no draw takes it; and perhaps "
    "where it is not translated. Without anything dead there is an overview of what could be "
    "marked dead; with --max-loss or --format json that is bad usage. A dump that shows no Service "
    "is bad input."
)

#: The names of each option, blanks between, and what it is.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "-q --quiet": {"action": "store_true", "help": "do not say what to do now"},
    "--max-loss": {
        "metavar": "PERCENT",
        "type": percentage,
        "help": "exit with 1 if a ServicePort may lose more (for example 10%%), or is not judged",
    },
    "--count": {
        "choices": ("all", "dead"),
        "default": "all",
        "help": "which flows are lost: all that reach no living endpoint for whatever rule, or "
        "those alone that land on dead endpoints (default: all)",
    },
}
