"""Sources that two dumps tell apart differently."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.diff.networks import by_network
from analyzer.kubeproxy.view import Endpoint, Frontend, FrontendKind, Route, Share, Source
from analyzer.model.addresses import Network
from analyzer.model.probability import ALWAYS, NEVER, Bounds

FRONTEND = Frontend(FrontendKind.LOAD_BALANCER_IP, ip_address("198.18.0.1"), 80)
#: All IPv4 networks of addresses that end in 0 to 15, and that of everything.
SMALL = [
    ip_network(f"10.0.0.{at}/{length}")
    for length in range(28, 33)
    for at in range(0, 16, 1 << 32 - length)
]


def route(network: Network | None, number: int) -> Route:
    endpoint = Endpoint(ip_address("10.1.0.0") + number, 80)
    share = Share(endpoint, Bounds(ALWAYS, ALWAYS), masquerade=False)
    return Route(FRONTEND, Source.EXTERNAL, (share,), NEVER, network)


def routes_of(networks: list[Network]) -> list[Route]:
    return [route(network, at) for at, network in enumerate([None, *networks])]


def taken(routes: list[Route], address: int) -> Route:
    """Return the route of one client: that of the narrowest network it is in."""
    client = ip_address("10.0.0.0") + address
    holding = [r for r in routes if r.network is None or client in r.network]
    return max(holding, key=lambda r: -1 if r.network is None else r.network.prefixlen)


lists = st.lists(st.sampled_from(SMALL), unique=True, max_size=5)


@given(lists, lists)
def test_every_client_finds_its_own_two_routes(a: list[Network], b: list[Network]) -> None:
    here, there = routes_of(a), routes_of(b)
    found = [*by_network(here, there)]
    given_ = {network: (one, other) for network, _, one, other in found}
    buts = {network: but for network, but, _, _ in found}
    met = set()
    for address in range(17):
        client = ip_address("10.0.0.0") + address
        holding = [n for n in given_ if n is not None and client in n]
        network = max(holding, key=lambda n: n.prefixlen, default=None)
        assert given_[network] == (taken(here, address), taken(there, address))
        assert not any(client in but for but in buts[network])
        around = [n for n in buts if n != network and (n is None or client in n)]
        assert all(any(client in but for but in buts[n]) for n in around)
        met.add(network)
    assert met == set(given_)  # none is given that no client takes


def test_a_source_that_one_dump_does_not_tell_of_is_left_out() -> None:
    within = ip_network("10.0.0.0/28")
    assert list(by_network([route(within, 1)], [route(None, 2)])) == [
        (within, (), route(within, 1), route(None, 2))
    ]
