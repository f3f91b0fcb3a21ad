from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster, Node, Owners, Placement
from analyzer.model.value import replace

ADDRESS = IPv4Address("10.1.0.1")


def test_an_address_of_which_nothing_is_known_has_no_place() -> None:
    assert Cluster().placement(ADDRESS) == Placement(None, None)


def test_zones_are_those_of_nodes_and_of_endpoints() -> None:
    cluster = Cluster(
        {"n1": Node(name="n1", zone="a"), "n2": Node(name="n2")}, {ADDRESS: Placement("n3", "b")}
    )
    assert cluster.zones == {"a", "b"}


def owned(*networks: tuple[str, str]) -> Owners:
    return Owners.of((ip_network(network), name) for network, name in networks)


def test_the_narrowest_network_owns_an_address() -> None:
    owners = owned(("10.0.0.0/8", "wide"), ("10.1.0.0/24", "narrow"), ("fd00::/64", "six"))
    assert owners.owner(ADDRESS) == "narrow"
    assert owners.owner(IPv4Address("10.2.0.1")) == "wide"
    assert owners.owner(IPv6Address("fd00::1")) == "six"
    assert owners.owner(IPv4Address("192.0.2.1")) is None


def test_a_network_of_two_nodes_is_nobodys() -> None:
    twice = owned(("10.1.0.0/24", "n1"), ("10.1.0.0/24", "n2"), ("10.1.0.0/24", "n1"))
    assert twice.owner(ADDRESS) is None
    assert owned(("10.1.0.0/24", "n1"), ("10.1.0.0/24", "n1")).owner(ADDRESS) == "n1"


def test_objects_go_before_networks_and_these_before_pod_cidrs() -> None:
    by_cidr = Cluster({"n1": Node(name="n1", zone="a")}, pod_networks=owned(("10.1.0.0/24", "n1")))
    assert by_cidr.placement(ADDRESS) == Placement("n1", "a")
    assert by_cidr.is_placed_by_pod_network(ADDRESS)
    said = by_cidr.with_networks([(ip_network("10.1.0.0/16"), "n2")])
    assert said.placement(ADDRESS) == Placement("n2", None)
    assert not said.is_placed_by_pod_network(ADDRESS)
    known = replace(said, placements={ADDRESS: Placement("n3", "c")})
    assert known.placement(ADDRESS) == Placement("n3", "c")
    assert not known.is_placed_by_pod_network(ADDRESS)


def test_a_zone_that_an_endpoint_tells_stays_with_a_node_that_a_network_tells() -> None:
    cluster = Cluster(
        placements={ADDRESS: Placement(None, "b")}, networks=owned(("10.1.0.0/24", "n"))
    )
    assert cluster.placement(ADDRESS) == Placement("n", "b")


def test_the_zone_of_a_node_is_its_own_or_that_of_all_its_endpoints() -> None:
    places: dict[Address, Placement] = {
        ADDRESS: Placement("n1", "a"),
        IPv4Address("10.1.0.2"): Placement("n2", "b"),
        IPv4Address("10.1.0.3"): Placement("n3", "b"),
        IPv4Address("10.1.0.4"): Placement("n3", "c"),
    }
    cluster = Cluster({"n1": Node(name="n1", zone="own")}, places)
    assert [cluster.zone_of(name) for name in ("n1", "n2", "n3", "n4")] == ["own", "b", None, None]
    assert cluster.node_names == {"n1", "n2", "n3"}
