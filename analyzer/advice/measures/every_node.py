"""A pod on every schedulable node: a DaemonSet, or an autoscaler by nodes that spreads."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.advice.measures.replica import why_not
from analyzer.advice.placing import placed
from analyzer.advice.takers import Takers


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation with exactly one pod on each schedulable node."""
    return placed(situation, key, _placing)


def _placing(now: Sequence[str], can: Takers) -> Sequence[str] | Refused:
    there = list(dict.fromkeys(now))
    missing = [name for name in can.names if name not in there]
    if len(there) == len(now) and not missing:
        return Refused("every node that can take a pod has one" + why_not(can))
    return [*there, *missing]


MEASURE = Measure(
    name="every-node",
    says="a pod on every node",
    subject=Subject.SERVICE,
    change=change,
    unsaid=("whether it can be a DaemonSet, and what an autoscaler does",),
)
