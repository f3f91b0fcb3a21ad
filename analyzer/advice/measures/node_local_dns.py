"""NodeLocal DNSCache: a cache on each node, which forwards misses to the cluster's DNS.

Source: https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns; the add-on's
nodelocaldns.yaml: the Service ``kube-dns-upstream`` has the selector of kube-dns.
"""

from __future__ import annotations

from typing import Any

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.advice.objects import (
    address_of,
    is_usable,
    mapping,
    nodes_of,
    service_of,
    slices_of,
    with_service,
    with_slices,
    with_spec,
    zone_of,
)
from analyzer.advice.takers import FreeAddresses
from analyzer.model.value import replace
from analyzer.parsers.api_objects import Object, addresses, at, elements

_UPSTREAM = "kube-dns-upstream"


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a state in which each node answers for the Service itself.

    The caches are not really endpoints: they take the Service's address on each node. They are
    represented by endpoints with the nodes' addresses and the policy Local.
    """
    service = service_of(situation.items, key)
    slices = slices_of(situation.items, key)
    if service is None or not any(elements(each, "endpoints") for each in slices):
        return Refused("it has no ready endpoints")
    upstream = key[0], _UPSTREAM
    if service_of(situation.items, upstream) is not None:
        return Refused(f"it already exists, as Service {'/'.join(upstream)}")
    free = FreeAddresses(situation.items)
    cached = [each for each in slices if each.get("addressType") != "FQDN"]
    local = [_caches(each, situation, free) for each in cached]
    if not any(elements(each, "endpoints") for each in local):
        return Refused("the nodes' addresses are not known")
    items = with_slices(situation.items, key, local)
    changed = with_spec(service, internalTrafficPolicy="Local")
    items = with_service(items, key, changed)
    items += [_upstream(service, free), *(_of_upstream(each) for each in slices)]
    return replace(situation, items=items, either=(key, upstream))


def _caches(item: Object, situation: ClusterState, free: FreeAddresses) -> Object:
    """Return a slice with a cache on each node."""
    listed = [e for e in elements(item, "endpoints") if is_usable(e)]
    families = {a.version for e in listed if (a := address_of(e)) is not None}
    made: list[Any] = []
    for name, node in nodes_of(situation.items).items():
        zone = zone_of(node)
        for family in families:
            address = free.of_node(name, family)
            if address is not None:
                place = {"nodeName": name, **({"zone": zone} if zone else {})}
                conditions = {"ready": True, "serving": True, "terminating": False}
                made.append({"addresses": [str(address)], "conditions": conditions, **place})
    return {**item, "endpoints": made}


def _upstream(service: Object, free: FreeAddresses) -> Object:
    """Return the Service that caches ask, at addresses of its own."""
    spec = {**mapping(at(service, "spec"))}
    now = addresses(elements(spec, "clusterIPs") or [at(spec, "clusterIP")])
    spec["clusterIPs"] = [str(free.new("", each)) for each in now]
    spec["clusterIP"] = next(iter(spec["clusterIPs"]), None)
    # Only its ClusterIP is used.
    for field in ("externalIPs", "healthCheckNodePort"):
        spec.pop(field, None)
    spec["type"] = "ClusterIP"
    spec["ports"] = [
        {k: v for k, v in mapping(port).items() if k != "nodePort"}
        for port in elements(spec, "ports")
    ]
    metadata = {"name": _UPSTREAM, "namespace": service["metadata"]["namespace"]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "status": {}}


def _of_upstream(item: Object) -> Object:
    labels = {**mapping(at(item, "metadata", "labels")), "kubernetes.io/service-name": _UPSTREAM}
    name = f"{_UPSTREAM}-{at(item, 'metadata', 'name')}"
    namespace = at(item, "metadata", "namespace")
    return {**item, "metadata": {"name": name, "namespace": namespace, "labels": labels}}


MEASURE = Measure(
    name="node-local-dns",
    says="NodeLocal DNSCache",
    subject=Subject.DNS,
    change=change,
    unsaid=(
        "how much is cached: if all, nothing is lost; if nothing, what kube-dns itself loses",
        "a cache that dies alone takes its node's DNS with it",
    ),
)
