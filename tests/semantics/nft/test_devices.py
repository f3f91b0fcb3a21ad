"""Devices of pods in rules of nft: as in those of iptables, in sets and maps too."""

from __future__ import annotations

import pytest

from analyzer.kubeproxy.matched.devices import asked_devices, asks_where_from
from analyzer.model.devices import Side
from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import Packet
from analyzer.parsers import nft_text
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.devices import NodeDevices
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.situation import Situation
from tests.support.odds import bounds

RULESET = """\
table ip t {{
	set pods {{
		type ifname
		flags interval
		elements = {{ "cali*" }}
	}}
	chain c {{
		{rule}
	}}
}}
"""


@pytest.mark.parametrize(
    ("rule", "dropped", "used"),
    [
        ('iifname "virbr0" drop', (0, 0), True),
        ('iifname != "virbr0" drop', (1, 1), True),
        ('iifname "cali1" drop', (0, 0), False),
        ('iifname { "virbr0", "cali1" } drop', (0, 0), True),
        ('iifname vmap { "virbr0" : drop, "cali1" : drop }', (0, 0), True),
        ('iifname vmap { "cali1" : drop, "cali2" : drop }', (0, 0), False),
        ('iifname "eth0" drop', (0, 1), None),
    ],
)
def test_flows_from_outside_come_by_no_bridge_of_machines(
    rule: str, dropped: tuple[int, int], used: bool | None
) -> None:
    """That is an assumption of its own: an answer names it only if it depends on it."""
    ruleset = nft_text.parse(RULESET.format(rule=rule), "dump")
    (table,) = ruleset.tables.values()
    devices = NodeDevices(lambda: asked_devices([ruleset]))
    packet = Packet(protocol="tcp", comes_from=Side.OUTSIDE)
    for value in ("uplink", "unknown"):
        assumed = Assumed({"pod-interface": "usual", "outside-interface": value})
        situation = Situation(assumed=assumed, devices=devices)
        tree = NftTraversal(table, "ip", situation).tree("c", packet)
        found = bounds(tree, lambda leaf: leaf.outcome == Drop())
        is_known = used is False or (used is True and value == "uplink")
        assert found.is_exact is is_known
        if is_known:
            assert found.lower.as_fraction() == dropped[0]
        assert ("outside-interface" in assumed.used) is (used is True and value == "uplink")


@pytest.mark.parametrize(
    ("rule", "pod", "elsewhere"),
    [
        ('iifname "cali*" drop', (1, 1), (0, 0)),
        ('iifname != "cali*" drop', (0, 0), (1, 1)),
        ('iifname "docker0" drop', (0, 0), (0, 0)),
        ('iifname "eth0" drop', (0, 0), (0, 1)),
        ('iifname { "eth0", "cali*" } drop', (1, 1), (0, 1)),
        ("iifname @pods drop", (1, 1), (0, 0)),
        ('iifname vmap { "cali*" : drop, "docker0" : accept }', (1, 1), (0, 0)),
        ('iifname . ip protocol { "cali*" . tcp } drop', (1, 1), (0, 0)),
        ('iif "cali1" drop', (0, 1), (0, 0)),
    ],
)
def test_a_rule_for_devices_is_decided_by_whose_flow_it_is(
    rule: str, pod: tuple[int, int], elsewhere: tuple[int, int]
) -> None:
    ruleset = nft_text.parse(RULESET.format(rule=rule), "dump")
    (table,) = ruleset.tables.values()
    named = asked_devices([ruleset])
    assert named & {"cali+", "cali1"}
    assert asks_where_from([ruleset])
    for side, want in ((Side.POD, pod), (Side.ELSEWHERE, elsewhere)):
        assumed = Assumed({"pod-interface": "usual"})
        situation = Situation(assumed=assumed, devices=NodeDevices(lambda: named))
        tree = NftTraversal(table, "ip", situation).tree(
            "c", Packet(protocol="tcp", comes_from=side)
        )
        found = bounds(tree, lambda leaf: leaf.outcome == Drop())
        assert found.lower.as_fraction() == want[0]
        assert found.upper.as_fraction() == want[1]
        assert assumed.used == ({"pod-interface"} if want[0] == want[1] else set())
