"""Which pod has an address, from API objects.

Source: Kubernetes API reference: core/v1 Pod, Endpoints, ObjectReference; discovery.k8s.io/v1
EndpointSlice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from analyzer.model.addresses import Address
from analyzer.model.cluster import PodNames
from analyzer.parsers.api_objects import Object, addresses, at, elements, text

K = TypeVar("K")

#: Phases of pods that no longer run.
_ENDED: Final = ("Succeeded", "Failed")


def pods_of(objects: Sequence[Object]) -> PodNames:
    """Return the pods that EndpointSlices and Endpoints refer to, and those listed themselves.

    A pod in the node's network says nothing about the node's address, which others share.
    """
    by_port: list[tuple[tuple[Address, int], str]] = []
    by_address: list[tuple[Address, str]] = []
    for item in objects:
        match item.get("kind"):
            case "EndpointSlice":
                by_port += _of_slice(item)
            case "Endpoints":
                by_port += _of_endpoints(item)
            case "Pod" if not _is_in_host_network(item) and not has_ended(item):
                name = _full_name(at(item, "metadata"), None)
                if name is not None:
                    by_address += [(address, name) for address in addresses_of(item)]
            case _:
                pass
    return PodNames(_agreed(by_port), _agreed(by_address))


def has_ended(pod: Object) -> bool:
    """Return whether a pod no longer runs, so that another pod may have its address."""
    return at(pod, "status", "phase") in _ENDED


def addresses_of(pod: Object) -> tuple[Address, ...]:
    """Return the addresses of a pod."""
    listed = [at(entry, "ip") for entry in elements(pod, "status", "podIPs")]
    return addresses(listed or [at(pod, "status", "podIP")])


def _agreed(found: Iterable[tuple[K, str]]) -> dict[K, str | None]:
    agreed: dict[K, str | None] = {}
    for key, name in found:
        agreed[key] = name if agreed.get(key, name) == name else None
    return agreed


_Named = Iterator[tuple[tuple[Address, int], str]]


def _of_slice(item: Object) -> _Named:
    numbers = _numbers(item)
    for endpoint in elements(item, "endpoints"):
        name = _target(item, at(endpoint, "targetRef"))
        if name is not None:
            for address in addresses(elements(endpoint, "addresses")):
                for number in numbers:
                    yield (address, number), name


def _of_endpoints(item: Object) -> _Named:
    for subset in elements(item, "subsets"):
        numbers = _numbers(subset)
        for key in ("addresses", "notReadyAddresses"):
            for entry in elements(subset, key):
                name = _target(item, at(entry, "targetRef"))
                if name is not None:
                    for address in addresses([at(entry, "ip")]):
                        for number in numbers:
                            yield (address, number), name


def _numbers(item: object) -> list[int]:
    found = (at(port, "port") for port in elements(item, "ports"))
    return [number for number in found if type(number) is int]


def _target(item: Object, reference: object) -> str | None:
    """Return the pod that an endpoint of `item` refers to."""
    if at(reference, "kind") != "Pod":
        return None
    return _full_name(reference, text(at(item, "metadata", "namespace")))


def _full_name(named: object, namespace: str | None) -> str | None:
    namespace, name = text(at(named, "namespace")) or namespace, text(at(named, "name"))
    return None if namespace is None or name is None else f"{namespace}/{name}"


def _is_in_host_network(pod: Object) -> bool:
    if at(pod, "spec", "hostNetwork") is True:
        return True
    host = addresses([at(pod, "status", "hostIP")])
    return any(address in host for address in addresses_of(pod))
