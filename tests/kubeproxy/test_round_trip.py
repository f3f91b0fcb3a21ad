"""Objects become rules, rules become Services, and these are those of the objects.

What the objects imply is read by `promises`, which shares no code with the generator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address, ip_network
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import Layout
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import (
    Frontend as ShownFrontend,
)
from analyzer.kubeproxy.view import (
    FrontendKind,
    Route,
    ServicePort,
    View,
)
from analyzer.kubeproxy.view import (
    Source as Kind,
)
from analyzer.model.cluster import Cluster
from analyzer.model.packet import Address
from analyzer.parsers.formats import read_ruleset
from tests.clusters import GeneratedCluster, clusters
from tests.kubeproxy.captures import expected_shares
from tests.kubeproxy.promises import Frontend, Promise, Promises, Source

#: That tests of sources send from; see `analyzer.kubeproxy.sources`.
OUTSIDE: Final[dict[int, Address]] = {
    4: ip_address("203.0.113.1"),
    6: ip_address("2001:db8:ffff::1"),
}
SOURCES: Final = (Kind.POD, Kind.NODE, Kind.EXTERNAL)


class OfObjects(Promises):
    """Promises of objects that no file holds."""

    def __init__(self, cluster: GeneratedCluster) -> None:
        major, minor = cluster.layout.value.split(".")
        self.version = int(major), int(minor)
        self.node = cluster.node
        self.family = cluster.family
        self.masquerades_all = "--masquerade-all" in cluster.flags
        self.kubelet = False
        cidrs = [f.partition("=")[2] for f in cluster.flags if f.startswith("--cluster-cidr")]
        self.pods = ip_network(cidrs[0]) if cidrs else None
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


class RoundTrip:
    """A cluster, the Services read out of its rules, and what its objects promise."""

    def __init__(self, cluster: GeneratedCluster) -> None:
        self.cluster = cluster
        self.promises = OfObjects(cluster)

    @cached_property
    def view(self) -> View:
        ruleset = read_ruleset(self.cluster.dump.encode(), "dump")
        own = self.promises.node_addresses
        return Recogniser(ruleset, Cluster(), node_addresses=own).view()

    @cached_property
    def shown(self) -> dict[tuple[str, str], ServicePort]:
        return {(s.name.text, s.protocol): s for s in self.view.services}

    @cached_property
    def asked(self) -> list[Asked]:
        return [Asked(*each) for each in self.promises.frontends()]

    def promise(self, asked: Asked, source: Source) -> Promise:
        return self.promises.promise(asked.service, asked.port, asked.frontend, source)

    def sources(self) -> Iterator[tuple[Kind, Source]]:
        own, family = self.promises.node_addresses[0], self.cluster.family
        if self.view.pod_source is not None:
            yield Kind.POD, Source("a pod", self.view.pod_source)
        yield Kind.NODE, Source("the node", own, made_here=True)
        yield Kind.EXTERNAL, Source("outside", OUTSIDE[family])

    def refusal(self, asked: Asked) -> str | None:
        """Return what answers a client that no range keeps out, where the filter table does."""
        ranged: dict[str, Any] = asked.service["spec"]
        spec = {k: v for k, v in ranged.items() if k != "loadBalancerSourceRanges"}
        client = Source("a client", OUTSIDE[self.cluster.family])
        service = asked.service | {"spec": spec}
        kind = self.promises.promise(service, asked.port, asked.frontend, client).kind
        # 1.20 marks what it drops, and rejects what has no endpoints at all.
        marked = kind == "drop" and self.cluster.layout is Layout.V1_20
        return kind if kind in ("reject", "drop") and not marked else None


def unkind(
    frontends: Iterable[ShownFrontend], lost: Collection[ShownFrontend]
) -> set[ShownFrontend]:
    """Return frontends, those of load balancers in `lost` as external IPs.

    A rule that refuses says of neither which it is, and stands in the same chain.
    """
    return {
        ShownFrontend(FrontendKind.EXTERNAL_IP, f.address, f.port) if f in lost else f
        for f in frontends
    }


def routes_of(service: ServicePort, frontend: ShownFrontend) -> dict[Kind, Route]:
    return {r.source: r for r in service.routes if r.frontend == frontend}


@pytest.mark.parametrize("layout", Layout, ids=lambda layout: layout.value)
@given(data=st.data())
def test_objects_come_back_from_their_rules(layout: Layout, data: st.DataObject) -> None:
    trip = RoundTrip(data.draw(clusters(layout)))
    assert trip.view.diagnostics == ()
    assert trip.shown.keys() == {asked.key for asked in trip.asked}
    for key, service in trip.shown.items():
        own = [asked for asked in trip.asked if asked.key == key]
        refused = {a.shown: refusal for a in own for refusal in [trip.refusal(a)] if refusal}
        lost = {f for f in refused if f.kind is FrontendKind.LOAD_BALANCER_IP}
        assert unkind(service.frontends, lost) == unkind([a.shown for a in own], lost)
        assert unkind(dict(service.refusals), lost) == unkind(refused, lost)
        assert {f.port: r for f, r in service.refusals} == {f.port: r for f, r in refused.items()}
        for asked in own:
            check_routes(trip, asked, routes_of(service, asked.shown))


def check_routes(trip: RoundTrip, asked: Asked, routes: dict[Kind, Route]) -> None:
    for kind, source in trip.sources():
        promise = trip.promise(asked, source)
        shares = routes[kind].shares if kind in routes else ()
        assert {(s.endpoint.address, s.endpoint.port) for s in shares} == promise.endpoints
        if kind in routes and not routes[kind].is_exact:
            # -m physdev asks for a bridge, which no dump tells of.
            assert trip.cluster.layout is Layout.V1_20
            assert asked.frontend.kind == "ExternalIP"
            continue
        fractions = Counter(s.share.lower.as_fraction() for s in shares)
        assert fractions == Counter(expected_shares(trip.promises.version, len(shares)))
        masked = {(s.endpoint.address, s.endpoint.port) for s in shares if s.masquerade}
        assert masked == promise.masqueraded
        assert None not in {s.masquerade for s in shares}
