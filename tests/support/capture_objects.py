"""The API objects of a capture, the kube-proxy that wrote it, and changes that it would notice."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from analyzer.kubeproxy.generate import ProxyConfig, RulesLayout, proxy_config

Items = list[Any]


def text_of(path: Path) -> str:
    """Return a file's text, unpacked."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def items_of(dump: Path) -> Items:
    """Return the API objects beside a dump."""
    (objects,) = dump.parent.glob("objects.json*")
    items: Items = json.loads(text_of(objects))["items"]
    return items


def proxy_of(
    dump: Path, items: Items, *more_flags: str, node: str | None, family: int
) -> ProxyConfig:
    """Return the kube-proxy of one family that wrote `dump`, but for what is told of it."""
    run = json.loads((dump.parent / "run.json").read_text())
    return proxy_config(
        items,
        [*run["flags"], *more_flags],
        node=node or run["node"],
        layout=RulesLayout(".".join(dump.parent.parent.name.split(".")[:2])),
        family=family,
    )


def service(items: Items, name: str) -> Any:
    """Return the Service of that name."""
    (found,) = [i for i in items if i["kind"] == "Service" and i["metadata"]["name"] == name]
    return found


def spec(items: Items, name: str) -> Any:
    """Return the spec of the Service of that name."""
    return service(items, name)["spec"]


def slice_of(items: Items, name: str) -> Any:
    """Return the first EndpointSlice of a Service."""
    label = "kubernetes.io/service-name"
    return next(
        item
        for item in items
        if item["kind"] == "EndpointSlice" and item["metadata"]["labels"][label] == name
    )


def endpoint(items: Items, name: str) -> Any:
    """Return the first endpoint of a Service."""
    return slice_of(items, name)["endpoints"][0]


#: Changes of the objects of a capture `features`, each of which changes the rules.
CHANGES: Final[dict[str, Callable[[Items], object]]] = {
    "a ClusterIP": lambda i: spec(i, "nodeport").update(clusterIPs=["10.96.200.1"]),
    "a port": lambda i: spec(i, "nodeport")["ports"][0].update(port=81),
    "a port's name": lambda i: spec(i, "udp")["ports"][0].update(name="other"),
    "a NodePort": lambda i: spec(i, "nodeport")["ports"][0].update(nodePort=30999),
    "no NodePort": lambda i: spec(i, "nodeport")["ports"][0].pop("nodePort"),
    "a refused NodePort": lambda i: spec(i, "no-endpoints-nodeport")["ports"][0].update(
        nodePort=30999
    ),
    "an external IP": lambda i: spec(i, "external-ips").update(externalIPs=["198.51.100.61"]),
    "a refused external IP": lambda i: spec(i, "no-endpoints-lb").update(externalIPs=[]),
    "a load balancer": lambda i: service(i, "lb").update(status={}),
    "a protocol": lambda i: spec(i, "sctp")["ports"][0].update(protocol="UDP"),
    "externalTrafficPolicy": lambda i: spec(i, "lb").update(externalTrafficPolicy="Local"),
    "source ranges": lambda i: spec(i, "lb-ranges").update(
        loadBalancerSourceRanges=["192.0.2.0/24", "192.168.0.0/16"]
    ),
    "affinity": lambda i: spec(i, "affinity").update(sessionAffinity="None"),
    "seconds": lambda i: spec(i, "affinity-600")["sessionAffinityConfig"]["clientIP"].update(
        timeoutSeconds=601
    ),
    "readiness": lambda i: endpoint(i, "nodeport")["conditions"].update(ready=False),
    "an unready one": lambda i: endpoint(i, "all-unready")["conditions"].update(ready=True),
    "an address": lambda i: endpoint(i, "nodeport").update(addresses=["10.244.0.250"]),
    "a target port": lambda i: slice_of(i, "nodeport")["ports"][0].update(port=9999),
    "where it runs": lambda i: endpoint(i, "lb-local").update(nodeName="node-c1"),
    "a Service fewer": lambda i: i.remove(service(i, "ep-1")),
    "headless no more": lambda i: spec(i, "headless").update(
        clusterIP="10.96.9.9", clusterIPs=["10.96.9.9"]
    ),
}
#: What kube-proxy has looked at since 1.30 or since 1.36.
LATER: Final[dict[str, tuple[str, Callable[[Items], object]]]] = {
    "internalTrafficPolicy": (
        "1.30",
        lambda i: spec(i, "nodeport").update(internalTrafficPolicy="Local"),
    ),
    "a health check": ("1.30", lambda i: spec(i, "lb-local").update(healthCheckNodePort=31999)),
    "serving": (
        "1.30",
        lambda i: endpoint(i, "terminating-all")["conditions"].update(serving=False),
    ),
    "the annotation": (
        "1.30",
        lambda i: service(i, "topology")["metadata"].update(annotations={}),
    ),
    "a zone's hint": ("1.30", lambda i: endpoint(i, "topology").update(hints={})),
    "a zone's hint alone": ("1.36", lambda i: endpoint(i, "prefer-close").update(hints={})),
    "a node's hint": (
        "1.36",
        lambda i: endpoint(i, "prefer-same-node").update(hints={"forZones": [{"name": "a"}]}),
    ),
}
#: In 1.36 no annotation is asked for.
ONLY_IN: Final = {"the annotation": "1.30"}
