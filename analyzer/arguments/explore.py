"""The options and the help of ``explore``, and its keys."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

EPILOG: Final = (
    "Keys are those of k9s where it has them: Tab switches between nodes, zones and Services, j "
    "and k or the arrows move, Space or Enter marks a node or a zone dead, Enter shows a "
    "Service's tree, / filters, Escape goes back, ? lists the keys, q quits. It needs a terminal "
    "and the package textual: pip install '.[terminal]' in a clone of kubeodds."
)

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--count": {
        "choices": ("all", "dead"),
        "default": "all",
        "help": "which flows count as lost, as with loss (default: all)",
    },
}
