"""The check that each run makes: it is seeded, and notices a prediction that is wrong."""

from __future__ import annotations

from analyzer.kubeproxy.generate import FLAGS, RulesLayout, mixed, service_ports
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.kubeproxy.predict.sampled import sampled
from analyzer.kubeproxy.predict.settings import proxies
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.value import replace
from tests.support.predictions import cluster_of, predicted, settings_of

ITEMS = mixed(12, 4)
SETTINGS = settings_of(RulesLayout.V1_36, FLAGS, ProxyMode.IPTABLES)
SERVICES = list(service_ports(ITEMS, RulesLayout.V1_36))
FOUND = predicted(ITEMS, SETTINGS, 4)
PROXIES = proxies(ITEMS, SETTINGS, 4)


def check(found: tuple[EveryNode, ...], seed: int) -> tuple[str, ...]:
    cluster = cluster_of(ITEMS)
    return sampled(found, SERVICES, PROXIES, ProxyMode.IPTABLES, cluster, seed).differing


def without_an_endpoint(service: ServicePort) -> ServicePort:
    routes = tuple(replace(each, shares=tuple(each.shares)[1:]) for each in service.routes)
    return replace(service, routes=routes)


def test_a_seed_draws_the_same_nodes() -> None:
    cluster = cluster_of(ITEMS)
    one, again = (
        sampled(FOUND, SERVICES, PROXIES, ProxyMode.IPTABLES, cluster, 3) for _ in range(2)
    )
    assert one == again
    assert len(one.nodes) == 3
    assert one.services == 30
    assert one.differing == ()


def test_what_is_predicted_wrongly_is_named() -> None:
    for broken in (
        tuple(
            EveryNode(at=tuple(At(without_an_endpoint(e.service), e.nodes) for e in of.at))
            for of in FOUND
        ),
        tuple(
            EveryNode(at=tuple(At(replace(e.service, frontends=()), e.nodes) for e in of.at))
            for of in FOUND
        ),
    ):
        names = check(broken, 3)
        assert len(names) > 8
