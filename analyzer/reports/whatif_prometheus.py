"""``whatif`` for the textfile collector of the node exporter: gauges with labels.

Losses are upper bounds: what is not known counts as lost, so that an alarm is not missed. Sets of
several nodes are counted, not listed: which are the worst changes from day to day.

Source: Prometheus, docs/instrumenting/exposition_formats.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from analyzer.failure.whatif import Failure, FailureKind
from analyzer.model.ternary import Ternary
from analyzer.outage.control_plane import ApiState, survives
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.json_values import family
from analyzer.reports.prometheus import metric
from analyzer.reports.whatif_order import mean_loss

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.reports.prometheus import MetricLabels, Sample

_PREFIX: Final = "kubeodds_whatif"


def render(answer: WhatIfAnswer) -> Iterator[str]:
    """Yield all samples of one metric after the other."""

    def worst(failure: Failure) -> float:
        return 0.0 if failure.worst is None else float(failure.worst.upper)

    by_failure: tuple[tuple[str, str, Callable[[Failure], float]], ...] = (
        (
            "worst_loss_ratio",
            ("Share of new flows that the worst ServicePort loses, upper bound."),
            worst,
        ),
        (
            "mean_loss_ratio",
            "Share of new flows lost, mean over all ServicePorts, upper bound.",
            lambda failure: mean_loss(answer, failure.cost)[1],
        ),
        ("total_loss", "ServicePorts in total loss.", lambda f: len(f.cost.silenced)),
        (
            "partial_loss",
            "ServicePorts in partial loss, or possibly.",
            lambda f: f.cost.degraded + f.cost.unknown,
        ),
    )
    failures = [each for each in answer.found.failures() if each.kind is not FailureKind.SET]
    for name, says, number in by_failure:
        samples = [(_failing(each), number(each)) for each in failures]
        yield from _metric(name, says, samples)
    yield from _control_plane(answer, failures)
    says = "Sets of this many nodes that put a ServicePort in total loss."
    yield from _metric("silencing_sets", says, [*_silencing(answer)])
    yield from _metric("survives_nodes", _SURVIVES, [*_survivals(answer)], worse=min)
    yield from _metric("service_ports", "ServicePorts judged.", [({}, answer.found.nodes.counted)])
    if answer.found.vantages:
        says = "Nodes at which ServicePorts were judged."
        yield from _metric("vantage_nodes", says, [({}, len(answer.found.vantages))])
    says = "ServicePorts of which all new flows on a route may be lost with nothing dead."
    yield from _metric("lost_now", says, [({}, len(answer.lost_now))])
    says = "ServicePorts not judged, or not completely."
    yield from _metric("not_judged", says, [({}, len(answer.not_judged))])
    says = "Whether everything was judged, and no threshold is broken."
    whole = answer.is_whole and not answer.is_broken
    yield from _metric("ok", says, [({}, int(whole))])


def _control_plane(answer: WhatIfAnswer, failures: list[Failure]) -> Iterator[str]:
    """Yield what failures leave of the control plane, where one is known."""
    if answer.topology is None:
        return
    planes = [
        (_failing(f), j) for f in failures if (j := answer.control_plane_after(f)) is not None
    ]
    says = "Whether the API can certainly read and write."
    yield from _metric("api_up", says, [(f, int(j.state is ApiState.UP)) for f, j in planes], min)
    says = "Whether dead endpoints certainly leave the rules in time."
    healing = [(f, int(j.heals is Ternary.TRUE)) for f, j in planes]
    yield from _metric("heals", says, healing, min)
    says = "How many node failures the control plane survives, whichever nodes fail."
    yield from _metric("control_plane_survives_nodes", says, [({}, survives(answer.topology))])


_SURVIVES: Final = "How many node failures a ServicePort survives, whichever nodes fail."


def _survivals(answer: WhatIfAnswer) -> Iterator[tuple[MetricLabels, float]]:
    for at, service in enumerate(answer.found.services):
        survives = answer.found.survives(at)
        if survives is not None:
            labels = {
                "service": service.name.text,
                "protocol": service.protocol,
                "family": family(service.version) or "",
            }
            yield labels, survives


def _silencing(answer: WhatIfAnswer) -> Iterator[tuple[MetricLabels, float]]:
    for sets in answer.found.sets:
        if sets.silencing is not None:
            yield {"size": str(sets.size)}, sets.silencing


def _failing(failure: Failure) -> MetricLabels:
    return {"kind": failure.kind.value, "failure": ",".join(failure.names)}


def _metric(
    name: str,
    says: str,
    samples: Sequence[Sample],
    worse: Callable[[float, float], float] = max,
) -> Iterator[str]:
    return metric(f"{_PREFIX}_{name}", says, samples, worse)
