from __future__ import annotations

from ipaddress import IPv4Address

from analyzer.model.cluster import Cluster, Node, Placement

ADDRESS = IPv4Address("10.1.0.1")


def test_an_address_of_which_nothing_is_known_has_no_place() -> None:
    assert Cluster().placement(ADDRESS) == Placement(None, None)


def test_zones_are_those_of_nodes_and_of_endpoints() -> None:
    cluster = Cluster(
        {"n1": Node(name="n1", zone="a"), "n2": Node(name="n2")}, {ADDRESS: Placement("n3", "b")}
    )
    assert cluster.zones == {"a", "b"}
