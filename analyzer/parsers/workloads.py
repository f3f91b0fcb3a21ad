"""What manages endpoints, from API objects.

Source: Kubernetes, pkg/controller/tainteviction/taint_eviction.go, ``getMinTolerationTime``;
staging/src/k8s.io/api/core/v1/toleration.go, ``ToleratesTaint``; staging/src/k8s.io/
component-helpers/node/topology/helpers.go, ``GetZoneKey``; API reference, discovery.k8s.io/v1,
label ``endpointslice.kubernetes.io/managed-by``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analyzer.model.addresses import Address
from analyzer.model.ternary import Ternary
from analyzer.model.workloads import ManagedPod, NodeFacts, ServiceFacts, Workloads
from analyzer.parsers.api_objects import Object, addresses, at, elements, text
from analyzer.parsers.pods import has_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_CONTROLLER: Final = "endpointslice-controller.k8s.io"
_MIRRORING: Final = "endpointslicemirroring-controller.k8s.io"
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
#: Labels of region and zone, present and former.
_PLACE: Final = (
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
)
#: Labels that nearly every node has: a pod that selects them can be moved.
_COMMON: Final = frozenset({"kubernetes.io/os", "kubernetes.io/arch"})


def workloads_of(items: Sequence[Object]) -> Workloads:
    """Return what pods, Services, EndpointSlices, Nodes and volumes say."""
    volumes = _Volumes(items)
    pods, nodes = {}, {}
    for item in items:
        name = _full_name(item)
        match item.get("kind"):
            case "Pod" if name is not None and not has_ended(item):
                pods[name] = ManagedPod(
                    owner=_owner(item),
                    tolerates=_tolerates(elements(item, "spec", "tolerations")),
                    is_bound=volumes.bind(item) | _is_restricted(at(item, "spec")),
                )
            case "Node" if (node := text(at(item, "metadata", "name"))) is not None:
                nodes[node] = _node(item)
            case _:
                pass
    return Workloads(pods=pods, services=dict(_services(items)), nodes=nodes)


def _full_name(item: Object) -> str | None:
    namespace, name = text(at(item, "metadata", "namespace")), text(at(item, "metadata", "name"))
    return None if namespace is None or name is None else f"{namespace}/{name}"


def _owner(pod: Object) -> str | None:
    owners = elements(pod, "metadata", "ownerReferences")
    kinds = [text(at(each, "kind")) for each in owners if at(each, "controller") is True]
    return next((kind for kind in kinds if kind is not None), None)


def _tolerates(tolerations: Iterable[object]) -> int | None:
    """Return how many seconds a pod stays: the least that its tolerations name; None forever."""
    matching = [each for each in tolerations if _matches(each)]
    if not matching:
        return 0
    times = [at(each, "tolerationSeconds") for each in matching]
    named = [each for each in times if isinstance(each, int) and not isinstance(each, bool)]
    return max(0, min(named)) if named else None


def _matches(toleration: object) -> bool:
    key, effect = at(toleration, "key") or "", at(toleration, "effect") or ""
    operator = at(toleration, "operator") or "Equal"
    if key not in {"", _UNREACHABLE} or effect not in {"", "NoExecute"}:
        return False
    if operator == "Exists":
        return True
    return key == _UNREACHABLE and operator == "Equal" and not at(toleration, "value")


def _is_restricted(spec: object) -> Ternary:
    """Return whether something other than a volume binds a pod to its node; never certainly."""
    selector = at(spec, "nodeSelector")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    asks = (
        isinstance(selector, dict) and not _COMMON.issuperset(selector),
        at(spec, "affinity", "nodeAffinity", required),
        at(spec, "affinity", "podAffinity", required),
        at(spec, "affinity", "podAntiAffinity", required),
        any(
            at(each, "whenUnsatisfiable") == "DoNotSchedule"
            for each in elements(spec, "topologySpreadConstraints")
        ),
        at(spec, "hostNetwork") is True,
        any(
            at(port, "hostPort")
            for each in elements(spec, "containers")
            for port in elements(each, "ports")
        ),
        elements(spec, "resourceClaims"),
    )
    return Ternary.UNKNOWN if any(asks) else Ternary.FALSE


class _Volumes:
    """Where pods can run according to the claims and volumes among the objects."""

    def __init__(self, items: Iterable[Object]) -> None:
        self._volume_of: dict[str, str] = {}
        self._volumes: dict[str, Object] = {}
        for item in items:
            name = _full_name(item)
            if item.get("kind") == "PersistentVolumeClaim" and name is not None:
                self._volume_of[name] = text(at(item, "spec", "volumeName")) or ""
            elif item.get("kind") == "PersistentVolume":
                self._volumes[text(at(item, "metadata", "name")) or ""] = item

    def bind(self, pod: Object) -> Ternary:
        """Return whether a volume binds a pod to its node."""
        found = Ternary.FALSE
        namespace = text(at(pod, "metadata", "namespace")) or ""
        for each in elements(pod, "spec", "volumes"):
            claim = text(at(each, "persistentVolumeClaim", "claimName"))
            if claim is not None:
                found |= self._binds(f"{namespace}/{claim}")
            elif at(each, "ephemeral") is not None:
                found |= Ternary.UNKNOWN  # its claim is made for it
        return found

    def _binds(self, claim: str) -> Ternary:
        volume = self._volumes.get(self._volume_of.get(claim) or "")
        if volume is None:
            return Ternary.UNKNOWN
        if at(volume, "spec", "local") or at(volume, "spec", "hostPath"):
            return Ternary.TRUE
        terms = elements(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
        return Ternary.UNKNOWN if terms else Ternary.FALSE


def _services(items: Sequence[Object]) -> Iterator[tuple[str, ServiceFacts]]:
    by_hand: dict[str, set[Address]] = {}
    by_others: dict[str, set[Address]] = {}
    for item in items:
        if item.get("kind") != "EndpointSlice":
            continue
        namespace = text(at(item, "metadata", "namespace"))
        labels = at(item, "metadata", "labels")
        service, manager = at(labels, _SERVICE_NAME), text(at(labels, _MANAGED_BY))
        if manager == _CONTROLLER:
            continue
        whose = by_hand if manager in {None, _MIRRORING} else by_others
        listed = (each for end in elements(item, "endpoints") for each in _addresses(end))
        whose.setdefault(f"{namespace}/{service}", set()).update(listed)
    for item in items:
        name = _full_name(item)
        if item.get("kind") == "Service" and name is not None:
            spec = at(item, "spec")
            yield (
                name,
                ServiceFacts(
                    has_selector=bool(at(spec, "selector")),
                    publishes_not_ready=at(spec, "publishNotReadyAddresses") is True,
                    by_hand=frozenset(by_hand.get(name, ())),
                    by_others=frozenset(by_others.get(name, ())),
                ),
            )


def _addresses(endpoint: object) -> tuple[Address, ...]:
    return addresses(elements(endpoint, "addresses"))


def _node(item: Object) -> NodeFacts:
    labels = at(item, "metadata", "labels")
    labels = labels if isinstance(labels, dict) else {}
    return NodeFacts(
        zone=_zone(labels),
        may_be_deleted=text(at(item, "spec", "providerID")) is not None,
        counts=_EXCLUDED not in labels,
        kubelet=_version(at(item, "status", "nodeInfo", "kubeletVersion")),
    )


def _zone(labels: Mapping[str, Any]) -> str:
    """Return what identifies a node's zone: region and zone, if it has any."""
    parts = [next((text(labels.get(k)) for k in keys if k in labels), None) for keys in _PLACE]
    return "/".join(part or "" for part in parts) if any(parts) else ""


def _version(told: object) -> tuple[int, int] | None:
    found = re.match(r"v?(\d{1,3})\.(\d{1,3})", told) if isinstance(told, str) else None
    return None if found is None else (int(found[1]), int(found[2]))
