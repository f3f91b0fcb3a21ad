"""One more pod on a node of its own, which the scheduler prefers but does not guarantee."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.advice.placing import placed
from analyzer.advice.takers import Takers


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation with one more pod, on the first schedulable node without one."""
    return placed(situation, key, _placing)


def _placing(now: Sequence[str], can: Takers) -> Sequence[str] | Refused:
    free = [name for name in can.names if name not in now]
    if not free:
        return Refused("no other node can take one" + why_not(can))
    return [*now, free[0]]


def why_not(can: Takers) -> str:
    """Return which nodes cannot run a pod, and why, for the end of a sentence."""
    told = [f"{name} is {why}" for name, why in sorted(can.refused.items())]
    more = f" and {len(told) - 1:,} more" if told[1:] else ""
    return f" ({told[0]}{more})" if told else ""


MEASURE = Measure(
    name="replica",
    says="one more pod, on a node without one",
    subject=Subject.SERVICE,
    change=change,
    unsaid=("only required anti-affinity keeps the pod off a node that already has one",),
)
