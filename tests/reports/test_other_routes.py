from __future__ import annotations

import json
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from analyzer.kubeproxy.view import Endpoint, Frontend, FrontendKind, Route, Share, Source
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.reports.other_routes import other_routes
from tests.support.commands import Command
from tests.support.defects import path

FRONTEND = Frontend(FrontendKind.LOAD_BALANCER_IP, ip_address("203.0.113.9"), 80)
TO_ONE = (Share(Endpoint(ip_address("10.0.0.1"), 80), Bounds(ALWAYS, ALWAYS), None),)


def route(source: Source, network: str | None, *, leads: bool) -> Route:
    shares = TO_ONE if leads else ()
    return Route(FRONTEND, source, shares, NEVER, ip_network(network) if network else None)


def given(*routes: Route) -> list[Route]:
    return list(other_routes(routes, lambda r: r, lambda r: bool(r.shares)))


def test_a_route_that_is_as_the_main_one_is_left_out() -> None:
    node = route(Source.NODE, None, leads=True)
    outside = route(Source.EXTERNAL, None, leads=False)
    assert given(node, outside) == [outside]


def test_all_networks_of_a_source_are_given_where_one_of_them_differs() -> None:
    inside = route(Source.EXTERNAL, "192.0.2.0/24", leads=True)
    outside = route(Source.EXTERNAL, None, leads=False)
    assert given(inside, outside) == [inside, outside]
    assert given(inside) == []


@pytest.mark.parametrize("verb", ["services", "loss"])
def test_json_of_each_verb_tells_each_network_of_parted_sources(
    command: Command, verb: str
) -> None:
    files = path("masqall.txt"), "--objects", path("masqall-o.json"), "--node", "node-a1"
    dead = ("--dead", "10.244.0.29") if verb == "loss" else ()
    done = command(verb, *files, *dead, "--format", "json")
    assert done.status == 0, done.err
    services: list[dict[str, Any]] = json.loads(done.out)["services"]
    (routes,) = (s["routes"] for s in services if s["name"].startswith("feat/lb-ranges"))
    networks = {
        each["network"]
        for each in routes
        if (each["frontend"]["kind"], each["source"]) == ("LoadBalancerIP", "external")
    }
    assert None in networks
    assert len(networks) > 1
