"""The control plane in JSON documents: its components, and what a failure leaves of it."""

from __future__ import annotations

from typing import Any, Final

from analyzer.model.ternary import Ternary
from analyzer.outage.control_plane import ControlPlaneState, quorum, survives
from analyzer.reports.answers import WhatIfAnswer

#: null: not known.
TERNARY: Final = {Ternary.TRUE: True, Ternary.FALSE: False, Ternary.UNKNOWN: None}


def topology(answer: WhatIfAnswer) -> dict[str, Any] | None:
    """Return which nodes run which component, and how many may fail; empty if not known."""
    found = answer.topology
    if found is None:
        return None
    return {
        "api": list(found.api),
        "etcd": found.etcd.value,
        "members": list(found.members),
        "quorum": quorum(len(found.members)) if found.members else None,
        "controllers": list(found.controllers),
        "schedulers": list(found.schedulers),
        "load_balancer": found.load_balancer.value,
        "balancers": list(found.balancers),
        "survives": survives(found),
        "assumed": list(found.assumed),
    }


def control_plane(judgement: ControlPlaneState | None) -> dict[str, Any] | None:
    """Return what still works after a failure; empty if not known."""
    if judgement is None:
        return None
    return {
        "api": judgement.state.value,
        "api_servers": judgement.api[0],
        "etcd_members": None if judgement.members is None else judgement.members[0],
        "controllers": judgement.controllers[0],
        "schedulers": judgement.schedulers[0],
        "quorum": TERNARY[judgement.has_quorum],
        "reachable": TERNARY[judgement.is_reachable],
        "heals": TERNARY[judgement.heals],
        "replaces": TERNARY[judgement.replaces],
        "may_elect": judgement.may_elect,
        "reasons": list(judgement.reasons),
    }
