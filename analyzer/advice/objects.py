"""The API objects of one Service, and modified copies of them.

Source: Kubernetes API reference: core/v1 Node, Pod, Service; discovery.k8s.io/v1 EndpointSlice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.model.addresses import Address, address_from_text
from analyzer.parsers.api_objects import Object, addresses, at, elements, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.advice.measure import NamespacedName

_OF_SERVICE: Final = "kubernetes.io/service-name"
_HOSTNAME: Final = "kubernetes.io/hostname"
_ZONE: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_FAMILIES: Final = {4: "IPv4", 6: "IPv6"}


def key_of(item: Object) -> NamespacedName:
    """Return namespace and name of an object."""
    return text(at(item, "metadata", "namespace")) or "", text(at(item, "metadata", "name")) or ""


def service_of(items: Iterable[Object], key: NamespacedName) -> Object | None:
    """Return the first Service of that name; later ones are ignored."""
    return next((i for i in items if i.get("kind") == "Service" and key_of(i) == key), None)


def slices_of(items: Sequence[Object], key: NamespacedName) -> list[Object]:
    """Return the EndpointSlices of a Service, or its Endpoints if it has none."""
    found: dict[NamespacedName, Object] = {}
    for item in items:
        if item.get("kind") == "EndpointSlice" and _owner(item) == key:
            found.setdefault(key_of(item), item)
    if found:
        return [*found.values()]
    older = [i for i in items if i.get("kind") == "Endpoints" and key_of(i) == key]
    return [*_as_slices(older[0], key)] if older else []


def with_slices(
    items: Sequence[Object],
    key: NamespacedName,
    slices: Sequence[Object],
    gone: Iterable[Address] = (),
) -> list[Object]:
    """Return objects in which these EndpointSlices replace all others of a Service.

    Pods whose addresses are `gone` are left out too: they run elsewhere, under other names.
    """
    left = frozenset(gone)
    kept: list[Object] = []
    place: int | None = None
    for item in items:
        kind = item.get("kind")
        if (kind == "EndpointSlice" and _owner(item) == key) or (
            kind == "Endpoints" and key_of(item) == key
        ):
            place = len(kept) if place is None else place
        elif not (kind == "Pod" and left.intersection(_pod_addresses(item))):
            kept.append(item)
    place = len(kept) if place is None else place
    return [*kept[:place], *slices, *kept[place:]]


def with_service(items: Sequence[Object], key: NamespacedName, changed: Object) -> list[Object]:
    """Return objects with another Service of that name."""
    return [changed if i.get("kind") == "Service" and key_of(i) == key else i for i in items]


def with_spec(service: Object, **fields: object) -> Object:
    """Return a Service with other fields in its spec."""
    return {**service, "spec": {**mapping(at(service, "spec")), **fields}}


def is_usable(endpoint: object) -> bool:
    """Return whether an endpoint is ready, which is the default."""
    return isinstance(endpoint, dict) and at(endpoint, "conditions", "ready") is not False


def address_of(endpoint: object) -> Address | None:
    """Return the address that kube-proxy takes, the first."""
    first = next(iter(elements(endpoint, "addresses")), None)
    return address_from_text(first) if isinstance(first, str) else None


def mapping(value: object) -> dict[str, Any]:
    """Return labels, annotations or a spec; empty if missing."""
    return value if isinstance(value, dict) else {}


def node_of(endpoint: object) -> str | None:
    """Return the node that an endpoint says it is on."""
    return text(at(endpoint, "nodeName")) or text(at(endpoint, "topology", _HOSTNAME))


def zone_of(node: Object) -> str | None:
    """Return the zone that a Node says it is in."""
    labels = at(node, "metadata", "labels")
    return next((zone for label in _ZONE if (zone := text(at(labels, label)))), None)


def nodes_of(items: Iterable[Object]) -> dict[str, Object]:
    """Return Nodes by name."""
    named = ((text(at(i, "metadata", "name")), i) for i in items if i.get("kind") == "Node")
    found: dict[str, Object] = {}
    for name, item in named:
        if name is not None:
            found.setdefault(name, item)
    return found


def moved(endpoint: Any, address: Address, node: str, zone: str | None) -> Any:
    """Return a copy of an endpoint on another node: another pod, whose name is not known."""
    kept = {
        k: v for k, v in endpoint.items() if k not in ("targetRef", "zone", "hints", "hostname")
    }
    if isinstance(kept.get("topology"), dict):  # discovery.k8s.io/v1beta1
        labels = {k: v for k, v in kept["topology"].items() if k not in _ZONE}
        kept["topology"] = {**labels, _HOSTNAME: node, **({_ZONE[0]: zone} if zone else {})}
    place = {"nodeName": node, **({"zone": zone} if zone else {})}
    return {**kept, "addresses": [str(address)], **place}


def _owner(item: Object) -> NamespacedName:
    name = text(at(item, "metadata", "labels", _OF_SERVICE)) or ""
    return text(at(item, "metadata", "namespace")) or "", name


def _pod_addresses(pod: Object) -> tuple[Address, ...]:
    if at(pod, "spec", "hostNetwork") is True:
        return ()  # others have it too
    listed = [at(each, "ip") for each in elements(pod, "status", "podIPs")]
    return addresses(listed or [at(pod, "status", "podIP")])


def _as_slices(endpoints: Object, key: NamespacedName) -> Iterator[Object]:
    """Yield what the mirroring controller makes of Endpoints, by IP version."""
    for number, subset in enumerate(elements(endpoints, "subsets")):
        for family, kind in _FAMILIES.items():
            listed = [
                {
                    "addresses": [at(each, "ip")],
                    "conditions": {"ready": is_ready},
                    **({"nodeName": node} if (node := text(at(each, "nodeName"))) else {}),
                }
                for group, is_ready in (("addresses", True), ("notReadyAddresses", False))
                for each in elements(subset, group)
                if [a.version for a in addresses([at(each, "ip")])] == [family]
            ]
            if listed:
                yield {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "addressType": kind,
                    "metadata": {
                        "name": f"{key[1]}-{number}-{kind.lower()}",
                        "namespace": key[0],
                        "labels": {_OF_SERVICE: key[1]},
                    },
                    "ports": elements(subset, "ports"),
                    "endpoints": listed,
                }
