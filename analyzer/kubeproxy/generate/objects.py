"""Decoded API objects as ServicePorts and settings of one kube-proxy.

Source: Kubernetes API reference: core/v1 Node, Service, Endpoints; discovery.k8s.io/v1
EndpointSlice; pkg/proxy/serviceport.go, pkg/proxy/endpointslicecache.go and
pkg/proxy/util/utils.go, ``ShouldSkipService``. An API server rejects malformed objects, but files
can be edited: a Service with anything malformed is left out, and reported by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from analyzer.kubeproxy.generate.config import IPV4, ProxyConfig, RulesLayout
from analyzer.kubeproxy.generate.specs import EndpointSpec, ServicePortSpec
from analyzer.model.addresses import (
    Address,
    Network,
    address_from_text,
    address_to_text,
    network_from_text,
)
from analyzer.parsers.api_objects import Object, at, elements, text

_ZONE: Final = "topology.kubernetes.io/zone"
#: The older annotation takes precedence.
_TOPOLOGY_MODES: Final = (
    "service.kubernetes.io/topology-aware-hints",
    "service.kubernetes.io/topology-mode",
)
_OF_SERVICE: Final = "kubernetes.io/service-name"
#: Labels of Services and EndpointSlices that kube-proxy ignores.
#: Source: cmd/kube-proxy/app/server.go, ``noProxyName`` and ``noHeadlessEndpoints``.
_NOT_OURS: Final = (
    "service.kubernetes.io/service-proxy-name",
    "service.kubernetes.io/headless",
)
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_MOST_PORT: Final = 65_535
#: The API's default of sessionAffinityConfig.clientIP.timeoutSeconds.
_AFFINITY_SECONDS: Final = 10_800
_NO_ENDPOINTS: Final = (
    "EndpointSlices but no Endpoints, which kube-proxy {} reads: add `kubectl get endpoints`"
)


class _MalformedError(ValueError):
    """Something in an object that an API server would reject."""


def proxy_config(
    objects: Sequence[Object],
    flags: Sequence[str],
    *,
    node: str,
    layout: RulesLayout,
    family: int = IPV4,
) -> ProxyConfig:
    """Return the settings of the kube-proxy that ran with `flags`, as ``--name=value``, at `node`.

    Flags that change no rule are ignored.
    """
    given = dict(flag.lstrip("-").partition("=")[::2] for flag in flags)
    named = [o for o in objects if o.get("kind") == "Node" and at(o, "metadata", "name") == node]
    own = named[0] if named else {}
    networks = _networks(family, given.get("cluster-cidr", "").split(","))
    if given.get("detect-local-mode") == "NodeCIDR":
        networks = pod_networks_of(own, family)
    return ProxyConfig(
        layout=layout,
        family=family,
        node=node,
        node_address=node_address_of(own, family) if layout.knows_node_address else None,
        zone=text(at(own, "metadata", "labels", _ZONE)),
        cluster_cidr=networks[0] if networks else None,
        service_cidrs=service_cidrs(objects, family),
        masquerade_all=given.get("masquerade-all", "false") in ("", "true"),
        localhost_node_ports=given.get("iptables-localhost-nodeports", "true") in ("", "true"),
    )


def node_address_of(node: Object, family: int) -> Address | None:
    """Return the address that kube-proxy uses as its node's.

    Source: pkg/util/node/node.go, ``GetNodeHostIPs``: internal addresses take precedence.
    """
    listed = elements(node, "status", "addresses")
    for kind in ("InternalIP", "ExternalIP"):
        texts = [at(each, "address") for each in listed if at(each, "type") == kind]
        found = _of(family, texts)
        if found:
            return found[0]
    return None


def pod_networks_of(node: Object, family: int) -> tuple[Network, ...]:
    """Return a node's podCIDRs of one family."""
    cidrs = elements(node, "spec", "podCIDRs") or [at(node, "spec", "podCIDR")]
    return _networks(family, cidrs)


def service_cidrs(objects: Iterable[Object], family: int) -> tuple[Network, ...]:
    """Return the networks of ClusterIPs that ServiceCIDR objects define."""
    of_all = (o for o in objects if o.get("kind") == "ServiceCIDR")
    return _networks(family, [each for o in of_all for each in elements(o, "spec", "cidrs")])


def service_ports(
    objects: Iterable[Object],
    layout: RulesLayout,
    family: int = IPV4,
    malformed: list[str] | None = None,
) -> Iterator[ServicePortSpec]:
    """Yield the ServicePorts of one family that a kube-proxy makes of Services and EndpointSlices.

    Headless Services have none, nor have those of type ExternalName. Endpoints are read for a
    Service without EndpointSlices, and up to 1.18 for every one. Whatever is left out because it is
    malformed is added to `malformed`, with the reason.
    """
    # If several files have an object, the first one counts.
    services: dict[tuple[str, str], Object] = {}
    slices: dict[tuple[str, str], dict[str, Object]] = {}
    endpoints: dict[tuple[str, str], Object] = {}
    for item in objects:
        kind = item.get("kind")
        if kind not in ("Service", "EndpointSlice", "Endpoints") or _is_others(item):
            continue
        namespace, name = _names(item)
        if kind == "Service":
            services.setdefault((namespace, name), item)
        elif kind == "Endpoints":
            endpoints.setdefault((namespace, name), item)
        elif owner := text(at(item, "metadata", "labels", _OF_SERVICE)):
            slices.setdefault((namespace, owner), {}).setdefault(name, item)
    for key, service in services.items():
        try:
            own = _read([*slices.get(key, {}).values()], endpoints.get(key), layout)
            yield from _service(service, own, layout, family)
        except _MalformedError as error:
            if malformed is not None:
                malformed.append(f"{'/'.join(key)}: {error}")


def _is_others(item: Object) -> bool:
    labels = at(item, "metadata", "labels")
    return isinstance(labels, dict) and any(label in labels for label in _NOT_OURS)


def _names(item: Object) -> tuple[str, str]:
    return text(at(item, "metadata", "namespace")) or "", text(at(item, "metadata", "name")) or ""


def _service(
    service: Object, slices: Sequence[Object], layout: RulesLayout, family: int
) -> list[ServicePortSpec]:
    """Return the ServicePorts of one Service: all of them, or it is malformed."""
    if not all(map(is_name, _names(service))):
        raise _MalformedError("the API would not allow its name or namespace")
    spec = at(service, "spec")
    cluster = at(spec, "clusterIP")
    if cluster in (None, "", "None") or at(spec, "type") == "ExternalName":
        return []
    found = []
    for address in _addresses(elements(spec, "clusterIPs") or [cluster], "clusterIPs"):
        if address.version == family:
            ports = elements(spec, "ports")
            found += [_service_port(service, port, address, slices, layout) for port in ports]
    return found


def _service_port(
    service: Object, port: object, address: Address, slices: Sequence[Object], layout: RulesLayout
) -> ServicePortSpec:
    spec, family = at(service, "spec"), address.version
    port_name = text(at(port, "name")) or ""
    if port_name and not is_name(port_name):
        raise _MalformedError(f"port name {port_name!r} is not one that the API allows")
    annotations = at(service, "metadata", "annotations")
    health = at(spec, "healthCheckNodePort")
    ranges = elements(spec, "loadBalancerSourceRanges")
    return ServicePortSpec(
        name="/".join(_names(service)) + (f":{port_name}" if port_name else ""),
        protocol=_protocol(port),
        cluster_ip=address,
        port=_port(at(port, "port"), "port"),
        endpoints=_endpoints(slices, port_name, family, layout),
        node_port=_port(at(port, "nodePort"), "nodePort") if at(port, "nodePort") else 0,
        external_ips=_given(family, elements(spec, "externalIPs"), "externalIPs"),
        load_balancer_ips=_given(family, _ingress(service, layout), "status.loadBalancer"),
        load_balancer_source_ranges=_ranges(family, ranges),
        external_local=at(spec, "externalTrafficPolicy") == "Local" and _may_be_local(spec, layout),
        internal_local=at(spec, "internalTrafficPolicy") == "Local",
        affinity=_affinity(spec),
        health_check_node_port=_port(health, "healthCheckNodePort")
        if health and at(spec, "type") == "LoadBalancer"
        else 0,
        topology_mode=next(
            (mode for key in _TOPOLOGY_MODES if (mode := text(at(annotations, key)))), None
        ),
    )


def is_name(found: str) -> bool:
    """Return whether it is a DNS name, as an API server requires: rules quote it."""
    return found.isascii() and bool(found) and found.replace("-", "").replace(".", "").isalnum()


def _protocol(port: object) -> str:
    found = at(port, "protocol") or "TCP"
    if found not in _PROTOCOLS:
        raise _MalformedError(f"protocol {found!r} is not one of {', '.join(_PROTOCOLS)}")
    return str(found).lower()


def _port(number: object, what: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= _MOST_PORT:
        raise _MalformedError(f"{what} {number!r} is not a port")
    return number


def _affinity(spec: object) -> int | None:
    if at(spec, "sessionAffinity") != "ClientIP":
        return None
    seconds = at(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds")
    if seconds is None:
        return _AFFINITY_SECONDS
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds < 0:
        raise _MalformedError(f"timeoutSeconds {seconds!r} is not a number of seconds")
    return seconds


def _may_be_local(spec: object, layout: RulesLayout) -> bool:
    """Whether externalTrafficPolicy applies; to external IPs alone only since 1.29.

    Source: pkg/api/v1/service/util.go, ``ExternalPolicyLocal``.
    """
    if at(spec, "type") in ("NodePort", "LoadBalancer"):
        return True
    return layout.minor > RulesLayout.V1_28.minor and bool(elements(spec, "externalIPs"))


def _ingress(service: Object, layout: RulesLayout) -> Iterator[object]:
    """Yield the addresses of load balancers that keep them as destination."""
    for each in elements(service, "status", "loadBalancer", "ingress"):
        address = at(each, "ip")
        asks = layout.minor >= RulesLayout.V1_30.minor
        if address and (not asks or (at(each, "ipMode") or "VIP") == "VIP"):
            yield address


def _addresses(texts: Iterable[object], what: str) -> Iterator[Address]:
    for each in texts:
        address = address_from_text(each) if isinstance(each, str) else None
        if address is None or "%" in str(each):  # rules have no zones
            raise _MalformedError(f"{what} {each!r} is not an IP address")
        yield address


def _given(family: int, texts: Iterable[object], what: str) -> tuple[Address, ...]:
    return tuple(a for a in _addresses(texts, what) if a.version == family)


def _ranges(family: int, texts: Iterable[object]) -> tuple[Network, ...]:
    found = []
    for each in texts:
        network = network_from_text(each.strip()) if isinstance(each, str) else None
        if network is None:
            raise _MalformedError(f"loadBalancerSourceRanges {each!r} is not a network")
        found.append(network)
    return tuple(network for network in found if network.version == family)


def _of(family: int, texts: Iterable[object]) -> tuple[Address, ...]:
    found = (address_from_text(each) for each in texts if isinstance(each, str))
    return tuple(a for a in found if a is not None and a.version == family)


def _networks(family: int, texts: Iterable[object]) -> tuple[Network, ...]:
    found = (network_from_text(each) for each in texts if isinstance(each, str))
    return tuple(n for n in found if n is not None and n.version == family)


# --- endpoints -------------------------------------------------------------


def _read(slices: list[Object], endpoints: Object | None, layout: RulesLayout) -> Sequence[Object]:
    """Return what a kube-proxy of that version reads of a Service, as EndpointSlices."""
    if slices and layout.reads_slices:
        return slices
    if endpoints is not None:
        return [*_as_slices(endpoints)]
    if slices:
        raise _MalformedError(_NO_ENDPOINTS.format(layout.value))
    return []


def _as_slices(endpoints: Object) -> Iterator[Object]:
    """Yield an Endpoints object as EndpointSlices, which only old clusters lack."""
    for subset in elements(endpoints, "subsets"):
        listed = [
            {
                "addresses": [at(each, "ip")],
                "nodeName": at(each, "nodeName"),
                "conditions": {"ready": key == "addresses", "serving": key == "addresses"},
            }
            for key in ("addresses", "notReadyAddresses")
            for each in elements(subset, key)
        ]
        yield {"ports": elements(subset, "ports"), "endpoints": listed}


def _endpoints(
    slices: Sequence[Object], port: str, family: int, layout: RulesLayout
) -> tuple[EndpointSpec, ...]:
    """Return the endpoints of all slices; of those with one address and port the first."""
    found: dict[tuple[Address, int], EndpointSpec] = {}
    for each in slices:
        ports = [p for p in elements(each, "ports") if (at(p, "name") or "") == port]
        numbers = [_port(at(p, "port"), "an endpoint's port") for p in ports]
        for endpoint in elements(each, "endpoints"):
            # Of several addresses, which belong to the same pod, kube-proxy uses the first.
            written = next(iter(elements(endpoint, "addresses")), None)
            if written is None:
                continue
            if at(each, "addressType") == "FQDN":
                break  # kube-proxy ignores such slices
            (address,) = _addresses([written], "an endpoint's address")
            if address.version == family:
                for number in numbers:
                    made = _endpoint(endpoint, address, written, number, layout)
                    found.setdefault((address, number), made)
    return tuple(found.values())


def _endpoint(
    given: object, address: Address, written: str, port: int, layout: RulesLayout
) -> EndpointSpec:
    conditions = at(given, "conditions")
    node = at(given, "nodeName") or at(given, "topology", "kubernetes.io/hostname")
    terminating = at(conditions, "terminating") is True
    return EndpointSpec(
        address=address,
        port=port,
        written=None if written == address_to_text(address) else written,
        node=text(node),
        ready=at(conditions, "ready") is not False,
        # Terminating endpoints are a fallback since 1.26 (KEP-1669, ProxyTerminatingEndpoints).
        serving=at(conditions, "serving") is not False and layout.minor >= RulesLayout.V1_26.minor,
        terminating=terminating,
        zones=_hinted(given, "forZones"),
        nodes=_hinted(given, "forNodes"),
    )


def _hinted(endpoint: object, key: str) -> tuple[str, ...]:
    named = (text(at(each, "name")) for each in elements(endpoint, "hints", key))
    return tuple(name for name in named if name)
