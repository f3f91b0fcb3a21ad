"""Plain shares: one route that stands for those of all sources says what each of them does.

That what is read off plain rows is what walks find: test_plain.py and test_nft_plain.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.kubeproxy.generate import (
    FLAGS,
    RulesLayout,
    iptables_save,
    mixed,
    nft_text,
    node_name,
    proxy_config,
    render_nft,
    render_rules,
    service_ports,
    services,
)
from analyzer.kubeproxy.rows.plain_shares import Drawn, Marked, PlainRoutes
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Source
from analyzer.model.cluster import Cluster
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.reports import services_text, services_tsv
from analyzer.reports.answers import ServicesAnswer
from tests.support.captures import FIXTURES, Capture
from tests.support.reading import recogniser

DUMPS = sorted(
    path
    for pattern in ("*/*/ip*-save.txt", "*/*/nft-list-ruleset.*")
    for path in FIXTURES.glob(pattern)
)


def generated() -> dict[str, str]:
    given = list(services(40, endpoints=(1, 2, 3, 10)))
    items = mixed(30, 4)
    config = proxy_config(items, FLAGS, node=node_name(1), layout=RulesLayout.V1_36)
    ports = list(service_ports(items, RulesLayout.V1_36))
    return {
        "plain": iptables_save(given),
        "plain nft": nft_text(given),
        "mixed": render_rules(ports, config),
        "mixed nft": render_nft(ports, config),
    }


def found(routes: object) -> dict[Frontend, set[object]]:
    """Return what flows to each frontend meet, wherever they come from."""
    by_frontend: dict[Frontend, set[object]] = {}
    assert isinstance(routes, tuple | PlainRoutes)
    for route in routes:
        assert isinstance(route, Route)
        printed, shares = route.columns()
        met = tuple(printed), tuple(shares), route.unresolved
        by_frontend.setdefault(route.frontend, set()).add(met)
    return by_frontend


def check(data: bytes, cluster: Cluster) -> tuple[ServicePort, ...]:
    ruleset = read_ruleset(data, "dump")
    view = recogniser(ruleset, cluster).view()
    for service in view.services:
        routes = service.differing_routes()
        assert found(routes) == found(service.routes)
        assert [*found(routes)] == [*found(service.routes)]
        for frontend in service.frontends:
            with_all = replace(service, routes=tuple(service.routes))
            assert service.state(frontend) is with_all.state(frontend)
    slowly = tuple([replace(each, routes=tuple(each.routes)) for each in view.services])
    quick, slow = (
        ServicesAnswer(ruleset=ruleset, cluster=cluster, view=view, services=each, diagnostics=())
        for each in (view.services, slowly)
    )
    assert [*services_tsv.render(quick)] == [*services_tsv.render(slow)]
    assert services_text.render(quick) == services_text.render(slow)
    return view.services


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_one_route_stands_for_all_in_captures(path: Path) -> None:
    for cluster in (Cluster(), Capture(path).cluster):
        check(path.read_bytes(), cluster)


@pytest.mark.parametrize("kind", generated())
def test_one_route_stands_for_all_in_generated_dumps(kind: str) -> None:
    every = check(generated()[kind].encode(), Cluster())
    quick = [each for each in every if len(each.differing_routes()) < len(each.routes)]
    if kind == "plain":
        assert quick == [*every]
        assert all(each.differing_routes()[0].source is Source.HAIRPIN for each in quick)
    if kind == "mixed":
        assert 0 < len(quick) < len(every)


DRAWS = (Bounds(ALWAYS, ALWAYS),)
OTHER_DRAWS = (Bounds(ALWAYS, ALWAYS), Bounds(ALWAYS, ALWAYS))
LOST = "lost"
NOT_LOST = "not lost"


def class_routes(draws: tuple[Bounds, ...] | None, found: str | None) -> PlainRoutes:
    drawn = None if draws is None else Drawn(None, Marked.NONE, ("10.0.0.1:80",), draws)
    return PlainRoutes(lambda _: iter(()), lambda: False, drawn, found=lambda: found)


def test_a_class_is_of_equal_draws_and_of_flows_that_fare_alike() -> None:
    one = class_routes(DRAWS, LOST).class_of()
    assert one is not None
    assert one == class_routes(DRAWS, LOST).class_of()
    assert one != class_routes(OTHER_DRAWS, LOST).class_of()
    assert one != class_routes(DRAWS, NOT_LOST).class_of()


def test_of_routes_of_more_than_one_frontend_each_is_its_own_class() -> None:
    assert class_routes(DRAWS, None).class_of() is None
    assert class_routes(None, LOST).class_of() is None
