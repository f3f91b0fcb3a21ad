"""One more pod on a node in use: what a replica gains where nothing keeps pods apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.advice.placing import placed
from analyzer.advice.takers import Takers


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation with one more pod on the node that has most."""
    return placed(situation, key, _placing)


def _placing(now: Sequence[str], can: Takers) -> Sequence[str] | Refused:
    held = Counter(name for name in now if name in can.names)
    if not held:
        return Refused("the nodes of its pods are not among the objects")
    return [*now, min(held, key=lambda name: (-held[name], name))]


MEASURE = Measure(
    name="replica-beside",
    says="one more pod, on the busiest node",
    subject=Subject.SERVICE,
    change=change,
)
