"""Workloads of manifests: their controllers, replica counts and pod templates.

Source: Kubernetes API reference, apps/v1, core/v1, autoscaling/v2; pkg/controller/daemon/util/
daemonset_util.go, ``AddOrUpdateDaemonPodTolerations``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyzer.gate.labels import is_empty, labels_of, selects
from analyzer.model.value import replace, value
from analyzer.parsers.api_objects import Object, at
from analyzer.parsers.manifests import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Kinds whose pods stay, which Services are made for.
_OF_TEMPLATE: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
KINDS: Final = frozenset((*_OF_TEMPLATE, "Pod"))
#: Other kinds that are read.
OTHERS: Final = frozenset(("Service", "HorizontalPodAutoscaler", "Namespace"))
_HASH: Final = "pod-template-hash"
_DAEMON_TOLERATES: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


@value(kw_only=True)
class Workload:
    """Pods of one template.

    Attributes:
        labels: of its pods, with those that its controller adds.
        spec: of its pods.
        replicas: how many, of an autoscaler's numbers the least; of a DaemonSet None: one on each
            node that takes one.
        most: the most that an autoscaler may make of them; `replicas` where none scales it.
        scaler: the autoscaler.
    """

    manifest: Manifest
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    replicas: int | None
    most: int = 0
    scaler: Manifest | None = None

    @property
    def kind(self) -> str:
        """Its kind."""
        return self.manifest.kind

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.manifest.namespace

    @property
    def name(self) -> str:
        """Kind, namespace and name, as kubectl accepts them."""
        return f"{self.kind.lower()} {self.namespace}/{self.manifest.name}"


def workloads(given: Sequence[Manifest]) -> list[Workload]:
    """Return the workloads of manifests, with the replica counts that an autoscaler may choose.

    Raises:
        ParseError: one of them is malformed.
    """
    scalers = _scalers(given)
    return [_scaled(_workload(each), scalers) for each in given if each.kind in KINDS]


def _scaled(workload: Workload, scalers: Mapping[object, Manifest]) -> Workload:
    """Return a workload with the replica counts that its autoscaler may set.

    Source: pkg/controller/podautoscaler/horizontal.go, ``reconcileAutoscaler``: zero replicas are
    not scaled up, unless zero is an allowed minimum.
    """
    found = scalers.get((workload.kind, workload.manifest.key))
    if found is None or workload.replicas is None:
        return workload
    least, most = _numbers_of(found)
    if workload.replicas == 0 and least:
        return workload
    return replace(workload, replicas=least, most=most, scaler=found)


def _workload(given: Manifest) -> Workload:
    item = given.item
    # Of workloads whose names the API is to make, each has its own.
    own = given.name if given.is_named else f"{given.name} {id(given.item)}"
    is_pod = given.kind == "Pod"
    template: Object = item if is_pod else at(item, "spec", "template")
    spec = at(template, "spec")
    if not isinstance(spec, dict):
        given.fail("it has no pod spec")
    try:
        labels = dict(labels_of(at(template, "metadata", "labels"), "labels of its pods"))
        is_own = is_pod or selects(at(item, "spec", "selector"), labels)
    except ValueError as error:
        given.fail(str(error))
    if not is_pod and is_empty(at(item, "spec", "selector")):
        given.fail("spec.selector: empty; the API requires one that selects its pods")
    if not is_own:
        given.fail("spec.selector does not match the labels of its own pods")
    if given.kind in {"Deployment", "ReplicaSet"}:
        labels.setdefault(_HASH, own)
    if given.kind == "StatefulSet":
        labels.setdefault("controller-revision-hash", own)
    if given.kind == "DaemonSet":
        spec = {**spec, "tolerations": [*_daemon_tolerations(spec)]}
    number = _replicas(given)
    return Workload(manifest=given, labels=labels, spec=spec, replicas=number, most=number or 0)


def _replicas(given: Manifest) -> int | None:
    if given.kind == "DaemonSet":
        return None
    if given.kind == "Pod":
        return 1
    number = at(given.item, "spec", "replicas")
    return 1 if number is None else int(number)


def _daemon_tolerations(spec: Mapping[str, Any]) -> Iterator[object]:
    own = spec.get("tolerations")
    yield from own if isinstance(own, list) else ()
    known = list(_DAEMON_TOLERATES)
    if spec.get("hostNetwork") is True:
        known.append(("network-unavailable", "NoSchedule"))
    for name, effect in known:
        yield {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}


def _scalers(given: Sequence[Manifest]) -> dict[object, Manifest]:
    """Return autoscalers by the kind and key of what they scale.

    Raises:
        ParseError: two scale the same; the controller then scales by neither of them.
    """
    found: dict[object, Manifest] = {}
    for each in given:
        if each.kind == "HorizontalPodAutoscaler":
            target = each.item["spec"]["scaleTargetRef"]
            key = target["kind"], (each.namespace, target["name"])
            first = found.setdefault(key, each)
            if first is not each:
                each.fail(f"scales {target['kind']} {target['name']}, as does {first.title}")
            _numbers_of(each)
    return found


def _numbers_of(scaler: Manifest) -> tuple[int, int]:
    """Return the least and the most pods that an autoscaler keeps."""
    spec = scaler.item["spec"]
    least, most = at(spec, "minReplicas"), spec["maxReplicas"]
    least = 1 if least is None else least
    if most < least:
        scaler.fail(f"spec.maxReplicas: {most:,} is less than minReplicas, {least:,}")
    return least, most
