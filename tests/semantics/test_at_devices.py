"""Chains at devices: which packets pass one of their devices, and what they do to them."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import Source
from analyzer.model.devices import Side
from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.ternary import Ternary
from analyzer.parsers import nft_text
from analyzer.semantics.assumed import POD_INTERFACE, Assumed
from analyzer.semantics.at_devices import passes_any
from analyzer.semantics.devices import NodeDevices
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import PolicyDrop
from tests.support.defects import text_of
from tests.support.odds import bounds
from tests.support.parsed_objects import parse_objects
from tests.support.reading import nft_ruleset

CLIENT, POD, NODE = map(ip_address, ("203.0.113.9", "10.1.0.1", "172.16.0.1"))
NEVER_DROPPED, ALWAYS_DROPPED = Bounds(NEVER, NEVER), Bounds(ALWAYS, ALWAYS)
MAY_BE = Bounds(NEVER, ALWAYS)
PODS = {POD_INTERFACE: "cali+"}


def situation(values: dict[str, str] | None = None) -> Situation:
    return Situation(
        local_addresses=frozenset({NODE}),
        assumed=Assumed(PODS if values is None else values),
        devices=NodeDevices(lambda: frozenset({"eth0", "cali+"})),
    )


@pytest.mark.parametrize(
    ("devices", "packet", "passes"),
    [
        (("eth0",), Packet(in_interface="eth0"), Ternary.TRUE),
        (("lo", "eth*"), Packet(in_interface="eth1"), Ternary.TRUE),
        # A bridge, a bond or a VLAN has devices below it.
        (("eth0",), Packet(in_interface="bond0"), Ternary.UNKNOWN),
        (("eth0",), Packet(in_interface="lo"), Ternary.FALSE),
        (("lo",), Packet(in_interface="eth0"), Ternary.FALSE),
        (("eth0",), Packet(in_interface=NO_DEVICE), Ternary.FALSE),
        (("eth0",), Packet(), Ternary.UNKNOWN),
        ((), Packet(in_interface="eth0"), Ternary.UNKNOWN),
        (("eth0",), Packet(comes_from=Side.POD), Ternary.FALSE),
        (("eth0", "cali1"), Packet(comes_from=Side.POD), Ternary.UNKNOWN),
        # Ports of a bridge to which pods may be attached.
        (("veth1",), Packet(comes_from=Side.POD), Ternary.UNKNOWN),
        (("eth0",), Packet(comes_from=Side.OUTSIDE), Ternary.UNKNOWN),
        (("cali1",), Packet(comes_from=Side.OUTSIDE), Ternary.FALSE),
    ],
)
def test_which_packets_come_in_by_a_device(
    devices: tuple[str, ...], packet: Packet, passes: Ternary
) -> None:
    assert passes_any(devices, packet, situation(), comes=True) is passes


def test_what_the_side_tells_rests_on_the_assumption_about_pods() -> None:
    for side, is_used in ((Side.POD, True), (None, False)):
        given = situation()
        passes_any(("eth0",), Packet(comes_from=side), given, comes=True)
        assert given.assumed is not None
        assert bool(given.assumed.used) is is_used


LISTED = """\
table netdev f {
	chain in {
		type filter hook ingress device "eth0" priority 10; policy accept;
		%s
	}
	chain out {
		type filter hook egress device "eth1" priority -500; policy accept;
		%s
	}
}
table inet g {
	chain in {
		type filter hook ingress devices = { "eth0", "eth2" } priority 0; policy %s;
	}
	chain raw {
		type filter hook prerouting priority -300; policy accept;
		meta mark set 0x7
	}
}
table ip nat {
	chain post {
		type nat hook postrouting priority 100; policy accept;
		snat to 192.0.2.1
	}
}
"""


def dropped(text: str, packet: Packet) -> Bounds:
    found = Hooks([nft_text.parse(text, "dump")], "ip", situation({}))
    return bounds(found.way(packet), lambda leaf: isinstance(leaf.outcome, Drop | PolicyDrop))


@pytest.mark.parametrize(
    ("ingress", "egress", "policy", "device", "wanted"),
    [
        ("ip saddr 203.0.113.9 drop", "accept", "accept", "eth0", ALWAYS_DROPPED),
        ("ip saddr 203.0.113.9 drop", "accept", "accept", "lo", NEVER_DROPPED),
        ("ip saddr 203.0.113.9 drop", "accept", "accept", None, MAY_BE),
        ("ip saddr 203.0.113.8 drop", "accept", "accept", None, NEVER_DROPPED),
        ("ip6 saddr fd00::1 drop", "accept", "accept", "eth0", NEVER_DROPPED),
        # Before any rule of IP, whatever the priorities: no mark is set yet.
        ("meta mark 0x7 drop", "accept", "accept", "eth0", NEVER_DROPPED),
        ("accept", "accept", "drop", "eth0", ALWAYS_DROPPED),
        ("accept", "accept", "drop", "eth2", ALWAYS_DROPPED),
        # After all of them: another source, and the mark.
        ("accept", "ip saddr 203.0.113.9 drop", "accept", "eth0", NEVER_DROPPED),
        ("accept", "ip saddr 192.0.2.1 drop", "accept", "eth0", MAY_BE),
        ("accept", "meta mark 0x7 drop", "accept", "eth0", MAY_BE),
        ("accept", "meta mark 0x6 drop", "accept", "eth0", NEVER_DROPPED),
    ],
)
def test_chains_at_devices_come_before_and_after_those_of_ip(
    ingress: str, egress: str, policy: str, device: str | None, wanted: Bounds
) -> None:
    text = LISTED % (ingress, egress, policy)
    packet = Packet(protocol="tcp", source=CLIENT, destination=POD, in_interface=device)
    assert dropped(text, packet) == wanted


@pytest.mark.parametrize("plainly", [True, False])
def test_which_device_a_flow_leaves_by_is_told_of_each_endpoint(*, plainly: bool) -> None:
    """Of many destinations at once it was not known, so that each might have been dropped."""
    objects = text_of("egress-by-destination.json").encode()
    view = NftRecogniser(
        nft_ruleset(text_of("egress-by-destination.nft")),
        parse_objects([("objects.json", objects)]),
        node="node-2",
        node_addresses=(ip_address("192.168.0.12"),),
        plainly=plainly,
    ).view()
    routes = [each for service in view.services for each in service.routes_from(Source.NODE)]
    lost = {str(s.endpoint.address) for route in routes for s in route.shares if s.lost}
    assert lost == {"10.244.2.7", "10.244.2.10"}  # the pods of this node
