"""The loss of a Service for a client that connects to pod IPs, bypassing kube-proxy's rules."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.advice.scores import CostliestFailure, FailedNodes, Score
from analyzer.clients.connect import connect_to_pods
from analyzer.clients.connectors import CONNECTORS
from analyzer.clients.operations import ends
from analyzer.clients.outcome import fails
from analyzer.clients.responses import FlowResponse, counted
from analyzer.failure.incidence import BITS, ONE, rank
from analyzer.failure.models import Dead
from analyzer.kubeproxy.predict.every_node import EveryNode
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.cluster import Cluster
from analyzer.model.probability import Bounds, Dyadic
from analyzer.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction


def proxied(
    client: str,
    score: Score,
    services: Sequence[EveryNode],
    cluster: Cluster,
    failures: Sequence[FailedNodes],
) -> Score:
    """Return the score for that client, whose plan gives the chance of failure.

    What a Service survives stays: with no living pod left every client fails.
    """
    worst, means = CostliestFailure(), [(0, 0)]
    for each in services:
        endpoints = each.together.endpoints
        lower = upper = 0
        for names in failures:
            low, high = _fails(client, endpoints, cluster, names)
            loss = Bounds(_dyadic(low), _dyadic(high, up=True))
            if rank(loss.upper.over(BITS)) > rank(worst.loss.upper.over(BITS)):
                worst = CostliestFailure(nodes=names, loss=loss)
            lower += loss.lower.over(BITS)
            upper += loss.upper.over(BITS)
        number = max(1, len(failures))
        means.append((lower // number, upper // number))
    mean = max(means, key=lambda each: (each[1], each[0]))
    return replace(score, worst=worst, mean=mean, dropped=0)


def _fails(
    client: str, endpoints: Sequence[Endpoint], cluster: Cluster, names: FailedNodes
) -> tuple[Fraction, Fraction]:
    """Return the chance that a request fails when these nodes do; what is dead is silent."""
    places = {each: cluster.placement(each.address).node for each in endpoints}
    dead = Dead(
        endpoints=frozenset(e for e, node in places.items() if node in names),
        uncertain=frozenset(e for e, node in places.items() if node is None),
    )
    sure, perhaps = counted(endpoints, dead, lambda _: FlowResponse.SILENT)
    return fails(connect_to_pods(CONNECTORS[client], sure, perhaps, (), ends))


def _dyadic(chance: Fraction, *, up: bool = False) -> Dyadic:
    """Return a chance, rounded outwards to 2**-256 where it is no multiple of that."""
    scaled = chance * ONE
    whole = scaled.numerator // scaled.denominator
    return Dyadic.of(min(ONE, whole + (up and scaled.denominator != 1)), BITS)
