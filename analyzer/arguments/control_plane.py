"""Options that describe the control plane: which nodes run which of its components."""

from __future__ import annotations

from analyzer.arguments.parser import several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Names of `outage.topologies.PRESETS`, which is only loaded when needed; a test compares.
PRESETS: Final = (
    "kubeadm-stacked",
    "external-etcd",
    "k3s",
    "one-load-balancer",
    "client-side-load-balancer",
)

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--control-plane": {
        "metavar": "NODE",
        **several(),
        "help": "the control plane's nodes (default: those with its role label)",
    },
    "--etcd": {
        "metavar": "NODE",
        **several(),
        "help": (
            "the nodes of etcd's members, or external (default: from pods and labels, otherwise "
            "not known)"
        ),
    },
    "--api-load-balancer": {
        "metavar": "NODE",
        **several(),
        "help": (
            "the nodes that run a load balancer of the API, one of which must be alive; or "
            "external, or client-side: each node has its own (default: not known, if there is "
            "more than one API server)"
        ),
    },
    "--topology": {
        "choices": PRESETS,
        "help": "how the control plane was built, instead of --etcd and --api-load-balancer",
    },
}
