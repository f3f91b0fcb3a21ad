"""Where addresses live, as sets of them, and what that tells of flows that leave."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.routes.pod_places import pod_places
from analyzer.kubeproxy.view import Source, View
from analyzer.model.addresses import Network
from analyzer.model.cluster import Cluster, Owners, Placement
from analyzer.model.intervals import holds
from analyzer.parsers.iptables_save import parse
from tests.support.captures import ROOT

NODES = ("a", "b", "c")
nodes = st.sampled_from(NODES)
addresses = st.integers(0, 63).map(lambda n: IPv4Address(0x0A000000 + n))


def _network(number: int, length: int) -> Network:
    return ip_network((0x0A000000 + number, length), strict=False)


owned = st.lists(
    st.tuples(st.builds(_network, st.integers(0, 63), st.integers(27, 32)), nodes), max_size=6
)


@given(owned, owned, st.dictionaries(addresses, nodes, max_size=4), nodes, addresses)
def test_each_address_lives_where_its_placement_says(
    cidrs: list[tuple[Network, str]],
    said: list[tuple[Network, str]],
    placed: dict[IPv4Address, str],
    node: str,
    own: IPv4Address,
) -> None:
    cluster = Cluster(
        placements={address: Placement(name, None) for address, name in placed.items()},
        networks=Owners.of(said),
        pod_networks=Owners.of(cidrs),
    )
    found = pod_places(4, cluster, node, [own])
    for number in range(0x0A000000, 0x0A000040):
        home = cluster.placement(IPv4Address(number)).node
        here, there = holds(found.here, number), holds(found.elsewhere, number)
        # What is told holds; of networks within those of two nodes it may be less.
        assert not here or home == node
        assert not there or home not in {node, None}
        if home == node and IPv4Address(number) in placed and number != int(own):
            assert here
    assert not holds(found.here, int(own))
    assert pod_places(4, cluster, None, []) == pod_places(6, cluster, node, [])


#: Each Service's one endpoint on another node, and the rest alike; what is walked is told by class.
PLACED = {"10.244.0.7": "master", "10.244.1.9": "worker1"}


def seen(*, plainly: bool) -> View:
    text = (ROOT / "fixtures/noise/base.txt").read_text()
    first = text.index("-A POSTROUTING")
    text = f"{text[:first]}-A POSTROUTING -o cali+ -j MASQUERADE\n{text[first:]}"
    cluster = Cluster(
        placements={ip_address(a): Placement(n, None) for a, n in PLACED.items()},
    )
    own = (ip_address("192.168.0.11"),)
    given = parse(text, "dump"), cluster
    return Recogniser(*given, node="worker1", node_addresses=own, plainly=plainly).view()


@pytest.mark.parametrize("source", [Source.EXTERNAL, Source.POD_ELSEWHERE])
def test_rules_for_devices_tell_flows_apart_by_where_their_endpoints_live(source: Source) -> None:
    views = [seen(plainly=plainly) for plainly in (True, False)]
    found = [
        {
            (service.name.text, route.source, route.frontend, share.endpoint): share.masquerade
            for service in view.services
            for route in service.routes
            for share in route.shares
        }
        for view in views
    ]
    assert found[0] == found[1]
    here = {
        masquerade
        for (_, of, frontend, endpoint), masquerade in found[0].items()
        if str(endpoint.address) == "10.244.1.9" and of is source
    }
    assert here == {True}
    assert any("pods of this node" in each.message for each in views[0].diagnostics)
