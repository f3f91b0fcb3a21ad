"""The options of ``loss`` alone, and what its answer means."""

from __future__ import annotations

from analyzer.arguments.parser import percentage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

EPILOG: Final = (
    "Partial loss (degraded in JSON): some new flows are certainly lost. Total loss (silenced): "
    "some are lost, and none reaches a living endpoint. Unknown: some may be lost, and none "
    "certainly is. A flow is lost if it goes to a dead endpoint; if a rule or policy that is not "
    "kube-proxy's drops or rejects it, before or after DNAT; if no endpoint is drawn for it; and "
    "possibly if it is not translated. If nothing is marked dead, an overview shows what could "
    "be; with --max-loss or --format json that is bad usage. A dump that shows no Service is bad "
    "input."
)

#: The names of each option, blanks between, and what it is.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "-q --quiet": {"action": "store_true", "help": "leave out what to do now"},
    "--max-loss": {
        "metavar": "PERCENT",
        "type": percentage,
        "help": "exit with 1 if a ServicePort may lose more (for example 10%%), or is not judged",
    },
    "--count": {
        "choices": ("all", "dead"),
        "default": "all",
        "help": (
            "which flows count as lost: all that reach no living endpoint, whatever the rule, or "
            "only those that go to dead endpoints (default: all)"
        ),
    },
}
