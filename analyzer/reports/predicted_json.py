"""What an answer that was predicted from objects rests on, for programs."""

from __future__ import annotations

from typing import Any

from analyzer.kubeproxy.predict.cluster import Prediction


def prediction(given: Prediction | None) -> dict[str, Any] | None:
    """Return it as JSON has it; None: rules were read."""
    if given is None:
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
