"""The same pods on different nodes, as required anti-affinity or topology spread places them."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.advice.measures.replica import why_not
from analyzer.advice.placing import placed
from analyzer.advice.takers import Takers


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation in which no node has two pods while another schedulable one has none."""
    return placed(situation, key, _placing)


def _placing(now: Sequence[str], can: Takers) -> Sequence[str] | Refused:
    kept = list(dict.fromkeys(now))
    if len(kept) == len(now):
        return Refused("its pods are already on different nodes")
    free = [name for name in can.names if name not in kept]
    if not free:
        return Refused("no other node can take one" + why_not(can))
    kept += free[: len(now) - len(kept)]
    # What is left has no node of its own: it stays, by turns.
    return [*kept, *(kept * len(now))[: len(now) - len(kept)]]


MEASURE = Measure(
    name="spread",
    says="the same pods on different nodes",
    subject=Subject.SERVICE,
    change=change,
    unsaid=(
        "new constraints do not move running pods: it takes a rollout, or deleting a pod",
        "required anti-affinity keeps pods Pending if there are too few nodes",
    ),
)
