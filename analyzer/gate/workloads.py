"""Workloads of manifests: who makes pods, how many, and of which template.

Source: Kubernetes API reference, apps/v1, core/v1, autoscaling/v2; pkg/controller/daemon/util/
daemonset_util.go, ``AddOrUpdateDaemonPodTolerations``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyzer.gate.api_shapes import MOST_REPLICAS
from analyzer.gate.labels import is_empty, labels_of, selects
from analyzer.model.value import replace, value
from analyzer.parsers.api_objects import Object, at, text
from analyzer.parsers.manifests import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Kinds whose pods stay, which Services are made for.
_OF_TEMPLATE: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
KINDS: Final = frozenset((*_OF_TEMPLATE, "Pod"))
#: Kinds that are read besides.
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
    """Pods that are alike.

    Attributes:
        labels: of its pods, with those that its controller adds.
        spec: of its pods.
        replicas: how many; of a DaemonSet None: one on each node that takes one.
        scaled: what the number is by an autoscaler, in words; empty where none scales it.
        most: how many pods its autoscaler may make of them, which are not judged; 0: no more.
    """

    manifest: Manifest
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    replicas: int | None
    scaled: str = ""
    most: int = 0

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
        """Kind, namespace and name, as kubectl takes them."""
        return f"{self.kind.lower()} {self.namespace}/{self.manifest.name}"


def workloads(given: Sequence[Manifest]) -> list[Workload]:
    """Return the workloads of manifests, the number of their pods as an autoscaler may have it.

    Raises:
        ParseError: one of them is malformed.
    """
    bounds = dict(_scaled(given))
    found = []
    for each in given:
        if each.kind in KINDS:
            made = _workload(each)
            bound = bounds.get((each.kind, each.key))
            if bound is not None and made.replicas is not None:
                least, most = bound
                says = f"{made.name}: {least} pods, the least that its autoscaler keeps"
                more = most if most > least else 0
                made = replace(made, replicas=least, scaled=says, most=more)
            found.append(made)
    return found


def _workload(given: Manifest) -> Workload:
    item = given.item
    if not given.name:
        given.fail("no name in its metadata")
    is_pod = given.kind == "Pod"
    template: Object = item if is_pod else at(item, "spec", "template")
    spec = at(template, "spec")
    if not isinstance(spec, dict):
        given.fail("no pod spec in it")
    try:
        labels = dict(labels_of(at(template, "metadata", "labels"), "labels of its pods"))
        is_own = is_pod or selects(at(item, "spec", "selector"), labels)
    except ValueError as error:
        given.fail(str(error))
    if not is_pod and is_empty(at(item, "spec", "selector")):
        given.fail("spec.selector: empty, which the API does not take for a workload")
    if not is_own:
        given.fail("its selector does not select its own pods")
    if given.kind in {"Deployment", "ReplicaSet"}:
        labels.setdefault(_HASH, given.name)
    if given.kind == "StatefulSet":
        labels.setdefault("controller-revision-hash", given.name)
    if given.kind == "DaemonSet":
        spec = {**spec, "tolerations": [*_daemon_tolerations(spec)]}
    return Workload(manifest=given, labels=labels, spec=spec, replicas=_replicas(given))


def _replicas(given: Manifest) -> int | None:
    if given.kind == "DaemonSet":
        return None
    if given.kind == "Pod":
        return 1
    number = at(given.item, "spec", "replicas")
    if number is None:
        return 1
    if type(number) is not int or not 0 <= number <= MOST_REPLICAS:
        given.fail(f"replicas: expected a number from 0 to {MOST_REPLICAS:,}, not {number!r}")
    return number


def _daemon_tolerations(spec: Mapping[str, Any]) -> Iterator[object]:
    own = spec.get("tolerations")
    yield from own if isinstance(own, list) else ()
    known = list(_DAEMON_TOLERATES)
    if spec.get("hostNetwork") is True:
        known.append(("network-unavailable", "NoSchedule"))
    for name, effect in known:
        yield {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}


def _scaled(
    given: Sequence[Manifest],
) -> Iterator[tuple[tuple[str, tuple[str, str]], tuple[int, int]]]:
    """Give the least and the most pods that autoscalers keep, by a workload's kind and key."""
    for each in given:
        if each.kind == "HorizontalPodAutoscaler":
            target = at(each.item, "spec", "scaleTargetRef")
            least = at(each.item, "spec", "minReplicas")
            least = 1 if least is None else least
            if type(least) is not int or not 0 <= least <= MOST_REPLICAS:
                each.fail(f"minReplicas: expected a number, not {least!r}")
            most = at(each.item, "spec", "maxReplicas")
            if type(most) is not int or not max(1, least) <= most:
                each.fail(f"maxReplicas: expected a number, at least minReplicas, not {most!r}")
            kind, name = text(at(target, "kind")), text(at(target, "name"))
            if kind and name:
                yield (kind, (each.namespace, name)), (least, most)
