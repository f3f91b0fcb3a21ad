"""What counts as translated: a packet that is redirected to where it went is not."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.model.addresses import Address
from analyzer.model.iptables.options import Range
from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.translation import redirected
from analyzer.semantics.tree import Delivered
from tests.support.odds import bounds
from tests.support.reading import read_ruleset

NODE, SERVICE = ip_address("172.16.0.1"), ip_address("10.2.3.4")
FALSE, UNKNOWN, TRUE = Ternary


@pytest.mark.parametrize(
    ("ports", "local", "wanted"),
    [
        (None, FALSE, True),
        (None, TRUE, None),
        (None, UNKNOWN, None),
        (Range(53, 53), TRUE, True),
        (Range(53, 53), UNKNOWN, True),
        (Range(80, 80), FALSE, True),
        (Range(80, 80), TRUE, None),
        (Range(53, 90), TRUE, None),
        (Range(81, 90), TRUE, True),
    ],
)
def test_a_packet_that_is_redirected(
    ports: Range | None, local: Ternary, wanted: bool | None
) -> None:
    packet = Packet(protocol="tcp", destination=NODE, destination_port=80)
    behind = redirected(packet, ports, local)
    assert behind.translated is wanted
    assert behind.to_node
    assert behind.destination is None
    assert redirected(Packet(translated=True), ports, local).translated
    if ports is not None:
        assert redirected(Packet(), ports, TRUE).translated is None


DUMP = (
    "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j REDIRECT\nCOMMIT\n"
    "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m conntrack --ctstate DNAT -j DROP\nCOMMIT\n"
)


@pytest.mark.parametrize(
    ("destination", "least", "most"), [(SERVICE, ALWAYS, ALWAYS), (NODE, NEVER, ALWAYS)]
)
def test_rules_may_take_it_for_translated_or_not(
    destination: Address, least: Dyadic, most: Dyadic
) -> None:
    hooks = Hooks(
        [read_ruleset(DUMP.encode(), "dump")], "ip", Situation(local_addresses=frozenset({NODE}))
    )
    packet = Packet(
        protocol="tcp",
        destination=destination,
        destination_port=80,
        in_interface="eth0",
    )
    tree = hooks.way(packet)
    assert bounds(tree, lambda leaf: isinstance(leaf.outcome, Drop)) == Bounds(least, most)
    here = bounds(tree, lambda leaf: leaf.outcome == Delivered(here=True))
    assert here == Bounds(~most, ~least)
