"""Pods are in the networks that rules and objects name, unless their addresses are not in these."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_address, ip_network

import pytest

from analyzer.kubeproxy.routes.pod_networks import PodNetworks, pod_networks
from analyzer.model.addresses import Network, network_from_text
from analyzer.model.cluster import Cluster, Node, Placement
from analyzer.model.value import replace


def cluster(**networks: str) -> Cluster:
    return Cluster({n: Node(name=n, pod_networks=(ip_network(c),)) for n, c in networks.items()})


def network(text: str | None) -> Network | None:
    return None if text is None else network_from_text(text)


def left_of(every: str, taken: str) -> tuple[Network, ...]:
    """Return what is left of a network, in the order in which it is told."""
    return tuple(IPv4Network(every).address_exclude(IPv4Network(taken)))


@pytest.mark.parametrize(
    ("written", "here", "elsewhere"),
    [
        # Nobody says.
        (None, ("10.1.0.0/24",), ("10.1.1.0/24",)),
        # --detect-local-mode=NodeCIDR.
        ("10.1.0.0/24", ("10.1.0.0/24",), ("10.1.1.0/24",)),
        # The CNI plugin gives addresses of its own.
        ("172.16.0.0/12", ("172.16.0.0/12",), ("172.16.0.0/12",)),
    ],
)
def test_pods_are_where_rules_and_objects_say(
    written: str | None, here: tuple[str, ...], elsewhere: tuple[str, ...]
) -> None:
    nodes = cluster(a="10.1.0.0/24", b="10.1.1.0/24")
    assert pod_networks(4, network(written), nodes, "a") == PodNetworks(
        tuple(map(ip_network, here)), tuple(map(ip_network, elsewhere))
    )


def test_what_no_known_node_has_is_of_pods_elsewhere() -> None:
    nodes = cluster(a="10.1.0.0/24", b="10.1.1.0/24")
    found = pod_networks(4, network("10.1.0.0/16"), nodes, "a")
    others = (ip_network("10.1.1.0/24"), *left_of("10.1.0.0/16", "10.1.0.0/24"))
    assert found == PodNetworks((ip_network("10.1.0.0/24"),), others)
    alone = pod_networks(4, network("10.1.0.0/16"), cluster(a="10.1.0.0/24"), "a")
    assert alone == PodNetworks(found.here, others[1:])
    address = ip_address("10.1.77.7")
    assert [address in each for each in others].count(True) == 1
    assert not any(ip_address("10.1.0.7") in each for each in others)


@pytest.mark.parametrize(
    ("endpoints", "is_used"),
    [
        ((), True),
        (("10.1.0.9", "10.1.1.9", "192.168.0.1"), True),
        # The rules send flows to a pod, and no podCIDR has its address.
        (("10.1.0.9", "10.1.219.9"), False),
    ],
)
def test_endpoints_show_that_podcidrs_are_unused_if_no_pods_are_placed(
    endpoints: tuple[str, ...], *, is_used: bool
) -> None:
    nodes, every = cluster(a="10.1.0.0/24", b="10.1.1.0/24"), ip_network("10.1.0.0/16")
    found = pod_networks(4, every, nodes, "a", lambda: map(ip_address, endpoints))
    assert (found == PodNetworks((every,), (every,))) is not is_used
    # Objects that place pods are known better.
    placed = Cluster(nodes.nodes, {ip_address("10.1.0.9"): Placement("a", None)})
    told = pod_networks(4, every, nodes, "a")
    assert pod_networks(4, every, placed, "a", lambda: map(ip_address, endpoints)) == told


@pytest.mark.parametrize(
    ("pods", "is_used"),
    [
        ({"10.1.0.9": "a", "10.1.1.9": "b"}, True),
        # On the network of its node, or of a node that has no address that objects know.
        ({"192.168.0.1": "a", "172.16.0.9": "c"}, True),
        # In the podCIDR of another node, and in none.
        ({"10.1.0.9": "a", "10.1.1.9": "a"}, False),
        ({"10.1.0.9": "a", "10.1.219.9": "b"}, False),
    ],
)
def test_pods_may_be_anywhere_if_their_addresses_are_not_in_their_podcidrs(
    pods: dict[str, str], is_used: bool
) -> None:
    own = (ip_address("192.168.0.1"),)
    nodes = {
        name: replace(node, addresses=own)
        for name, node in cluster(a="10.1.0.0/24", b="10.1.1.0/24").nodes.items()
    }
    placements = {ip_address(each): Placement(node, None) for each, node in pods.items()}
    known = Cluster({**nodes, "c": Node(name="c")}, placements)
    here, others, every = map(ip_network, ("10.1.0.0/24", "10.1.1.0/24", "10.1.0.0/16"))
    rest = left_of(str(every), str(here))
    told = PodNetworks((here,), (others, *rest)) if is_used else PodNetworks((every,), (every,))
    assert pod_networks(4, every, known, "a") == told
    unwritten = PodNetworks((here,), (others,)) if is_used else PodNetworks()
    assert pod_networks(4, None, known, "a") == unwritten


def test_nodes_may_have_one_podcidr_in_common() -> None:
    every = ip_network("10.1.0.0/16")
    placements = {ip_address(f"10.1.{at}.9"): Placement(n, None) for at, n in enumerate("ab")}
    shared = Cluster(cluster(a=str(every), b=str(every)).nodes, placements)
    assert pod_networks(4, None, shared, "a") == PodNetworks((every,), (every,))


def test_what_the_user_says_of_a_node_is_not_taken_for_its_podcidr() -> None:
    placements = {ip_address("10.1.1.9"): Placement("a", None)}
    known = Cluster(cluster(a="10.1.0.0/24", b="10.1.1.0/24").nodes, placements)
    every, said = map(ip_network, ("10.1.0.0/16", "10.1.219.0/26"))
    found = pod_networks(4, every, known.with_networks([(said, "b")]), "a")
    assert found == PodNetworks((every,), (said, every))


def test_whose_rules_these_are_may_be_told_by_the_network_of_the_rules() -> None:
    nodes = cluster(a="10.1.0.0/24", b="10.1.1.0/24")
    own, others = ip_network("10.1.1.0/24"), ip_network("10.1.0.0/24")
    assert pod_networks(4, own, nodes, None) == PodNetworks((own,), (others,))


def test_without_objects_nobody_says_where_other_pods_are() -> None:
    every = (ip_network("10.1.0.0/16"),)
    assert pod_networks(4, every[0], Cluster(), None) == PodNetworks(every, ())
    assert pod_networks(4, None, Cluster(), None) == PodNetworks()
    assert pod_networks(6, None, cluster(a="10.1.0.0/24"), "a") == PodNetworks()


# --- in a dump ---------------------------------------------------------------
