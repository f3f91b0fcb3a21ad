"""``watch`` for the textfile collector of the node exporter.

Metrics are times, not ages, so that an age is right whenever it is computed. After a failed look
there are no metrics of rules: those of an earlier look would pass for current ones. Bounds are
rounded outwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analyzer.failure.loss import LossState
from analyzer.reports.prometheus import at_least, at_most, metric
from analyzer.reports.watch_answer import FAILURES, CheckResult, Seen, Watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.reports.prometheus import MetricLabels, Sample

_PREFIX: Final = "kubeodds"
#: Which ServicePorts have samples of their own: every one, those with something to say, or none.
PER_SERVICE: Final = ("all", "affected", "no")


def render(found: Watched, per_service: str) -> Iterator[str]:
    """Yield the whole page; `per_service` is a value of PER_SERVICE."""
    yield head(found)
    if found.result is not None:
        yield body(found.result, per_service, since=found.every is not None)


def head(found: Watched) -> str:
    """Return the metrics of every check: whether it succeeded, and the times of its data."""
    return "".join(_head(found))


def _head(found: Watched) -> Iterator[str]:
    ages = found.ages
    yield from _metric(
        "up", "Whether the last look read and judged the rules.", int(not found.failure)
    )
    says = "Whether everything was judged, and nothing exceeds what is allowed."
    yield from _metric("ok", says, int(found.is_ok))
    failed = [({"reason": each}, int(each == found.failure)) for each in FAILURES]
    yield from _metrics("failure", "Why the last look failed: 1 for the reason.", failed)
    yield from _metrics("build_info", "The version of kubeodds.", [({"version": found.version}, 1)])
    says = "Looks so far, by result."
    looks = [({"result": name}, number) for name, number in found.looks.items()]
    yield from metric(f"{_PREFIX}_looks_total", says, looks, kind="counter")
    yield from _metric("last_look_timestamp_seconds", "When the last look began.", found.at)
    for name, says, time in (
        (
            "last_success_timestamp_seconds",
            "When the last successful look began.",
            ages.success,
        ),
        (
            "rules_changed_timestamp_seconds",
            "When a look first found the present rules.",
            ages.changed if found.every is not None else None,
        ),
        ("objects_modified_timestamp_seconds", "When the objects' file was written.", ages.objects),
        ("dead_modified_timestamp_seconds", "When the file of --dead-file was written.", ages.dead),
        ("look_interval_seconds", "Time from one look to the next.", found.every),
    ):
        if time is not None:
            yield from _metric(name, says, time)
    files = [({"file": name}, time) for name, time in ages.rules.items()]
    says = "When a file of rules was written."
    yield from _metrics("rules_modified_timestamp_seconds", says, files)
    yield from _metric("look_duration_seconds", "How long the last look took.", found.took)
    says = "CPU time of the watch."
    cpu: list[Sample] = [({}, found.cpu)]
    yield from metric(f"{_PREFIX}_process_cpu_seconds_total", says, cpu, kind="counter")
    says = "Resident memory of the watch."
    yield from _metric("process_resident_memory_bytes", says, found.resident)


def body(found: CheckResult, per_service: str, *, since: bool) -> str:
    """Return the metrics of the rules, unchanged as long as they are; `since` adds its time."""
    return "".join([*_whole(found), *_of_services(found, per_service, since=since)])


def _whole(found: CheckResult) -> Iterator[str]:
    yield from _metric("rules", "Rules that were read.", found.rules)
    states = Counter(each.state for each in found.services)
    samples = [({"state": each.value}, states[each]) for each in LossState]
    yield from _metrics("service_ports", "ServicePorts, by what happens to new flows.", samples)
    says = "ServicePorts not judged, or not completely."
    yield from _metric("service_ports_not_judged", says, len(found.not_judged))
    says = "ServicePorts that may lose more than is allowed."
    yield from _metric("service_ports_beyond", says, len(found.beyond))
    yield from _metric("whole", "Whether nothing is known to be left out.", int(found.is_whole))
    yield from _metric("dead_endpoints", "Endpoints in the rules that are dead.", found.dead)
    says = "Addresses declared dead that are in no rule."
    yield from _metric("dead_gone", says, len(found.gone))
    worst = found.worst_loss
    says = "Share of new flows that the worst ServicePort loses, lower bound."
    yield from _metric("worst_loss_lower_ratio", says, at_least(worst.lower))
    says = "Share of new flows that the worst ServicePort loses, upper bound."
    yield from _metric("worst_loss_upper_ratio", says, at_most(worst.upper))
    says = "Whether it is known how the rules differ from the objects."
    yield from _metric("drift_known", says, int(found.drift is not None))
    if found.drift is None:
        return
    says = "Differences of the rules from what kube-proxy writes for the objects."
    yield from _metric("drift_differences", says, found.differences)
    says = "The same, by kind."
    kinds = [({"code": code}, number) for code, number in sorted(found.drift.items())]
    yield from _metrics("drift_kind_differences", says, kinds)
    says = "ServicePorts for which it is not known."
    yield from _metric("drift_not_judged", says, len(found.drift_unknown))


def _of_services(found: CheckResult, per_service: str, *, since: bool) -> Iterator[str]:
    if per_service == "no":
        return
    shown: Sequence[Seen] = found.services
    if per_service == "affected":
        shown = [each for each in shown if each.is_affected]
    labelled = [(_labels(each), each) for each in shown]
    for name, says, samples in (
        ("endpoints", "Endpoints in the rules.", [(of, e.endpoints) for of, e in labelled]),
        ("dead_endpoints", "Those of them that are dead.", [(of, e.dead) for of, e in labelled]),
        (
            "loss_lower_ratio",
            "Share of new flows lost on the worst route, lower bound.",
            [(of, at_least(e.loss.lower)) for of, e in labelled],
        ),
        (
            "loss_upper_ratio",
            "Share of new flows lost on the worst route, upper bound.",
            [(of, at_most(e.loss.upper)) for of, e in labelled],
        ),
    ):
        yield from _metrics(f"service_{name}", says, samples)
    drifted = [
        ({"service": name, "namespace": _namespace(name), "protocol": protocol}, number)
        for (name, protocol), number in sorted(found.drifted.items())
    ]
    yield from _metrics("service_drift_differences", "Differences from the objects.", drifted)
    if since:
        says = "When a look first found the ServicePort's present state."
        seen = [(of, e.since) for of, e in labelled if e.since is not None]
        yield from _metrics("service_changed_timestamp_seconds", says, seen)


def _namespace(name: str) -> str:
    namespace, sign, _ = name.partition("/")
    return namespace if sign else ""


def _labels(each: Seen) -> MetricLabels:
    return {
        "service": each.name,
        "namespace": each.namespace,
        "protocol": each.protocol,
        "family": each.family,
    }


def _metric(name: str, says: str, number: float) -> Iterator[str]:
    return _metrics(name, says, [({}, number)])


def _metrics(name: str, says: str, samples: Sequence[Sample]) -> Iterator[str]:
    return metric(f"{_PREFIX}_{name}", says, samples)
