"""Of routes of one frontend and source a client has that of its smallest network."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from analyzer.kubeproxy.routes.narrowest import narrowest
from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, Source
from analyzer.model.probability import NEVER

_FRONTEND = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)


def route(*networks: str) -> Route:
    every = [*map(ip_network, networks)]
    first = every[0] if every else None
    return Route(_FRONTEND, Source.POD, (), NEVER, first, (), tuple(every[1:]))


def test_a_client_has_the_route_of_its_smallest_network() -> None:
    others, wide = route(), route("10.0.0.0/8")
    narrow = route("192.0.2.0/24", "10.1.0.0/16")
    every = [others, wide, narrow]
    assert narrowest(every, ip_address("10.1.2.3")) is narrow
    assert narrowest(every, ip_address("10.2.2.3")) is wide
    assert narrowest(every, ip_address("192.0.2.1")) is narrow
    assert narrowest(every, ip_address("203.0.113.1")) is others
    assert narrowest([wide, narrow], ip_address("203.0.113.1")) is None
