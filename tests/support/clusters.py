"""Hypothesis strategies of whole clusters: API objects, and a kube-proxy that follows them.

The objects are those that an API server would give: every address, NodePort and name has one
owner. Most often each node has a network of its pods; some clusters have one for all nodes, or
give pods addresses of other networks, as Calico does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any, Final

from hypothesis import strategies as st

from analyzer.kubeproxy.generate import (
    ProxyConfig,
    RulesLayout,
    proxy_config,
    render_nft,
    render_rules,
    service_ports,
)
from tests.support.pod_networks import NODES, PODS, PodNetworks, pod_cidr

ZONES: Final = ("a", "b")
PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
#: Networks by family: of Services, of pods, of nodes, of external IPs and of load balancers.
_SERVICES: Final = {4: ip_network("10.96.0.0/16"), 6: ip_network("fd00:96::/112")}
_HOSTS: Final = {4: ip_network("192.168.0.0/24"), 6: ip_network("fd00:168::/64")}
_EXTERNAL: Final = {4: ip_network("198.51.100.0/24"), 6: ip_network("2001:db8:51::/64")}
_BALANCERS: Final = {4: ip_network("198.18.0.0/16"), 6: ip_network("2001:db8:18::/64")}
_OTHER: Final = {4: 6, 6: 4}
#: Of clients: with and without the nodes, and the addresses that tests send from.
_RANGES: Final = {
    4: ("192.0.2.0/24", "203.0.113.0/24", "192.168.0.0/16", "10.244.0.0/17", "203.0.113.1/32"),
    6: ("2001:db8:1::/48", "2001:db8:ffff::/48", "fd00:168::/32", "2001:db8:ffff::1/128"),
}


@dataclass(frozen=True)
class GeneratedCluster:
    """API objects as decoded JSON, and one kube-proxy among them."""

    items: list[Any]
    flags: tuple[str, ...]
    layout: RulesLayout
    #: Of the IP versions of a cluster of two the one that is looked at.
    family: int
    node: str

    @property
    def proxy(self) -> ProxyConfig:
        return self._proxy(self.family)

    @property
    def families(self) -> tuple[int, ...]:
        """The IP versions of nodes, that which is looked at first."""
        addresses = [
            ip_address(each["address"])
            for item in self.items
            if item["kind"] == "Node"
            for each in item["status"]["addresses"]
            if each["type"] == "InternalIP"
        ]
        return tuple(dict.fromkeys([self.family, *(each.version for each in addresses)]))

    @property
    def dump(self) -> str:
        return render_rules(service_ports(self.items, self.layout, self.family), self.proxy)

    @property
    def nft(self) -> str:
        """The ruleset in nftables mode, the table empty of a family that the nodes lack."""
        services = [s for f in self.families for s in service_ports(self.items, self.layout, f)]
        return render_nft(services, *map(self._proxy, self.families))

    def _proxy(self, family: int) -> ProxyConfig:
        return proxy_config(
            self.items, self.flags, node=self.node, layout=self.layout, family=family
        )


_FAMILIES: Final = st.sampled_from((4, 6))
#: How often a cluster has both IP versions.
_BOTH: Final = st.sampled_from((False, False, True))


#: Those of most clusters are drawn most often.
_POD_NETWORKS: Final = st.sampled_from((*[PodNetworks.OWN] * 4, *PodNetworks))


@st.composite
def clusters(
    draw: st.DrawFn,
    layout: RulesLayout,
    *,
    plain: bool = False,
    families: st.SearchStrategy[int] = _FAMILIES,
    both: st.SearchStrategy[bool] = _BOTH,
    pods: st.SearchStrategy[PodNetworks] = _POD_NETWORKS,
) -> GeneratedCluster:
    """Draw a cluster of up to five Services, and the kube-proxy of one of its nodes.

    Services that are `plain` have a ClusterIP and nothing else. In a cluster of both IP versions
    `families` says which is looked at, of which the first Service is.
    """
    family = draw(families)
    known = (family, _OTHER[family]) if layout.reads_slices and draw(both) else (family,)
    networks = draw(pods)
    count = draw(st.integers(1, 5))
    items: list[Any] = []
    for number in range(len(NODES)):
        zoned = {"topology.kubernetes.io/zone": ZONES[number % 2]}
        cidrs = [pod_cidr(number, each, networks) for each in known]
        items.append(_node(number, known, zoned if draw(st.booleans()) else {}, cidrs))
    for number in range(count):
        theirs = draw(_families_of(known)) if number else draw(_families_of(known, family))
        items += draw(_services(number, theirs, layout, plain=plain))
    if not layout.reads_slices:
        items += as_endpoints(items)
    if draw(st.booleans()):
        cidrs = [str(_SERVICES[each]) for each in known]
        items.append({"kind": "ServiceCIDR", "spec": {"cidrs": cidrs}})
    all_pods = ",".join(str(PODS[each]) for each in known)
    flags = [f"--cluster-cidr={all_pods}"] if draw(st.integers(0, 3)) else []
    flags += ["--masquerade-all"] if not draw(st.integers(0, 3)) else []
    if layout.minor >= RulesLayout.V1_25.minor and not draw(st.integers(0, 3)):
        flags.append("--iptables-localhost-nodeports=false")
    return GeneratedCluster(items, tuple(flags), layout, family, draw(st.sampled_from(NODES)))


def as_endpoints(items: Sequence[Any]) -> list[Any]:
    """Return the Endpoints objects that say what EndpointSlices do, which 1.18 reads."""
    subsets: dict[tuple[str, str], list[Any]] = {}
    for item in items:
        if item["kind"] != "EndpointSlice":
            continue
        meta = item["metadata"]
        owner = meta["namespace"], meta["labels"]["kubernetes.io/service-name"]
        subset: dict[str, Any] = {"ports": item["ports"]}
        for each in item["endpoints"]:
            ready = each["conditions"].get("ready") is not False
            address = {"ip": each["addresses"][0]}
            if "nodeName" in each:
                address["nodeName"] = each["nodeName"]
            subset.setdefault("addresses" if ready else "notReadyAddresses", []).append(address)
        subsets.setdefault(owner, []).append(subset)
    return [
        {
            "kind": "Endpoints",
            "metadata": {"namespace": namespace, "name": name},
            "subsets": given,
        }
        for (namespace, name), given in subsets.items()
    ]


def one_service(layout: RulesLayout, *, endpoints: int, plain: bool = False) -> GeneratedCluster:
    """Return a cluster with one Service, its endpoints spread over the nodes.

    It is reached in every way there is, or if it is `plain` by its ClusterIP alone.
    """
    places = [
        {
            "addresses": [str(PODS[4][4096 * (at % len(NODES)) + at // len(NODES)])],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": NODES[at % len(NODES)],
        }
        for at in range(endpoints)
    ]
    port: dict[str, Any] = {"name": "http", "protocol": "TCP", "port": 80}
    spec: dict[str, Any] = {
        "type": "ClusterIP",
        "clusterIP": "10.96.0.1",
        "clusterIPs": ["10.96.0.1"],
        "ports": [port],
        "internalTrafficPolicy": "Cluster",
        "sessionAffinity": "None",
    }
    ingress = []
    if not plain:
        port["nodePort"] = 30_000
        spec |= {
            "type": "LoadBalancer",
            "externalIPs": ["198.51.100.1"],
            "externalTrafficPolicy": "Local",
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 600}},
        }
        ingress = [{"ip": "198.18.0.1"}]
    service = {
        "kind": "Service",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": spec,
        "status": {"loadBalancer": {"ingress": ingress}},
    }
    meta = {"name": "a-0", "namespace": "default", "labels": {"kubernetes.io/service-name": "a"}}
    of_it = {
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "metadata": meta,
        "endpoints": places,
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    }
    nodes = [_node(number, (4,), {}, [str(PODS[4])]) for number in range(len(NODES))]
    flags = (f"--cluster-cidr={PODS[4]}",)
    items = [*nodes, service, of_it]
    if not layout.reads_slices:
        items += as_endpoints(items)
    return GeneratedCluster(items, flags, layout, 4, NODES[0])


def _node(
    number: int, families: Sequence[int], labels: dict[str, str], networks: Sequence[str]
) -> Any:
    addresses = [
        {"type": "InternalIP", "address": str(_HOSTS[family][10 + number])} for family in families
    ]
    return {
        "kind": "Node",
        "metadata": {"name": NODES[number], "labels": labels},
        "spec": {"podCIDRs": [*networks]},
        "status": {"addresses": addresses},
    }


def _families_of(known: tuple[int, ...], *least: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Return strategies of a Service's IP versions, in the order of its own."""
    some = [known, known[::-1], *((each,) for each in known)]
    return st.sampled_from([each for each in dict.fromkeys(some) if {*least} <= {*each}])


@st.composite
def _services(
    draw: st.DrawFn, number: int, families: tuple[int, ...], layout: RulesLayout, *, plain: bool
) -> list[Any]:
    """Draw a Service, whose addresses and ports only its number has, and its EndpointSlices."""
    kind = (
        "ClusterIP" if plain else draw(st.sampled_from(("ClusterIP", "NodePort", "LoadBalancer")))
    )
    name, namespace = f"svc-{number}", draw(st.sampled_from(("default", "kube-system")))
    ports = draw(_service_ports(number, kind))
    policies = st.sampled_from(("Cluster", "Local"))
    spec: dict[str, Any] = {
        "type": kind,
        "clusterIP": str(_SERVICES[families[0]][100 + number]),
        "clusterIPs": [str(_SERVICES[family][100 + number]) for family in families],
        "ports": ports,
        "sessionAffinity": "None",
        "internalTrafficPolicy": draw(policies),
    }
    if not plain and draw(st.integers(0, 3)) == 0:
        seconds = draw(st.sampled_from((1, 600, 10_800, 86_400)))
        spec["sessionAffinity"] = "ClientIP"
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": seconds}}
    external = range(0 if plain else draw(st.sampled_from((0, 0, 1, 2))))
    if external:
        spec["externalIPs"] = [
            str(_EXTERNAL[f][2 * number + at]) for f in families for at in external
        ]
    # An API server of 1.20 refuses it of external IPs alone; kube-proxy heeds it since 1.29.
    if kind != "ClusterIP" or (external and layout.minor > RulesLayout.V1_28.minor):
        spec["externalTrafficPolicy"] = draw(policies)
    status: dict[str, Any] = {}
    if kind == "LoadBalancer":
        status, more = draw(_balancer(number, families, spec["externalTrafficPolicy"]))
        spec |= more
    service = {
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "annotations": draw(_annotations)},
        "spec": spec,
        "status": {"loadBalancer": status},
    }
    return [service, *(each for f in families for each in draw(_slices(name, namespace, ports, f)))]


_annotations = st.sampled_from(
    (
        {},
        {"service.kubernetes.io/topology-mode": "Auto"},
        {"service.kubernetes.io/topology-aware-hints": "auto"},
    )
)


@st.composite
def _service_ports(draw: st.DrawFn, number: int, kind: str) -> list[Any]:
    names = draw(st.sampled_from((("",), ("http",), ("dns", "dns-tcp"), ("a", "b", "c"))))
    ports = []
    for at, name in enumerate(names):
        # One number may serve several protocols, as that of DNS does.
        protocol = PROTOCOLS[at] if len(names) > 1 else draw(st.sampled_from(PROTOCOLS))
        port: dict[str, Any] = {"protocol": protocol, "port": draw(st.sampled_from((53, 80)))}
        if name:
            port["name"] = name
        if kind == "NodePort" or (kind == "LoadBalancer" and draw(st.booleans())):
            port["nodePort"] = 30_000 + 10 * number + at
        ports.append(port)
    return ports


@st.composite
def _balancer(
    draw: st.DrawFn, number: int, families: tuple[int, ...], policy: str
) -> tuple[Any, Any]:
    """Draw the status and the spec of a Service's load balancers."""
    found = range(draw(st.sampled_from((0, 1, 1, 2))))
    ingress = [{"ip": str(_BALANCERS[f][2 * number + at])} for f in families for at in found]
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        some = [each for family in families for each in _RANGES[family]]
        ranges = st.lists(st.sampled_from(some), unique=True, min_size=1, max_size=3)
        more["loadBalancerSourceRanges"] = draw(ranges)
    if policy == "Local":
        more["healthCheckNodePort"] = 31_000 + number
    return {"ingress": ingress}, more


@st.composite
def _slices(
    draw: st.DrawFn, name: str, namespace: str, ports: Sequence[Any], family: int
) -> list[Any]:
    """Draw one or two EndpointSlices; the target ports of the second may differ."""
    places = draw(st.lists(st.integers(0, 11), unique=True, max_size=6))
    cut = draw(st.integers(0, len(places))) if draw(st.booleans()) else len(places)
    hinted = draw(st.booleans())
    made = []
    for at, part in enumerate((places[:cut], places[cut:])):
        if not part and at:
            continue
        meta = {
            "name": f"{name}-ipv{family}-{at}",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": name},
        }
        targets = [
            {"name": p.get("name", ""), "protocol": p["protocol"], "port": 8000 + 100 * at + n}
            for n, p in enumerate(ports)
        ]
        made.append(
            {
                "kind": "EndpointSlice",
                "addressType": f"IPv{family}",
                "metadata": meta,
                "endpoints": [draw(_endpoint(place, family, hinted=hinted)) for place in part],
                "ports": targets,
            }
        )
    return made


@st.composite
def _endpoint(draw: st.DrawFn, place: int, family: int, *, hinted: bool) -> Any:
    """Draw an endpoint: a pod, or what listens at the address of its node."""
    node = place % len(NODES)
    if place < len(NODES):
        address = str(_HOSTS[family][10 + node])
    else:
        address = str(PODS[family][256 * node + 2 + place])
    if family == 6 and draw(st.booleans()):
        address = ip_address(address).exploded
    state = draw(st.sampled_from((None, "ready", "ready", "ready", "unready", "ending", "gone")))
    endpoint: dict[str, Any] = {"addresses": [address], "conditions": {}}
    if state is not None:
        endpoint["conditions"] = {
            "ready": state == "ready",
            "serving": state in ("ready", "ending"),
            "terminating": state in ("ending", "gone"),
        }
    if draw(st.integers(0, 7)):
        endpoint["nodeName"] = NODES[node]
    if hinted and draw(st.integers(0, 7)):
        endpoint["hints"] = {"forZones": [{"name": draw(st.sampled_from(ZONES))}]}
        if draw(st.booleans()):
            endpoint["hints"]["forNodes"] = [{"name": NODES[node]}]
    return endpoint
