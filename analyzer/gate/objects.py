"""A placement as API objects: the input of `predict` and `whatif --from-objects`.

Endpoints are all ready. What an API server would add is added: ClusterIPs, node ports, unused
addresses of nodes and pods.

Source: Kubernetes, staging/src/k8s.io/endpointslice/utils.go, ``getEndpointPorts``, ``findPort``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network

from analyzer.advice.hints import SAME_NODE, SAME_ZONE, hinted
from analyzer.advice.objects import key_of, mapping, zone_of
from analyzer.gate.nodes import SchedulingNode
from analyzer.gate.ports import ports_of
from analyzer.kubeproxy.generate.objects import node_address_of, pod_networks_of
from analyzer.model.addresses import address_from_text
from analyzer.parsers.api_objects import Object, at, elements, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.gate.templates import PodTemplate

_OF_SERVICE: Final = "kubernetes.io/service-name"
_FAMILIES: Final = {"IPv4": 4, "IPv6": 6}
#: The defaults: kubeadm's and kind's networks, and one that is never routed.
_CLUSTER_IPS: Final = {4: ip_network("10.96.0.0/12"), 6: ip_network("fd00:10:96::/112")}
_SPARE: Final = {4: ip_network("100.64.0.0/10"), 6: ip_network("fd00:10:64::/64")}
_NODES: Final = {4: ip_network("172.18.0.0/16"), 6: ip_network("fc00:f853:ccd:e793::/64")}
_PODS: Final = {4: ip_network("10.128.0.0/9"), 6: ip_network("fd00:10:244::/48")}
_EXTERNAL: Final = {4: ip_network("198.18.0.0/15"), 6: ip_network("2001:db8::/64")}
_MOST_EXTERNAL: Final = 8
_POD_BITS: Final = {4: 24, 6: 64}
_FIRST_NODE_PORT: Final = 30_000
#: The first addresses of a node's network are its bridge's, the last one is for all.
_FIRST: Final = 2
_MOST_OF_NODE: Final = 250


class IndexedAddresses:
    """Gives nodes and pods addresses that depend on their index only.

    Attributes:
        nodes: the Nodes, with addresses and, where none of them has one, with podCIDRs.
    """

    def __init__(self, nodes: Sequence[SchedulingNode], families: Sequence[int]) -> None:
        known = any(pod_networks_of(n.item, f) for n in nodes for f in families)
        self.nodes = [
            _completed(node.item, number, families, with_networks=not known)
            for number, node in enumerate(nodes)
        ]
        self._spare: dict[object, int] = {}

    def of_node(self, v: int, family: int) -> str | None:
        """Return the address of a node itself."""
        found = node_address_of(self.nodes[v], family)
        return None if found is None else str(found)

    def of_pod(self, v: int, number: int, family: int) -> str:
        """Return the address of the pod with that index on a node."""
        networks = pod_networks_of(self.nodes[v], family)
        if networks and number + _FIRST < min(_MOST_OF_NODE, networks[0].num_addresses - 1):
            return str(networks[0][number + _FIRST])
        place = v, number, family
        return str(_SPARE[family][1 + self._spare.setdefault(place, len(self._spare))])


def _completed(
    item: Object, number: int, families: Sequence[int], *, with_networks: bool
) -> Object:
    """Return a Node with what it lacks of addresses and podCIDRs."""
    listed = [*elements(item, "status", "addresses")]
    lacking = [each for each in families if node_address_of(item, each) is None]
    listed += [{"type": "InternalIP", "address": str(_NODES[f][number + 2])} for f in lacking]
    found = {**item, "status": {**mapping(at(item, "status")), "addresses": listed}}
    if with_networks:
        cidrs = []
        for family in families:
            step = 1 << (_PODS[family].max_prefixlen - _POD_BITS[family])
            cidrs.append(f"{_PODS[family][number * step]}/{_POD_BITS[family]}")
        found["spec"] = {**mapping(at(item, "spec")), "podCIDR": cidrs[0], "podCIDRs": cidrs}
    return found


def families_of(service: Object) -> list[int]:
    """Return the IP versions of a Service: those that it names, or that its ClusterIPs have."""
    spec = at(service, "spec")
    named = [_FAMILIES[f] for f in elements(spec, "ipFamilies") if f in _FAMILIES]
    texts = elements(spec, "clusterIPs") or [at(spec, "clusterIP")]
    told = [a.version for t in texts if isinstance(t, str) and (a := address_from_text(t))]
    return list(dict.fromkeys(named or told)) or [4]


def alone(service: Object, number: int) -> Object:
    """Return a Service with addresses and node ports that no other Service has."""
    kept = {
        key: each
        for key, each in at(service, "spec").items()
        if key not in {"clusterIP", "clusterIPs", "healthCheckNodePort"}
    }
    kept["ipFamilies"] = [name for name, f in _FAMILIES.items() if f in families_of(service)]
    kept["ports"] = [
        {key: each for key, each in port.items() if key != "nodePort"}
        for port in elements(service, "spec", "ports")
    ]
    if external := elements(service, "spec", "externalIPs"):
        kept["externalIPs"] = [
            str(_EXTERNAL[told.version][number * _MOST_EXTERNAL + n])
            for n, each in enumerate(external[:_MOST_EXTERNAL])
            if isinstance(each, str) and (told := address_from_text(each)) is not None
        ]
    return {**service, "spec": kept, "status": {}}


def completed_service(service: Object, number: int) -> Object:
    """Return a Service with the ClusterIPs and node ports that an API server would give it."""
    spec = {**at(service, "spec")}
    given = [t for t in (elements(spec, "clusterIPs") or [at(spec, "clusterIP")]) if t]
    known = {a.version for t in given if (a := address_from_text(t))}
    lacking = [each for each in families_of(service) if each not in known]
    given += [str(_CLUSTER_IPS[each][100 + number]) for each in lacking]
    spec["clusterIP"], spec["clusterIPs"] = given[0], given
    if at(spec, "type") in ("NodePort", "LoadBalancer"):
        spec["ports"] = [
            port if at(port, "nodePort") else {**port, "nodePort": _FIRST_NODE_PORT + n}
            for n, port in enumerate(elements(spec, "ports"), number * 8)
        ]
    return {**service, "spec": spec}


def slices(
    service: Object,
    templates: Sequence[PodTemplate],
    counts: Mapping[int, Sequence[int]],
    addresses: IndexedAddresses,
) -> Iterator[Object]:
    """Yield the EndpointSlices of a Service, `counts` being its pods by group and node.

    Pods whose ports have other numbers are in slices of their own.
    """
    numbers = [0] * len(addresses.nodes)
    found: dict[tuple[int, tuple[tuple[str, int], ...]], list[Object]] = {}
    for g, row in counts.items():
        spec = templates[g].spec
        ports = tuple(ports_of(service, spec))
        for v, number in enumerate(row):
            for _ in range(number):
                for family in families_of(service):
                    end = _endpoint(spec, v, numbers[v], family, addresses)
                    if end is not None:
                        found.setdefault((family, ports), []).append(end)
                numbers[v] += 1
    namespace, name = key_of(service)
    preferred = at(service, "spec", "trafficDistribution")
    by_node = preferred == SAME_NODE
    is_hinted = by_node or preferred in SAME_ZONE
    for at_, ((family, ports), ends) in enumerate(found.items()):
        made: Object = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{name}-{at_}",
                "namespace": namespace,
                "labels": {_OF_SERVICE: name},
            },
            "addressType": f"IPv{family}",
            "ports": [_port(service, port, number) for port, number in ports],
            "endpoints": ends,
        }
        yield hinted([made], by_node=by_node)[0] if is_hinted else made


def _endpoint(
    spec: Mapping[str, Any], v: int, number: int, family: int, addresses: IndexedAddresses
) -> Object | None:
    node = addresses.nodes[v]
    is_host = spec.get("hostNetwork") is True
    address = addresses.of_node(v, family) if is_host else addresses.of_pod(v, number, family)
    if address is None:
        return None
    zone = zone_of(node)
    return {
        "addresses": [address],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "nodeName": node["metadata"]["name"],
        **({"zone": zone} if zone else {}),
    }


def _port(service: Object, name: str, number: int) -> Object:
    told = [p for p in elements(service, "spec", "ports") if (text(at(p, "name")) or "") == name]
    protocol = text(at(told[0], "protocol")) or "TCP"
    return {"name": name, "port": number, "protocol": protocol}
