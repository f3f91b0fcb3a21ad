"""What objects of unsupported kinds may do: create pods of Services, or scale them.

Nothing has to be known of such a kind for that: a pod template is one wherever it stands, and a
reference to a workload, as autoscalers have it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.gate.labels import labels_of, selects
from analyzer.gate.services import GatedService, Unjudged
from analyzer.gate.templates import PodTemplate
from analyzer.gate.workloads import KINDS, Workload
from analyzer.parsers.api_objects import Object, at, text
from analyzer.parsers.manifests import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Fields by which an object of another kind takes a workload's pods, or their number, in hand:
#: those of KEDA and of the scale subresource, and of Argo Rollouts.
_REFERENCES: Final = ("scaleTargetRef", "workloadRef")
#: What the fields mean that leave it out. Source: KEDA's ScaledObject.
_USUAL_KIND: Final = "Deployment"


def judged_or_not(
    service: GatedService, unseen: Iterable[Manifest], templates: Sequence[PodTemplate]
) -> GatedService | Unjudged:
    """Return a Service, or why its pods are not known."""
    own = [templates[g].workload for g in service.groups]
    for each in unseen:
        for labels in _pods_of(each.item):
            if each.namespace == service.manifest.namespace and _selects(service, labels):
                why = f"it selects pods of {each.title}, a kind that is not judged"
                return Unjudged(service.manifest, why, matters=True)
        for kind, name in _referred(each.item):
            for workload in own:
                if workload is not None and _is(workload, kind, each.namespace, name):
                    why = f"{each.title}, a kind that is not judged, scales {workload.name}"
                    return Unjudged(service.manifest, why, matters=True)
    return service


def adrift(found: Iterable[Manifest], own: Iterable[Workload]) -> Iterator[tuple[Manifest, str]]:
    """Yield the autoscalers whose target is not in the manifests, each with that target."""
    there = {(each.kind, each.manifest.key) for each in own}
    for each in found:
        if each.kind == "HorizontalPodAutoscaler":
            target = each.item["spec"]["scaleTargetRef"]
            if (target["kind"], (each.namespace, target["name"])) not in there:
                yield each, f"{target['kind']} {target['name']}"


def _selects(service: GatedService, labels: object) -> bool:
    selector = labels_of(at(service.item, "spec", "selector"), "selector")
    try:
        return selects({"matchLabels": selector}, labels_of(labels, "labels"))
    except ValueError:
        return True  # what they are is not known


def _is(workload: Workload, kind: str, namespace: str, name: str) -> bool:
    return (workload.kind, workload.manifest.key) == (kind, (namespace, name))


def _pods_of(item: Object) -> Iterator[object]:
    """Yield the labels of each pod template in an object, wherever it stands."""
    for each in _inside(item):
        spec = each.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield at(each, "metadata", "labels") or {}


def _referred(item: Object) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the workloads that an object refers to."""
    for each in _inside(item):
        for field in _REFERENCES:
            name = text(at(each, field, "name"))
            kind = text(at(each, field, "kind")) or _USUAL_KIND
            if name is not None and kind in KINDS:
                yield kind, name


def _inside(item: Object) -> Iterator[dict[str, object]]:
    """Yield all maps in an object, itself the first."""
    rest: list[object] = [item]
    while rest:
        each = rest.pop()
        if isinstance(each, dict):
            yield each
            rest += each.values()
        elif isinstance(each, list):
            rest += each
