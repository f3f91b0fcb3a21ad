"""Client addresses that rules cannot tell from the sources of a route."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import Source, View
from analyzer.model.cluster import Cluster
from netns_lab.sources import ClientAddresses, Sending


def test_many_kinds_of_clients_outside_find_room() -> None:
    """Affinity takes a hundred addresses for each: more than one network of documentation has."""
    addresses = ClientAddresses(
        View(services=(), mode=ProxyMode.IPTABLES, node=None), Cluster(), (), 1
    )
    apart = [ip_network(f"10.{at}.0.0/16") for at in range(4)]
    kinds = [Sending(Source.EXTERNAL, 4, None, frozenset(apart[:at])) for at in range(5)]
    found = [addresses.of(each, 100) for each in kinds]
    assert [len(each) for each in found] == [100] * 5
    assert len({address for each in found for address in each}) == 500


def test_clients_have_no_address_from_which_the_kernel_takes_no_packet() -> None:
    """Half of all addresses end with loopback; a large part of a network may stand apart."""
    addresses = ClientAddresses(
        View(services=(), mode=ProxyMode.IPTABLES, node=None), Cluster(), (), 1
    )
    half, wide = ip_network("0.0.0.0/1"), ip_network("10.0.0.0/8")
    assert addresses.of(Sending(Source.EXTERNAL, 4, half)) == (ip_address("126.255.255.255"),)
    upper = frozenset({ip_network("10.128.0.0/9")})
    assert addresses.of(Sending(Source.EXTERNAL, 4, wide, upper)) == (ip_address("10.127.255.255"),)
    loopback = Sending(Source.EXTERNAL, 4, ip_network("127.0.0.0/8"))
    assert addresses.of(loopback) == ()
