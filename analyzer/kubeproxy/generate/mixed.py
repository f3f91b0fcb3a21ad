"""API objects of a realistic cluster: Services of all kinds and of 1 to 40 endpoints.

Three in ten are more than a ClusterIP: NodePorts and load balancers of both traffic policies,
internal Local policies, session affinity, external IPs.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from random import Random
from typing import Any, Final

#: How many of a hundred Services are of each kind.
_KINDS: Final = {
    "plain": 70,
    "node-port": 8,
    "node-port local": 4,
    "balancer": 4,
    "balancer local": 4,
    "internal local": 4,
    "affinity": 4,
    "external": 2,
}
_SIZES: Final = (1, 1, 2, 2, 3, 3, 5, 8, 10, 20, 30, 40)
_ZONES: Final = ("a", "b", "c")
_NODES: Final = IPv4Address("192.168.0.10")
_PODS: Final = IPv4Address("10.0.0.0")
_SERVICES: Final = IPv4Address("10.128.0.1")
_BALANCERS: Final = IPv4Address("172.16.0.0")
_EXTERNAL: Final = IPv4Address("172.20.0.0")
_NODE_PORTS: Final = 20_000
#: Pods of a node that get addresses of its network.
_MOST_PODS: Final = 252
#: The flags of a kube-proxy of the cluster.
FLAGS: Final = ("--cluster-cidr=10.0.0.0/9",)


def mixed(services: int, nodes: int, sizes: tuple[int, ...] = _SIZES) -> list[Any]:
    """Return the objects of that many Services and nodes, decoded; always the same."""
    draw = Random(0)  # noqa: S311  # no secret
    held = [0] * nodes
    items = [_node(number) for number in range(nodes)]
    kinds = draw.choices([*_KINDS], [*_KINDS.values()], k=services)
    for number, kind in enumerate(kinds):
        places = [draw.randrange(nodes) for _ in range(draw.choice(sizes))]
        items.append(_service(number, kind))
        items.append(_slice(number, list(_endpoints(places, held))))
    return items


def node_name(number: int) -> str:
    """Return the name of a node, by its number from 0."""
    return f"node-{number:04}"


def _node(number: int) -> Any:
    cidr = f"{_PODS + 256 * number}/24"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node_name(number),
            "labels": {
                "kubernetes.io/hostname": node_name(number),
                "topology.kubernetes.io/zone": _ZONES[number % len(_ZONES)],
            },
        },
        "spec": {"podCIDR": cidr, "podCIDRs": [cidr]},
        "status": {"addresses": [{"type": "InternalIP", "address": str(_NODES + number)}]},
    }


def _endpoints(places: list[int], held: list[int]) -> Iterator[Any]:
    for place in places:
        # On a full node, pods share addresses in turn.
        address = _PODS + 256 * place + 2 + held[place] % _MOST_PODS
        held[place] += 1
        yield {
            "addresses": [str(address)],
            "nodeName": node_name(place),
            "zone": _ZONES[place % len(_ZONES)],
            "conditions": {"ready": True, "serving": True, "terminating": False},
        }


def _service(number: int, kind: str) -> Any:
    address = str(_SERVICES + number)
    port: dict[str, Any] = {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}
    spec: dict[str, Any] = {
        "type": "ClusterIP",
        "clusterIP": address,
        "clusterIPs": [address],
        "ipFamilies": ["IPv4"],
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ports": [port],
    }
    ingress = []
    match kind.split():
        case [("node-port" | "balancer") as reached, *policy]:
            port["nodePort"] = _NODE_PORTS + number % 40_000
            spec["externalTrafficPolicy"] = "Local" if policy else "Cluster"
            spec["type"] = "NodePort"
            if reached == "balancer":
                spec["type"] = "LoadBalancer"
                ingress = [{"ip": str(_BALANCERS + number), "ipMode": "VIP"}]
        case ["internal", _]:
            spec["internalTrafficPolicy"] = "Local"
        case ["affinity"]:
            spec["sessionAffinity"] = "ClientIP"
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
        case ["external"]:
            spec["externalIPs"] = [str(_EXTERNAL + number)]
        case _:
            pass
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"svc-{number}", "namespace": f"ns-{number % 50}"},
        "spec": spec,
        "status": {"loadBalancer": {"ingress": ingress}},
    }


def _slice(number: int, endpoints: list[Any]) -> Any:
    name = f"svc-{number}"
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{name}-0",
            "namespace": f"ns-{number % 50}",
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": endpoints,
    }
