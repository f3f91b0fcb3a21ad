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


def control_plane(plane: ControlPlaneState | None) -> dict[str, Any] | None:
    """Return what still works after a failure; empty if not known."""
    if plane is None:
        return None
    return {
        "api": plane.state.value,
        "api_servers": plane.api[0],
        "etcd_members": None if plane.members is None else plane.members[0],
        "controllers": plane.controllers[0],
        "schedulers": plane.schedulers[0],
        "quorum": TERNARY[plane.has_quorum],
        "reachable": TERNARY[plane.is_reachable],
        "heals": TERNARY[plane.heals],
        "replaces": TERNARY[plane.replaces],
        "may_elect": plane.may_elect,
        "reasons": list(plane.reasons),
    }
