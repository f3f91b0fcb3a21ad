"""Objects of small clusters, and what a naive reading of them says that node failures cost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from analyzer.advice.advise import Adviser, Failures, ServiceCosts
from analyzer.advice.measure import ClusterState, NamespacedName, Refused
from analyzer.advice.measures import measure_of
from analyzer.kubeproxy.predict.settings import ClusterSettings
from analyzer.kubeproxy.proxy_mode import ProxyMode

KEY: NamespacedName = ("shop", "web")
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_ZONE = "topology.kubernetes.io/zone"


def node(name: str, number: int, zone: str | None = None, **spec: Any) -> Any:
    labels = {_ZONE: zone} if zone else {}
    if name.startswith("master"):
        labels[_CONTROL_PLANE] = ""
    cidr = f"10.244.{number}.0/24"
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDR": cidr, "podCIDRs": [cidr], **spec},
        "status": {"addresses": [{"type": "InternalIP", "address": f"192.168.0.{10 + number}"}]},
    }


def service(key: NamespacedName = KEY, address: str = "10.96.0.7", **spec: Any) -> Any:
    return {
        "kind": "Service",
        "metadata": {"namespace": key[0], "name": key[1]},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
            **spec,
        },
    }


def slice_of(ends: Sequence[tuple[str, int]], key: NamespacedName = KEY) -> Any:
    """Return a slice with endpoints on nodes, given by name and number."""
    return {
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": key[0],
            "name": f"{key[1]}-x",
            "labels": {"kubernetes.io/service-name": key[1]},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": [
            {
                "addresses": [f"10.244.{n}.{50 + at}"],
                "nodeName": name,
                "conditions": {"ready": True},
            }
            for at, (name, n) in enumerate(ends)
        ],
    }


@st.composite
def clusters(draw: st.DrawFn, most_nodes: int = 5) -> list[Any]:
    """Give objects of a Service whose endpoints are anywhere, and of another one."""
    masters = draw(st.integers(0, 2))
    workers = draw(st.integers(1 if not masters else 0, most_nodes - masters))
    names = [f"master{n}" for n in range(masters)] + [f"worker{n}" for n in range(workers)]
    zoned = draw(st.booleans())
    taint = {"key": _CONTROL_PLANE, "effect": "NoSchedule"}
    items = []
    for number, name in enumerate(names):
        zone = draw(st.sampled_from("ab")) if zoned else None
        spec: dict[str, Any] = {}
        if name.startswith("master") and draw(st.booleans()):
            spec["taints"] = [taint]
        if draw(st.integers(0, 9)) == 0:
            spec["unschedulable"] = True
        items.append(node(name, number, zone, **spec))
    places = draw(st.lists(st.integers(0, len(names) - 1), min_size=1, max_size=6))
    policy = draw(st.sampled_from(["Cluster", "Cluster", "Local"]))
    items.append(service(internalTrafficPolicy=policy))
    items.append(slice_of([(names[n], n) for n in places]))
    items += [service(OTHER, "10.96.0.8"), slice_of([(names[0], 0)], OTHER)]
    return items


OTHER: NamespacedName = ("shop", "other")
SETTINGS = ClusterSettings(mode=ProxyMode.IPTABLES)


def judged(
    items: Sequence[Any], key: NamespacedName = KEY, **failures: Any
) -> ServiceCosts | Refused:
    """Return how a Service fares by its objects."""
    adviser = Adviser(ClusterState(items=items), SETTINGS, Failures(**failures), 1)
    found = adviser.evaluated(ClusterState(items=items), key)
    assert not adviser.differing
    return found


@dataclass(frozen=True)
class Naive:
    """What is lost, by a look at each node for itself."""

    survives: int
    worst: Fraction
    mean: Fraction
    dropped: int


def naive(items: Sequence[Any], key: NamespacedName = KEY, size: int = 1) -> Naive:
    """Return what any `size` nodes cost a Service of plain shape, asking each node in turn."""
    nodes = {i["metadata"]["name"]: i for i in items if i["kind"] == "Node"}
    used = {name: [*_used(items, key, name, nodes[name])] for name in nodes}
    ends = {e["nodeName"] for e in _ready(items, key)}
    failures = [*itertools.combinations(sorted(nodes), min(size, len(nodes)))]
    worst, means = Fraction(0), []
    for gone in failures:
        alive = [name for name in nodes if name not in gone]
        lost = [_lost(used[name], gone) for name in alive]
        if not alive:  # nobody is left to ask, which counts as a total loss
            lost, alive = [Fraction(1)], [""]
        worst = max([worst, *lost])
        means.append(sum(lost, Fraction(0)) / len(alive))
    return Naive(
        survives=_survives(nodes, used, ends),
        worst=worst,
        mean=sum(means, Fraction(0)) / len(means),
        dropped=sum(not places for places in used.values()),
    )


def _lost(places: Sequence[str], gone: Sequence[str]) -> Fraction:
    if not places:
        return Fraction(0)
    return Fraction(sum(place in gone for place in places), len(places))


def _survives(nodes: Any, used: dict[str, list[str]], ends: set[str]) -> int:
    for number in range(1, len(nodes) + 1):
        for gone in itertools.combinations(nodes, number):
            if any(used[v] and set(used[v]) <= set(gone) for v in nodes if v not in gone):
                return number - 1
    return len(ends) - 1


def _used(items: Sequence[Any], key: NamespacedName, name: str, of: Any) -> Iterator[str]:
    """Give the node of each endpoint that a node sends flows to."""
    found = next(i for i in items if i["kind"] == "Service" and _key(i) == key)
    ready = [*_ready(items, key)]
    hints = [e.get("hints", {}) for e in ready]
    for_nodes = [[h["name"] for h in each.get("forNodes", [])] for each in hints]
    for_zones = [[h["name"] for h in each.get("forZones", [])] for each in hints]
    zone = of["metadata"]["labels"].get(_ZONE)
    for place, wanted in ((name, for_nodes), (zone, for_zones)):
        if all(wanted) and any(place in each for each in wanted):
            ready = [e for e, each in zip(ready, wanted, strict=True) if place in each]
            break
    if found["spec"].get("internalTrafficPolicy") == "Local":
        ready = [e for e in _ready(items, key) if e["nodeName"] == name]
    for each in ready:
        yield each["nodeName"]


def _ready(items: Sequence[Any], key: NamespacedName) -> Iterator[Any]:
    for item in items:
        labels = item["metadata"].get("labels", {})
        if item["kind"] == "EndpointSlice" and (
            (item["metadata"]["namespace"], labels.get("kubernetes.io/service-name")) == key
        ):
            yield from (e for e in item["endpoints"] if e["conditions"]["ready"])


def _key(item: Any) -> NamespacedName:
    return item["metadata"]["namespace"], item["metadata"]["name"]


WORKERS = [node(f"worker{n}", n) for n in range(4)]


def cluster(*ends: int, **spec: Any) -> list[Any]:
    """Return four workers and a Service with an endpoint on each of these."""
    return [*WORKERS, service(**spec), slice_of([(f"worker{n}", n) for n in ends])]


def after(name: str, items: Sequence[Any], key: Any = KEY) -> ClusterState | Refused:
    """Return what a measure makes of a cluster."""
    measure = measure_of(name)
    assert measure is not None
    return measure.change(ClusterState(items=items), key)


def items_after(name: str, items: Sequence[Any], key: Any = KEY) -> Sequence[Any]:
    """Return the objects that a measure leaves."""
    found = after(name, items, key)
    assert isinstance(found, ClusterState), found
    return found.items
