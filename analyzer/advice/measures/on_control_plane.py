"""All pods on control-plane nodes, so that the Service fails only when they do."""

from __future__ import annotations

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.advice.measures.off_control_plane import emptiest
from analyzer.advice.placing import placed
from analyzer.advice.takers import control_plane_of


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation in which all pods are on control-plane nodes."""
    masters = sorted(situation.said.control_plane or control_plane_of(situation.items))
    if not masters:
        return Refused("no node has the control plane's role label; --control-plane names them")
    return placed(
        situation,
        key,
        lambda now, _: (
            Refused("all of its pods are already on the control plane")
            if all(name in masters for name in now)
            else [
                *(stay := [name for name in now if name in masters]),
                *emptiest(stay, masters, len(now) - len(stay)),
            ]
        ),
    )


MEASURE = Measure(
    name="on-control-plane",
    says="all of its pods on the control plane",
    subject=Subject.SERVICE,
    change=change,
    unsaid=("its pods need a toleration of the control plane's taint, and room there",),
)
