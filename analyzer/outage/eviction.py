"""The rate at which a zone's dead nodes get the NoExecute taint that evicts their pods.

Source: Kubernetes, pkg/controller/nodelifecycle/node_lifecycle_controller.go, ``ComputeZoneState``,
``handleDisruption``, ``setLimiterInZone``, ``ReducedQPSFunc``; the defaults: cmd/
kube-controller-manager/app/options/nodelifecyclecontroller.go, ``AddFlags``.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from fractions import Fraction

from analyzer.model.value import value
from analyzer.model.workloads import NodeFacts
from analyzer.outage.clocks import ANY_TIME, NEVER, TimeBounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Source of the defaults of `Rates`.
RATES_SOURCE: Final = "cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go, AddFlags"
#: A zone with fewer nodes is not partially disrupted, whatever their share is.
_FEWEST: Final = 3


@value(kw_only=True)
class Rates:
    """How many nodes are tainted per second, and when that slows down.

    Attributes:
        normal: nodes of a zone per second.
        secondary: the same in a zone of which at least `threshold` is unhealthy.
        large: a zone up to this number of nodes counts as small, with no evictions then.
    """

    normal: Fraction = Fraction(1, 10)
    secondary: Fraction = Fraction(1, 100)
    threshold: Fraction = Fraction(55, 100)
    large: int = 50


@enum.unique
class ZoneState(enum.Enum):
    """The state of a zone, as the node lifecycle controller defines it."""

    NORMAL = "normal"
    PARTIAL = "partial disruption"
    FULL = "full disruption"


def zone_state(unhealthy: int, nodes: int, rates: Rates) -> ZoneState:
    """Return the state of a zone with `nodes` nodes, of which `unhealthy` are unhealthy."""
    if unhealthy == nodes:
        return ZoneState.FULL
    if unhealthy >= _FEWEST and Fraction(unhealthy, nodes) >= rates.threshold:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


def rate(state: ZoneState, nodes: int, rates: Rates) -> Fraction:
    """Return how many nodes of a zone are tainted per second, while other zones have live ones."""
    if state is ZoneState.PARTIAL:
        return rates.secondary if nodes > rates.large else Fraction(0)
    return rates.normal


def waits(
    dead: Collection[str], nodes: Mapping[str, NodeFacts], rates: Rates
) -> dict[str, TimeBounds]:
    """Return how long each dead node waits for its taint, once it is NotReady.

    The nodes of a zone are found dead one after the other, so the zone may still be normal when the
    first of them is tainted: the least is by the normal rate, and the most by the state in which
    all of them are dead. A node that is not among the objects may wait for any time.
    """
    gone = frozenset(dead)
    counted = {name: facts for name, facts in nodes.items() if facts.counts}
    if nodes and gone.issuperset(counted):
        return dict.fromkeys(dead, NEVER)
    found = {}
    for name in dead:
        if name not in nodes:
            found[name] = ANY_TIME
            continue
        zone = [other for other, facts in counted.items() if facts.zone == nodes[name].zone]
        queue = len([n for n in gone if n in nodes and nodes[n].zone == nodes[name].zone])
        unhealthy = len([other for other in zone if other in gone])
        state = zone_state(unhealthy, len(zone), rates) if zone else ZoneState.NORMAL
        found[name] = _wait(rate(state, len(zone), rates), queue)
    return found


def _wait(each_second: Fraction, queue: int) -> TimeBounds:
    """Return how long one of `queue` nodes waits; a limiter whose rate changed starts empty."""
    return TimeBounds(Fraction(0), (queue + 1) / each_second if each_second else None)
