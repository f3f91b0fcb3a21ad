"""No pod on control-plane nodes, as their taint enforces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.advice.measures.replica import why_not
from analyzer.advice.placing import placed
from analyzer.advice.takers import Takers, control_plane_of


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation in which pods on control-plane nodes have moved to other nodes."""
    masters = situation.said.control_plane or control_plane_of(situation.items)
    if not masters:
        return Refused("no node has the control plane's role label; --control-plane names them")
    return placed(situation, key, lambda now, can: away(now, can, masters))


def away(now: Sequence[str], can: Takers, masters: Collection[str]) -> Sequence[str] | Refused:
    """Return the nodes of pods after those on some nodes moved to the emptiest others."""
    stay = [name for name in now if name not in masters]
    others = [name for name in can.names if name not in masters]
    if len(stay) == len(now):
        return Refused("none of its pods is on the control plane")
    if not others:
        return Refused("no other node can take one" + why_not(can))
    return [*stay, *emptiest(stay, others, len(now) - len(stay))]


def emptiest(now: Sequence[str], names: Sequence[str], number: int) -> list[str]:
    """Return the nodes, among those named, to which `number` pods are added one by one."""
    held = Counter(now)
    found = []
    for _ in range(number):
        found.append(min(names, key=lambda name: (held[name], name)))
        held[found[-1]] += 1
    return found


MEASURE = Measure(
    name="off-control-plane",
    says="its pods leave the control plane",
    subject=Subject.SERVICE,
    change=change,
    unsaid=("whether the other nodes have room for what leaves the control plane",),
)
