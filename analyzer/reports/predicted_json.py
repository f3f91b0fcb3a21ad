"""The basis of an answer that was predicted from objects, as JSON."""

from __future__ import annotations

from typing import Any

from analyzer.cluster.from_dumps import FromDumps
from analyzer.kubeproxy.predict.cluster import Prediction


def dumps(given: Prediction | FromDumps | None) -> dict[str, Any] | None:
    """Return the nodes whose rules were read, and not read; None unless several were."""
    if not isinstance(given, FromDumps):
        return None
    return {
        "nodes": list(given.nodes),
        "failed": [{"node": name, "reason": why} for name, why in given.failed],
        "unseen": [{"node": name, "reason": why} for name, why in given.unseen],
        "without": list(given.without),
    }


def prediction(given: Prediction | FromDumps | None) -> dict[str, Any] | None:
    """Return the prediction for JSON; None if rules were read."""
    if given is None or isinstance(given, FromDumps):
        return None
    settings = given.settings
    return {
        "kube_proxy": settings.version.text,
        "mode": settings.mode.value,
        "detect_local_mode": settings.local_mode.value,
        "cluster_cidrs": [str(each) for each in settings.cluster_cidrs],
        "assumed": list(given.assumed),
        "walked": [
            {
                "nodes": list(each.nodes),
                "predictions": each.services,
                "seed": each.seed,
                "differing": list(each.differing),
            }
            for each in given.walked
        ],
        "malformed": list(given.malformed),
        "dumps": list(given.dumps),
    }
