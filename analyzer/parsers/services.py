"""Services and their endpoints out of API objects, for one IP version.

Source: Kubernetes API reference: core/v1 Service, Endpoints; discovery.k8s.io/v1 EndpointSlice.
Kubernetes, pkg/proxy/util/utils.go, ``ShouldSkipService``; pkg/proxy/apis/well_known_labels.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from analyzer.model.packet import Address, address_from_text
from analyzer.model.services import EndpointSpec, ServicePortSpec
from analyzer.parsers.compression import decompress

_Object = dict[str, Any]

#: Labels of Services that kube-proxy leaves to somebody else.
_NOT_OURS: Final = (
    "service.kubernetes.io/service-proxy-name",
    "service.kubernetes.io/headless",
)
#: The API's default of sessionAffinityConfig.clientIP.timeoutSeconds.
_AFFINITY_SECONDS: Final = 10800


def parse_services(files: Sequence[tuple[str, bytes]], version: int) -> tuple[ServicePortSpec, ...]:
    """Return the ServicePorts of the objects in `files`, which `parse_objects` has accepted.

    `version` is that of IP: 4 or 6. What is odd in an object is left out.
    """
    items = [item for _, data in files for item in _items(data)]
    endpoints = _Endpoints(items, version)
    return tuple(
        found
        for item in items
        if item.get("kind") == "Service"
        for found in _service(item, endpoints, version)
    )


def _items(data: bytes) -> list[_Object]:
    value = json.loads(decompress(data).decode("utf-8", "surrogateescape"))
    items = value.get("items", [value])
    return [item for item in items if isinstance(item, dict)]


def _at(value: object, *path: str) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _list(value: object, *path: str) -> list[Any]:
    found = _at(value, *path)
    return found if isinstance(found, list) else []


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _addresses(texts: Iterable[object], version: int) -> Iterator[tuple[str, Address]]:
    for text in texts:
        address = address_from_text(text) if isinstance(text, str) else None
        if address is not None and address.version == version:
            yield str(text), address


def _service(item: _Object, all_of: _Endpoints, version: int) -> Iterator[ServicePortSpec]:
    spec, labels = _at(item, "spec"), _at(item, "metadata", "labels")
    # None and an empty text: not assigned; "None": headless.
    if _at(spec, "type") == "ExternalName" or _text(_at(spec, "clusterIP")) in {"", "None"}:
        return
    if isinstance(labels, dict) and any(label in labels for label in _NOT_OURS):
        return
    key = _text(_at(item, "metadata", "namespace")), _text(_at(item, "metadata", "name"))
    ingress = [
        _at(each, "ip")
        for each in _list(item, "status", "loadBalancer", "ingress")
        if _at(each, "ipMode") != "Proxy"
    ]
    cluster = _list(spec, "clusterIPs") or [_at(spec, "clusterIP")]
    kinds = (
        ("ClusterIP", cluster),
        ("ExternalIP", _list(spec, "externalIPs")),
        ("LoadBalancerIP", ingress),
    )
    addresses = [(k, address) for k, texts in kinds for _, address in _addresses(texts, version)]
    policy = _at(spec, "externalTrafficPolicy")
    affinity = None
    if _at(spec, "sessionAffinity") == "ClientIP":
        told = _number(_at(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds"))
        affinity = _AFFINITY_SECONDS if told is None else told
    for port in _list(spec, "ports"):
        number, node_port = _number(_at(port, "port")), _number(_at(port, "nodePort"))
        if number is None or not any(kind == "ClusterIP" for kind, _ in addresses):
            continue
        name = _text(_at(port, "name"))
        yield ServicePortSpec(
            name="/".join(key) + (f":{name}" if name else ""),
            protocol=(_text(_at(port, "protocol")) or "TCP").lower(),
            frontends=(
                *[(kind, address, number) for kind, address in addresses],
                *([("NodePort", None, node_port)] if node_port else []),
            ),
            endpoints=all_of.of(key, name),
            affinity=affinity,
            internal_local=_at(spec, "internalTrafficPolicy") == "Local",
            external_local=None if policy is None else policy == "Local",
        )


class _Endpoints:
    """What EndpointSlices and Endpoints say, by Service."""

    def __init__(self, items: Iterable[_Object], version: int) -> None:
        self._version = version
        self._slices: dict[tuple[str, str], list[_Object]] = {}
        self._endpoints: dict[tuple[str, str], list[_Object]] = {}
        for item in items:
            space = _text(_at(item, "metadata", "namespace"))
            if item.get("kind") == "EndpointSlice":
                name = _text(_at(item, "metadata", "labels", "kubernetes.io/service-name"))
                self._slices.setdefault((space, name), []).append(item)
            elif item.get("kind") == "Endpoints":
                name = _text(_at(item, "metadata", "name"))
                self._endpoints.setdefault((space, name), []).append(item)

    def of(self, key: tuple[str, str], port: str) -> tuple[EndpointSpec, ...]:
        """Return the endpoints of a Service's port of that name, each once."""
        slices = self._merged(self._of_slices(self._slices.get(key, []), port))
        older = self._merged(self._of_endpoints(self._endpoints.get(key, []), port))
        of_both = any(each.is_ready for each in slices.values()) and any(
            each.is_ready for each in older.values()
        )
        found = []
        for place in dict.fromkeys([*slices, *older]):
            told = [each[place] for each in (slices, older) if place in each]
            ready = any(each.is_ready for each in told)
            all_say = all(each.is_ready for each in told) and len(told) == (2 if of_both else 1)
            first = told[0]
            found.append(
                EndpointSpec(
                    address=first.address,
                    port=first.port,
                    spellings=tuple(dict.fromkeys(s for each in told for s in each.spellings)),
                    node=next((each.node for each in told if each.node), None),
                    is_ready=ready,
                    is_certain=all_say,
                    may_serve=any(each.may_serve for each in told),
                    zones=first.zones,
                    nodes=first.nodes,
                )
            )
        return tuple(found)

    @staticmethod
    def _merged(found: Iterable[EndpointSpec]) -> dict[tuple[Address, int], EndpointSpec]:
        """Return endpoints by place; of one that is listed twice, the ready one."""
        merged: dict[tuple[Address, int], EndpointSpec] = {}
        for each in found:
            place = each.address, each.port
            if place not in merged or (each.is_ready and not merged[place].is_ready):
                merged[place] = each
        return merged

    def _of_slices(self, slices: Iterable[_Object], port: str) -> Iterator[EndpointSpec]:
        for item in slices:
            numbers = [
                number
                for each in _list(item, "ports")
                if _text(_at(each, "name")) == port
                and (number := _number(_at(each, "port"))) is not None
            ]
            for endpoint in _list(item, "endpoints"):
                conditions = _at(endpoint, "conditions")
                node = _at(endpoint, "nodeName") or _at(
                    endpoint, "topology", "kubernetes.io/hostname"
                )
                for text, address in _addresses(_list(endpoint, "addresses"), self._version):
                    for number in numbers:
                        yield EndpointSpec(
                            address=address,
                            port=number,
                            spellings=(text,),
                            node=_text(node) or None,
                            is_ready=_at(conditions, "ready") is not False,
                            may_serve=_at(conditions, "terminating") is True
                            and _at(conditions, "serving") is True,
                            zones=_hinted(endpoint, "forZones"),
                            nodes=_hinted(endpoint, "forNodes"),
                        )

    def _of_endpoints(self, endpoints: Iterable[_Object], port: str) -> Iterator[EndpointSpec]:
        for item in endpoints:
            for subset in _list(item, "subsets"):
                numbers = [
                    number
                    for each in _list(subset, "ports")
                    if _text(_at(each, "name")) == port
                    and (number := _number(_at(each, "port"))) is not None
                ]
                for key in ("addresses", "notReadyAddresses"):
                    for entry in _list(subset, key):
                        for text, address in _addresses([_at(entry, "ip")], self._version):
                            for number in numbers:
                                yield EndpointSpec(
                                    address=address,
                                    port=number,
                                    spellings=(text,),
                                    node=_text(_at(entry, "nodeName")) or None,
                                    is_ready=key == "addresses",
                                )


def _hinted(endpoint: object, key: str) -> frozenset[str]:
    return frozenset(_text(_at(each, "name")) for each in _list(endpoint, "hints", key))
