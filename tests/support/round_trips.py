"""The Services read out of a dump, held against the objects that it was generated from.

What the objects imply is read by `promises`, which shares no code with the generator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import ip_address, ip_network
from typing import Any, Final

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Frontend as ShownFrontend
from analyzer.kubeproxy.view import FrontendKind, Route, ServicePort, View
from analyzer.kubeproxy.view import Source as Kind
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from tests.support.clusters import GeneratedCluster
from tests.support.promises import Frontend, Promise, Promises, Source
from tests.support.reading import read_ruleset

#: Where the view's flows from outside come from; see `analyzer.kubeproxy.routes.sources`.
OUTSIDE: Final[dict[int, Address]] = {
    4: ip_address("203.0.113.1"),
    6: ip_address("2001:db8:ffff::1"),
}
#: More of them, where somebody's source ranges hold that one.
CLIENTS: Final[dict[int, list[Address]]] = {
    4: [ip_address("198.51.100.77"), ip_address("192.0.2.99"), ip_address("100.64.3.4")],
    6: [ip_address("2001:db8:fffe::7"), ip_address("2001:db8:fffd::7")],
}


class OfObjects(Promises):
    """Promises of objects that no file holds."""

    def __init__(self, cluster: GeneratedCluster, *, nftables: bool = False) -> None:
        major, minor = cluster.layout.value.split(".")
        self.version = int(major), int(minor)
        self.node = cluster.node
        self.family = cluster.family
        self.nftables = nftables
        ignored = nftables and self.version < (1, 31)
        self.masquerades_all = "--masquerade-all" in cluster.flags and not ignored
        self.kubelet = False
        given = [f.partition("=")[2] for f in cluster.flags if f.startswith("--cluster-cidr")]
        networks = [ip_network(text) for each in given for text in each.split(",")]
        self.pods = next((n for n in networks if n.version == self.family), None)
        self._items = cluster.items


@dataclass(frozen=True)
class Asked:
    """One frontend of a Service, as the objects have it."""

    service: Any
    port: Any
    frontend: Frontend

    @property
    def key(self) -> tuple[str, str]:
        return self.frontend.service.removesuffix(":"), self.frontend.protocol

    @property
    def shown(self) -> ShownFrontend:
        kind = FrontendKind(self.frontend.kind)
        address = None if kind is FrontendKind.NODE_PORT else self.frontend.address
        return ShownFrontend(kind, address, self.frontend.port)

    @property
    def affinity(self) -> int | None:
        """Seconds for which a client keeps its endpoint."""
        spec = self.service["spec"]
        if spec["sessionAffinity"] != "ClientIP":
            return None
        seconds: int = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        return seconds


class RoundTrip:
    """The Services read out of a dump, and what the objects of a cluster promise."""

    #: Diagnostics that such a dump may have. Of bridges something is
    #: assumed up to 1.21.
    codes: frozenset[str] = frozenset({"assumed"})

    def __init__(
        self, cluster: GeneratedCluster, dump: str | None = None, known: Cluster | None = None
    ) -> None:
        """Take the dump of the cluster itself if none is given, and what its reader knows."""
        self.cluster = cluster
        self.dump = cluster.dump if dump is None else dump
        self.known = known or Cluster()
        self.promises = OfObjects(cluster)

    @cached_property
    def view(self) -> View:
        ruleset = read_ruleset(self.dump.encode(), "dump")
        own = self.promises.node_addresses
        return Recogniser(ruleset, self.known, node_addresses=own).view()

    def check(self) -> None:
        """Check that the Services are those of the objects."""
        assert {each.code for each in self.view.diagnostics} <= self.codes
        asked = [Asked(*each) for each in self.promises.frontends()]
        services = [s for s in self.view.services if s.version == self.cluster.family]
        shown = {(s.name.text, s.protocol): s for s in services}
        assert shown.keys() == {a.key for a in asked}
        for key, service in shown.items():
            self._check_service(service, [a for a in asked if a.key == key])

    def _check_service(self, service: ServicePort, asked: list[Asked]) -> None:
        found = [(self._shown(a), self._refusal(a)) for a in asked]
        refused = {shown: refusal for shown, refusal in found if refusal}
        unnamed = {f for f in refused if f.kind is FrontendKind.LOAD_BALANCER_IP}
        assert as_named(service.frontends, unnamed) == as_named([f for f, _ in found], unnamed)
        assert as_named(dict(service.refusals), unnamed) == as_named(refused, unnamed)
        assert {(f.address, f.port, how) for f, how in service.refusals} == {
            (f.address, f.port, how) for f, how in refused.items()
        }
        assert service.affinity == (asked[0].affinity if service.routes else None)
        for each in asked:
            routes = [r for r in service.routes if r.frontend == self._shown(each)]
            for kind, source in self._sources():
                of_kind: list[Route | None] = [r for r in routes if r.source is kind]
                for route in of_kind or [None]:
                    asks = source
                    if route is not None and kind is not Kind.NODE:
                        if kind is Kind.EXTERNAL and self._is_of_pods(route):
                            continue  # rules that name no network of pods do not tell
                        asks = self._client(of_kind, route, source)
                    self._check_route(each, asks, route)

    def _shown(self, asked: Asked) -> ShownFrontend:
        return asked.shown

    @cached_property
    def _hairpins(self) -> set[Address]:
        """The addresses of endpoints of which the dump asks by themselves."""
        return {
            ip_address(text) for text in re.findall(r"-A KUBE-SEP-\S+ -s (\S+)/\d+ ", self.dump)
        }

    def _is_of_pods(self, route: Route) -> bool:
        pods = self.promises.pods
        return route.network is not None and pods is not None and route.network[0] in pods

    def _client(self, routes: list[Route | None], route: Route, usual: Source) -> Source:
        """Return a source of the kind of `usual` of which `route`, one of `routes`, speaks."""
        within, pods = route.network, self.promises.pods
        networks = [n for r in routes if r is not None for n in r.networks]
        inner = [n for n in networks if n != within and (within is None or n[0] in within)]
        outside = route.source is Kind.EXTERNAL
        some = CLIENTS[self.cluster.family] if outside or pods is None else [pods[7], pods[-7]]
        candidates: Iterable[Address] = [usual.address, *some]
        if within is not None:
            candidates = (within[at] for at in range(min(within.num_addresses, 1 << 16)))
        return next(
            Source(f"{usual.name} in {within}", address)
            for address in candidates
            if not any(address in n for n in inner)
            and address not in self._hairpins
            and (pods is None or (address in pods) != outside)
        )

    def _check_route(self, asked: Asked, source: Source, route: Route | None) -> None:
        promise = self._promise(asked, source)
        shares = () if route is None else tuple(route.shares)
        assert {(s.endpoint.address, s.endpoint.port) for s in shares} == promise.endpoints, (
            asked.frontend,
            source,
            shares,
            promise,
        )
        masked = {(s.endpoint.address, s.endpoint.port) for s in shares if s.masquerade}
        assert masked == promise.masqueraded
        assert None not in {s.masquerade for s in shares}
        if route is not None and not route.is_exact:
            # -m physdev asks for a bridge, which no dump tells of.
            assert self.cluster.layout is RulesLayout.V1_20
            assert asked.frontend.kind == "ExternalIP"
            return
        found = Counter(s.share.lower for s in shares)
        assert found == Counter(self.promises.shares(len(shares)))

    def _sources(self) -> Iterator[tuple[Kind, Source]]:
        for pod in self.view.pod_sources:
            if pod.version == self.cluster.family:
                yield Kind.POD, Source("a pod", pod)
        yield Kind.NODE, Source("the node", self.promises.node_addresses[0], made_here=True)
        yield Kind.EXTERNAL, Source("outside", OUTSIDE[self.cluster.family])

    def _promise(self, asked: Asked, source: Source) -> Promise:
        return self.promises.promise(asked.service, asked.port, asked.frontend, source)

    def _refusal(self, asked: Asked) -> str | None:
        """Return what answers a client that no range keeps out, where the filter table does."""
        spec = {k: v for k, v in asked.service["spec"].items() if k != "loadBalancerSourceRanges"}
        client = Source("a client", OUTSIDE[self.cluster.family])
        open_to_all = replace(asked, service=asked.service | {"spec": spec})
        kind = self._promise(open_to_all, client).kind
        # 1.20 marks what it drops, and rejects what has no endpoints at all.
        marked = kind == "drop" and self.cluster.layout is RulesLayout.V1_20
        return kind if kind in ("reject", "drop") and not marked else None


def as_named(
    frontends: Iterable[ShownFrontend], unnamed: Collection[ShownFrontend]
) -> set[ShownFrontend]:
    """Return frontends, those of load balancers in `unnamed` as external IPs.

    A rule that refuses says of neither which it is, and both stand in one chain.
    """
    return {
        ShownFrontend(FrontendKind.EXTERNAL_IP, f.address, f.port) if f in unnamed else f
        for f in frontends
    }


Change = Callable[[Any, Any], object]
#: Changes of a Service and its slice, each of which changes what is promised.
CHANGES: Final[dict[str, Change]] = {
    "a name": lambda s, _: s["metadata"].update(namespace="other"),
    "a ClusterIP": lambda s, _: s["spec"].update(clusterIP="10.96.0.9", clusterIPs=["10.96.0.9"]),
    "a port": lambda s, _: s["spec"]["ports"][0].update(port=81),
    "a protocol": lambda s, _: s["spec"]["ports"][0].update(protocol="SCTP"),
    "a NodePort": lambda s, _: s["spec"]["ports"][0].update(nodePort=30_999),
    "an external IP": lambda s, _: s["spec"].update(externalIPs=["198.51.100.9"]),
    "a load balancer": lambda s, _: s["status"]["loadBalancer"].update(ingress=[]),
    "a policy": lambda s, _: s["spec"].update(externalTrafficPolicy="Cluster"),
    "affinity": lambda s, _: s["spec"].update(sessionAffinity="None"),
    "seconds": lambda s, _: s["spec"]["sessionAffinityConfig"]["clientIP"].update(timeoutSeconds=9),
    "source ranges": lambda s, _: s["spec"].update(loadBalancerSourceRanges=["192.0.2.0/24"]),
    "readiness": lambda _, e: e["endpoints"][0]["conditions"].update(ready=False),
    "an address": lambda _, e: e["endpoints"][0].update(addresses=["10.244.200.1"]),
    "a target port": lambda _, e: e["ports"][0].update(port=9_999),
    "where it runs": lambda _, e: e["endpoints"][0].update(nodeName="node-2"),
    "no endpoints": lambda _, e: e.update(endpoints=[]),
}
