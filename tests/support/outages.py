"""A Service of a few endpoints, its objects, and outages of the nodes that they are on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import lru_cache
from ipaddress import IPv4Address
from typing import Any

from analyzer.failure.models import Dead, dead
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Endpoint, View
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster, Node, Placement, PodNames, Pods
from analyzer.model.services import ApiEndpoint, ApiServicePort
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.model.workloads import ManagedPod, NodeFacts, ServiceFacts, Workloads
from analyzer.outage.clocks import TimeBounds
from analyzer.outage.control_plane import ControlPlaneTopology, Etcd, LoadBalancer
from analyzer.outage.scenario import OutageOptions, Scenario, scenario
from analyzer.outage.timeline import Played, play
from analyzer.parsers.iptables_save import parse
from tests.support.dumps import chance, cluster_ip, dump, endpoint

NAME = "ns/a:http"
#: Pods of a ReplicaSet that tolerate what admission gives them, and can run anywhere.
PLAIN = ManagedPod(owner="ReplicaSet", tolerates=300, is_bound=Ternary.FALSE)
MANAGED = ServiceFacts(has_selector=True, publishes_not_ready=False)
#: A control plane on a node that no endpoint is on.
APART = ControlPlaneTopology(
    api=("m",),
    etcd=Etcd.NODES,
    members=("m",),
    controllers=("m",),
    schedulers=("m",),
    load_balancer=LoadBalancer.NONE,
)


def seconds(first: float, last: float | None = None) -> TimeBounds:
    """Return a span of seconds, or a moment."""
    return TimeBounds(Fraction(first), Fraction(first if last is None else last))


@lru_cache
def rules(number: int, name: str = NAME) -> str:
    """Return a dump of a Service whose endpoints are 10.0.0.1 and so on, as kube-proxy draws."""
    draws = [chance(f"{1 / (number - n):.11f}", f"KUBE-SEP-{n + 1}") for n in range(number - 1)]
    return dump(
        cluster_ip(name),
        *draws,
        f"-A KUBE-SVC-A -j KUBE-SEP-{number}",
        *(endpoint(f"KUBE-SEP-{n + 1}", f"10.0.0.{n + 1}:80") for n in range(number)),
    )


def address(number: int) -> IPv4Address:
    """Return the address of an endpoint, which are counted from 1."""
    return IPv4Address(f"10.0.0.{number}")


def cluster(number: int) -> Cluster:
    """Return a cluster with an endpoint on each of the nodes n1 and so on, and a node m."""
    names = [*(f"n{n}" for n in range(1, number + 1)), "m"]
    pods: dict[Address, str | None] = {address(n): f"ns/p{n}" for n in range(1, number + 1)}
    return Cluster(
        nodes={name: Node(name=name) for name in names},
        placements={address(n): Placement(f"n{n}", None) for n in range(1, number + 1)},
        pods=Pods(lambda: PodNames(by_address=pods)),
    )


@lru_cache
def view(number: int, name: str = NAME) -> View:
    """Return what the dump shows."""
    return Recogniser(parse(rules(number, name), "dump.txt"), cluster(number)).view()


def spec(number: int, **more: Any) -> ApiServicePort:
    """Return what the objects list of the Service: the same endpoints."""
    found = ApiServicePort(
        name=NAME,
        protocol="tcp",
        frontends=(("ClusterIP", IPv4Address("10.96.0.1"), 80),),
        endpoints=tuple(
            ApiEndpoint(address=address(n), port=80, spellings=(), is_ready=True)
            for n in range(1, number + 1)
        ),
    )
    return replace(found, **more)


def workloads(
    number: int,
    pods: Mapping[int, ManagedPod] | None = None,
    service: ServiceFacts | None = MANAGED,
    *,
    may_be_deleted: bool = False,
) -> Workloads:
    """Return who is behind the endpoints: a ReplicaSet's pods, where no others are named."""
    facts = NodeFacts(zone="", may_be_deleted=may_be_deleted, counts=True, kubelet=None)
    behind = dict.fromkeys(range(1, number + 1), PLAIN) | dict(pods or {})
    return Workloads(
        pods={f"ns/p{n}": pod for n, pod in behind.items()},
        services={} if service is None else {"ns/a": service},
        nodes=dict.fromkeys(cluster(number).nodes, facts),
    )


def died(number: int, nodes: Collection[int], name: str = NAME) -> Dead:
    """Return who dies with some of the nodes."""
    return dead(view(number, name), cluster(number), nodes=[f"n{n}" for n in nodes])


def outage(
    number: int,
    nodes: Collection[int],
    behind: Workloads | None = None,
    topology: ControlPlaneTopology | None = APART,
    alone: Collection[Endpoint] = (),
    **asked: Any,
) -> Scenario:
    """Return what is to be played when nodes die that have endpoints, or some die `alone`."""
    known = workloads(number) if behind is None else behind
    said = OutageOptions(**{"said": {}, **asked})
    services = view(number).services
    dying = died(number, nodes)
    dying = replace(dying, endpoints=dying.endpoints.union(alone))
    return scenario(said, dying, services, cluster(number), topology, known)


def played(
    number: int, found: Scenario, listed: ApiServicePort | None = None, until: int = 3600
) -> Played:
    """Return what becomes of the Service; without `listed`, of its own endpoints."""
    specs = {each.key: each for each in (listed or spec(number),)}
    (result,) = play(
        view(number).services,
        found.died,
        found.causes.fates,
        specs,
        Fraction(until),
        found.reboot,
        () if found.outage.proxy_dead else found.unsettled,
    )
    return result
