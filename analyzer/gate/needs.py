"""What a pod requires of its node, regardless of other pods.

Source: Kubernetes, pkg/scheduler/framework/plugins: nodename, nodeaffinity, nodeports,
tainttoleration, nodeunschedulable, noderesources; pkg/api/v1/resource/helpers.go, ``PodRequests``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analyzer.advice.takers import tolerates
from analyzer.gate.labels import labels_of, meets_node_selector
from analyzer.gate.nodes import SchedulingNode
from analyzer.gate.quantities import quantity
from analyzer.parsers.api_objects import at, elements, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeAlias

    from analyzer.gate.nodes import Taint

    Spec: TypeAlias = Mapping[str, Any]
    #: Address of the host, protocol and number; the address is empty where it is any.
    HostPortKey: TypeAlias = tuple[str, str, int]

_KEPT_OUT: Final = ("NoSchedule", "NoExecute")
#: Resources that a pod may request as one.
_OF_POD: Final = ("cpu", "memory")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_ANY: Final = ("", "0.0.0.0", "::")  # noqa: S104  # how a pod names all addresses; nothing is bound


def why_not(spec: Spec, node: SchedulingNode) -> str:
    """Return why a pod cannot run on a node; empty if it can.

    Raises:
        ValueError: the pod's spec is malformed.
    """
    if not is_selected(spec, node):
        return "not selected by nodeSelector or nodeAffinity"
    keeping = untolerated(spec, node)
    if keeping is not None:
        key, _, effect = keeping
        return "cordoned" if key.endswith("/unschedulable") else f"tainted {key}:{effect}"
    return ""


def is_selected(spec: Spec, node: SchedulingNode) -> bool:
    """Return whether a pod's nodeSelector and required nodeAffinity match a node."""
    wanted = labels_of(spec.get("nodeSelector"), "nodeSelector")
    terms = at(spec.get("affinity"), "nodeAffinity", _REQUIRED)
    meets = terms is None or meets_node_selector(terms, node.name, node.labels)
    return meets and all(node.labels.get(key) == each for key, each in wanted.items())


def untolerated(spec: Spec, node: SchedulingNode) -> Taint | None:
    """Return the first taint that a pod does not tolerate."""
    tolerations = elements(spec, "tolerations")
    for taint in node.taints:
        if taint[2] in _KEPT_OUT and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


def host_ports(spec: Spec) -> frozenset[HostPortKey]:
    """Return the host ports that a pod uses."""
    is_host = spec.get("hostNetwork") is True
    found = set()
    for container in elements(spec, "containers"):
        for port in elements(container, "ports"):
            number = at(port, "hostPort") or (at(port, "containerPort") if is_host else None)
            if type(number) is int and number:
                address = text(at(port, "hostIP")) or ""
                protocol = text(at(port, "protocol")) or "TCP"
                found.add(("" if address in _ANY else address, protocol, number))
    return frozenset(found)


def conflicts(one: frozenset[HostPortKey], other: frozenset[HostPortKey]) -> bool:
    """Return whether two pods use the same host port, so that one node cannot run both."""
    return any(
        (a[1:] == b[1:]) and (not a[0] or not b[0] or a[0] == b[0]) for a in one for b in other
    )


def requests(spec: Spec) -> dict[str, int]:
    """Return how much a pod requests, by resource; ``pods`` is one.

    Containers that start before the others and stay count as these do, those that end first count
    where they need more. What the pod requests as one counts in their place.

    Raises:
        ValueError: an amount is no quantity.
    """
    total: dict[str, int] = {}
    for container in elements(spec, "containers"):
        _add(total, _of_container(container))
    most: dict[str, int] = {}
    staying: dict[str, int] = {}
    for container in elements(spec, "initContainers"):
        own = _of_container(container)
        if at(container, "restartPolicy") == "Always":
            _add(staying, own)
            _add(total, own)
            own = {}
        for key in {*own, *staying}:
            most[key] = max(most.get(key, 0), own.get(key, 0) + staying.get(key, 0))
    for key, number in most.items():
        total[key] = max(total.get(key, 0), number)
    total.update(_of_pod(spec, total))
    _add(total, dict(_amounts(at(spec, "overhead"))))
    return {**{key: each for key, each in total.items() if each}, "pods": 1}


def _of_pod(spec: Spec, of_containers: Mapping[str, int]) -> dict[str, int]:
    """Return what the pod requests for all of its containers together, in place of their sum.

    Source: pkg/apis/core/v1/defaults.go, ``defaultPodRequests``: its limits count where neither it
    nor a container requests anything of a resource.
    """
    limits = dict(_amounts(at(spec, "resources", "limits")))
    found = {key: each for key, each in limits.items() if key not in of_containers}
    found.update(_amounts(at(spec, "resources", "requests")))
    return {k: n for k, n in found.items() if k in _OF_POD or k.startswith("hugepages-")}


def _of_container(container: object) -> dict[str, int]:
    # The API uses limits for missing requests.
    limits = dict(_amounts(at(container, "resources", "limits")))
    return {**limits, **dict(_amounts(at(container, "resources", "requests")))}


def _amounts(given: object) -> Iterator[tuple[str, int]]:
    if isinstance(given, dict):
        for key, each in given.items():
            if each is None:
                continue
            try:
                yield key, quantity(key, each)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for key, number in more.items():
        total[key] = total.get(key, 0) + number
