"""What addresses and ports of a capture are in a dump, also where not all of them is visible."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from analyzer.inputs.recognised import Input, read_input
from netns_lab.arguments import parser
from netns_lab.decoding import Incomplete
from netns_lab.destinations import Destinations
from tests.support.captures import ROOT

APP, DNS, NODE = (
    ip_address(each).packed for each in ("10.96.18.52", "10.96.0.10", "192.168.10.11")
)


def read(dump: Path, *words: str) -> Input:
    options: Any = parser().parse_args(["run", str(dump), *words], SimpleNamespace())
    return read_input(options)


def named(found: Destinations, protocol: str | None, address: bytes, port: int | None) -> set[str]:
    part = Incomplete(protocol, (bytes(4), None), (address, port))
    return {each.name.text for each in found.services(part)}


def test_what_is_not_visible_of_a_destination_may_be_anything() -> None:
    found = Destinations(read(ROOT / "examples/dump.txt"))
    assert named(found, "tcp", APP, 80) == named(found, None, APP, None) == {"default/app"}
    assert named(found, "tcp", APP, 81) == named(found, "udp", APP, None) == set()
    assert named(found, "udp", DNS, None) == {"kube-system/kube-dns:dns"}
    assert len(named(found, None, DNS, None)) == len(named(found, None, DNS, 53)) == 3
    assert named(found, None, bytes(4), None) == set()


def test_where_the_node_is_not_known_a_node_port_may_be_at_any_address(captures: Path) -> None:
    dump = captures / "1.36.2-iptables-legacy/dual-stack/iptables-legacy-save.txt"
    known = Destinations(read(dump, "--node-ip", "192.168.10.11"))
    assert named(known, "tcp", NODE, 30301) == {"ds/nodeport"}
    assert "ds/nodeport" in named(known, "tcp", NODE, None)
    assert not known.may_be_node_port(None, None)
    loopback = ip_address("127.0.0.1").packed
    found = Destinations(read(dump))
    for each in (found, known):
        assert named(each, "tcp", loopback, 30301) == {"ds/nodeport"}
        assert "ds/nodeport" in named(each, None, loopback, 30301) & named(
            each, "tcp", loopback, None
        )
        assert named(each, "tcp", ip_address("::1").packed, None) == set()
        assert named(each, "tcp", loopback, 30300) == named(each, "udp", loopback, 30301) == set()
    assert named(found, "tcp", NODE, None) == set()
    for protocol, port in (("tcp", 30301), ("tcp", None), (None, 30301), (None, None)):
        assert found.may_be_node_port(protocol, port)
    assert not found.may_be_node_port("tcp", 30300)
    assert not found.may_be_node_port("sctp", None)
