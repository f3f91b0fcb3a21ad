"""API objects, decoded from JSON, as the ServicePorts and settings of one kube-proxy.

Source: Kubernetes API reference: core/v1 Node, Service; discovery.k8s.io/v1 EndpointSlice;
pkg/proxy/serviceport.go and pkg/proxy/endpointslicecache.go. Objects are taken as an API server
gives them: nothing here tells where one is malformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, Final

from analyzer.kubeproxy.generate.config import IPV4, Layout, ProxyConfig
from analyzer.kubeproxy.generate.specs import EndpointSpec, ServicePortSpec
from analyzer.model.addresses import Address, Network

#: What one JSON object holds.
Object = Mapping[str, Any]

_ZONE: Final = "topology.kubernetes.io/zone"
#: The older annotation wins where both are there.
_TOPOLOGY_MODES: Final = (
    "service.kubernetes.io/topology-aware-hints",
    "service.kubernetes.io/topology-mode",
)
_OF_SERVICE: Final = "kubernetes.io/service-name"
_HEADLESS: Final = (None, "", "None")


def proxy_config(
    objects: Sequence[Object],
    flags: Sequence[str],
    *,
    node: str,
    layout: Layout,
    family: int = IPV4,
) -> ProxyConfig:
    """Return the settings of the kube-proxy that ran with `flags`, as ``--name=value``, at `node`.

    Flags that change no rule are passed over.
    """
    given = dict(flag.lstrip("-").partition("=")[::2] for flag in flags)
    networks = [ip_network(text) for text in given.get("cluster-cidr", "").split(",") if text]
    own = next((o for o in objects if o["kind"] == "Node" and o["metadata"]["name"] == node), {})
    addresses = [
        ip_address(each["address"])
        for each in own.get("status", {}).get("addresses", ())
        if each["type"] == "InternalIP"
    ]
    ranges = [
        ip_network(text)
        for each in objects
        if each["kind"] == "ServiceCIDR"
        for text in each["spec"]["cidrs"]
    ]
    return ProxyConfig(
        layout=layout,
        family=family,
        node=node,
        node_address=next((a for a in addresses if a.version == family), None),
        zone=own.get("metadata", {}).get("labels", {}).get(_ZONE),
        cluster_cidr=next((n for n in networks if n.version == family), None),
        service_cidrs=_networks_of(family, ranges),
        masquerade_all=given.get("masquerade-all", "false") in ("", "true"),
        localhost_node_ports=given.get("iptables-localhost-nodeports", "true") in ("", "true"),
    )


def service_ports(
    objects: Iterable[Object], layout: Layout, family: int = IPV4
) -> Iterator[ServicePortSpec]:
    """Give the ServicePorts of one family that a kube-proxy makes of Services and EndpointSlices.

    Headless Services have none.
    """
    services = []
    slices: dict[tuple[str, str], list[Object]] = {}
    for item in objects:
        if item["kind"] == "Service":
            services.append(item)
        elif item["kind"] == "EndpointSlice" and _OF_SERVICE in item["metadata"]["labels"]:
            meta = item["metadata"]
            slices.setdefault((meta["namespace"], meta["labels"][_OF_SERVICE]), []).append(item)
    for service in services:
        meta, spec = service["metadata"], service["spec"]
        if spec.get("clusterIP") in _HEADLESS or spec.get("type") == "ExternalName":
            continue
        own = slices.get((meta["namespace"], meta["name"]), [])
        for address in map(ip_address, spec.get("clusterIPs") or [spec["clusterIP"]]):
            if address.version == family:
                for port in spec["ports"]:
                    yield _service_port(service, port, address, own, layout)


def _service_port(
    service: Object, port: Object, address: Address, slices: Sequence[Object], layout: Layout
) -> ServicePortSpec:
    meta, spec, family = service["metadata"], service["spec"], address.version
    port_name = port.get("name") or ""
    protocol = port.get("protocol", "TCP").lower()
    affine = spec.get("sessionAffinity") == "ClientIP"
    annotations = meta.get("annotations") or {}
    ranges = [ip_network(text, strict=False) for text in spec.get("loadBalancerSourceRanges") or ()]
    balanced = spec.get("type") == "LoadBalancer"
    return ServicePortSpec(
        name=f"{meta['namespace']}/{meta['name']}" + (f":{port_name}" if port_name else ""),
        protocol=protocol,
        cluster_ip=address,
        port=port["port"],
        endpoints=_endpoints(slices, port_name, family),
        node_port=port.get("nodePort", 0),
        external_ips=_of(family, spec.get("externalIPs") or ()),
        load_balancer_ips=_of(family, _ingress(service, layout)),
        load_balancer_source_ranges=_networks_of(family, ranges),
        external_local=spec.get("externalTrafficPolicy") == "Local" and _may_be_local(spec, layout),
        internal_local=spec.get("internalTrafficPolicy") == "Local",
        affinity=spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"] if affine else None,
        health_check_node_port=spec.get("healthCheckNodePort", 0) if balanced else 0,
        topology_mode=next((annotations[k] for k in _TOPOLOGY_MODES if k in annotations), None),
    )


def _may_be_local(spec: Object, layout: Layout) -> bool:
    """Whether externalTrafficPolicy says anything; it does of external IPs alone since 1.23."""
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        return True
    return layout is not Layout.V1_20 and bool(spec.get("externalIPs"))


def _ingress(service: Object, layout: Layout) -> Iterator[str]:
    """Give the addresses of load balancers that keep them as destination."""
    for each in service.get("status", {}).get("loadBalancer", {}).get("ingress") or ():
        if "ip" in each and (layout is Layout.V1_20 or each.get("ipMode", "VIP") == "VIP"):
            yield each["ip"]


def _of(family: int, texts: Iterable[str]) -> tuple[Address, ...]:
    return tuple(a for a in map(ip_address, texts) if a.version == family)


def _networks_of(family: int, networks: Iterable[Network]) -> tuple[Network, ...]:
    return tuple(n for n in networks if n.version == family)


def _endpoints(slices: Sequence[Object], port: str, family: int) -> tuple[EndpointSpec, ...]:
    """Return the endpoints of all slices; of those with one address and port the first."""
    found: dict[tuple[Address, int], EndpointSpec] = {}
    for each in slices:
        numbers = [p["port"] for p in each["ports"] or () if (p.get("name") or "") == port]
        for endpoint in each["endpoints"] or ():
            # Of several addresses, which name the same pod, kube-proxy takes the first.
            text = endpoint["addresses"][0]
            address = ip_address(text)
            if address.version == family:
                for number in numbers:
                    made = _endpoint(endpoint, address, text, number)
                    found.setdefault((address, number), made)
    return tuple(found.values())


def _endpoint(given: Object, address: Address, text: str, port: int) -> EndpointSpec:
    conditions = given.get("conditions") or {}
    hints = given.get("hints") or {}
    old = given.get("topology") or {}
    return EndpointSpec(
        address=address,
        port=port,
        written=None if text == str(address) else text,
        node=given.get("nodeName") or old.get("kubernetes.io/hostname"),
        ready=conditions.get("ready") is not False,
        serving=conditions.get("serving") is not False,
        terminating=conditions.get("terminating") is True,
        zones=tuple(zone["name"] for zone in hints.get("forZones") or ()),
        nodes=tuple(node["name"] for node in hints.get("forNodes") or ()),
    )
