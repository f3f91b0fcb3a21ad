"""Services and their endpoints from API objects, for one IP version.

Source: Kubernetes API reference: core/v1 Service, Endpoints; discovery.k8s.io/v1 EndpointSlice.
Kubernetes, pkg/proxy/util/utils.go, ``ShouldSkipService``; pkg/proxy/apis/well_known_labels.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from analyzer.model.addresses import Address, address_from_text
from analyzer.model.services import ApiEndpoint, ApiServicePort
from analyzer.parsers.api_objects import Object, at, elements, text

#: Labels of Services that kube-proxy leaves to another proxy.
_NOT_OURS: Final = (
    "service.kubernetes.io/service-proxy-name",
    "service.kubernetes.io/headless",
)
#: The API's default of sessionAffinityConfig.clientIP.timeoutSeconds.
_AFFINITY_SECONDS: Final = 10800


def parse_services(items: Sequence[Object], version: int) -> tuple[ApiServicePort, ...]:
    """Return the ServicePorts of decoded objects, for IP `version` 4 or 6.

    Malformed parts of an object are left out.
    """
    endpoints = _Endpoints(items, version)
    return tuple(
        found
        for item in items
        if item.get("kind") == "Service"
        for found in _service(item, endpoints, version)
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    return text(value) or ""


def _addresses(texts: Iterable[object], version: int) -> Iterator[tuple[str, Address]]:
    for spelt in texts:
        address = address_from_text(spelt) if isinstance(spelt, str) else None
        if address is not None and address.version == version:
            yield str(spelt), address


def _service(item: Object, all_of: _Endpoints, version: int) -> Iterator[ApiServicePort]:
    spec, labels = at(item, "spec"), at(item, "metadata", "labels")
    # None and an empty text: not assigned; "None": headless.
    if at(spec, "type") == "ExternalName" or _text(at(spec, "clusterIP")) in {"", "None"}:
        return
    if isinstance(labels, dict) and any(label in labels for label in _NOT_OURS):
        return
    key = _text(at(item, "metadata", "namespace")), _text(at(item, "metadata", "name"))
    ingress = [
        at(each, "ip")
        for each in elements(item, "status", "loadBalancer", "ingress")
        if at(each, "ipMode") != "Proxy"
    ]
    cluster = elements(spec, "clusterIPs") or [at(spec, "clusterIP")]
    kinds = (
        ("ClusterIP", cluster),
        ("ExternalIP", elements(spec, "externalIPs")),
        ("LoadBalancerIP", ingress),
    )
    addresses = [(k, address) for k, texts in kinds for _, address in _addresses(texts, version)]
    policy = at(spec, "externalTrafficPolicy")
    affinity = None
    if at(spec, "sessionAffinity") == "ClientIP":
        told = _number(at(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds"))
        affinity = _AFFINITY_SECONDS if told is None else told
    for port in elements(spec, "ports"):
        number, node_port = _number(at(port, "port")), _number(at(port, "nodePort"))
        if number is None or not any(kind == "ClusterIP" for kind, _ in addresses):
            continue
        name = _text(at(port, "name"))
        yield ApiServicePort(
            name="/".join(key) + (f":{name}" if name else ""),
            protocol=(_text(at(port, "protocol")) or "TCP").lower(),
            frontends=(
                *[(kind, address, number) for kind, address in addresses],
                *([("NodePort", None, node_port)] if node_port else []),
            ),
            endpoints=all_of.of(key, name),
            affinity=affinity,
            internal_local=at(spec, "internalTrafficPolicy") == "Local",
            external_local=None if policy is None else policy == "Local",
        )


class _Endpoints:
    """The endpoints in EndpointSlices and Endpoints, by Service."""

    def __init__(self, items: Iterable[Object], version: int) -> None:
        self._version = version
        self._slices: dict[tuple[str, str], list[Object]] = {}
        self._endpoints: dict[tuple[str, str], list[Object]] = {}
        for item in items:
            space = _text(at(item, "metadata", "namespace"))
            if item.get("kind") == "EndpointSlice":
                name = _text(at(item, "metadata", "labels", "kubernetes.io/service-name"))
                self._slices.setdefault((space, name), []).append(item)
            elif item.get("kind") == "Endpoints":
                name = _text(at(item, "metadata", "name"))
                self._endpoints.setdefault((space, name), []).append(item)

    def of(self, key: tuple[str, str], port: str) -> tuple[ApiEndpoint, ...]:
        """Return the endpoints of a Service's port, by its name, each once."""
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
                ApiEndpoint(
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
    def _merged(found: Iterable[ApiEndpoint]) -> dict[tuple[Address, int], ApiEndpoint]:
        """Return endpoints by address and port; of duplicates, a ready one."""
        merged: dict[tuple[Address, int], ApiEndpoint] = {}
        for each in found:
            place = each.address, each.port
            if place not in merged or (each.is_ready and not merged[place].is_ready):
                merged[place] = each
        return merged

    def _of_slices(self, slices: Iterable[Object], port: str) -> Iterator[ApiEndpoint]:
        for item in slices:
            numbers = [
                number
                for each in elements(item, "ports")
                if _text(at(each, "name")) == port
                and (number := _number(at(each, "port"))) is not None
            ]
            for endpoint in elements(item, "endpoints"):
                conditions = at(endpoint, "conditions")
                node = at(endpoint, "nodeName") or at(
                    endpoint, "topology", "kubernetes.io/hostname"
                )
                for spelt, address in _addresses(elements(endpoint, "addresses"), self._version):
                    for number in numbers:
                        yield ApiEndpoint(
                            address=address,
                            port=number,
                            spellings=(spelt,),
                            node=_text(node) or None,
                            is_ready=at(conditions, "ready") is not False,
                            may_serve=at(conditions, "terminating") is True
                            and at(conditions, "serving") is True,
                            zones=_hinted(endpoint, "forZones"),
                            nodes=_hinted(endpoint, "forNodes"),
                        )

    def _of_endpoints(self, endpoints: Iterable[Object], port: str) -> Iterator[ApiEndpoint]:
        for item in endpoints:
            for subset in elements(item, "subsets"):
                numbers = [
                    number
                    for each in elements(subset, "ports")
                    if _text(at(each, "name")) == port
                    and (number := _number(at(each, "port"))) is not None
                ]
                for key in ("addresses", "notReadyAddresses"):
                    for entry in elements(subset, key):
                        for spelt, address in _addresses([at(entry, "ip")], self._version):
                            for number in numbers:
                                yield ApiEndpoint(
                                    address=address,
                                    port=number,
                                    spellings=(spelt,),
                                    node=_text(at(entry, "nodeName")) or None,
                                    is_ready=key == "addresses",
                                )


def _hinted(endpoint: object, key: str) -> frozenset[str]:
    return frozenset(_text(at(each, "name")) for each in elements(endpoint, "hints", key))
