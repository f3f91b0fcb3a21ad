"""A client's flows end as a packet from its address does, whatever other programs' rules drop."""

from __future__ import annotations

import json
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer import cli
from analyzer.arguments.command_line import parse
from analyzer.clients.responses import FlowResponse
from analyzer.clients.world import EntryNode, World
from analyzer.failure.models import Dead
from analyzer.inputs.recognised import read_input
from analyzer.inputs.source_kind import client_source
from tests.support.commands import DUMP, OBJECTS
from tests.support.effort import examples

_ENDPOINTS: Final = ("10.244.0.3", "10.244.1.4", "10.244.0.7", "10.244.1.9")
_NODES: Final = ("192.168.0.10", "192.168.0.11")
_CLIENTS: Final = (*_ENDPOINTS, "10.244.1.77", "10.244.0.50", *_NODES, "203.0.113.9")
_SERVICES: Final = {"kube-system/kube-dns:dns": "10.96.0.10:53", "default/app": "10.96.18.52:80"}


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Return a rule on flows of a client, to an endpoint, or on answers."""
    protocol, port = draw(st.sampled_from([("udp", 53), ("tcp", 8080)]))
    sides = draw(st.sampled_from([("-s", "-d", "--dport"), ("-d", "-s", "--sport")]))
    matches = [draw(st.sampled_from(["FORWARD", "INPUT", "OUTPUT"]))]
    if draw(st.booleans()):
        matches.append(f"{sides[0]} {draw(st.sampled_from(_CLIENTS))}/32")
    if draw(st.booleans()):
        matches.append(f"{sides[1]} {draw(st.sampled_from(_ENDPOINTS))}/32")
    matches.append(f"-p {protocol} -m {protocol} {sides[2]} {port}")
    if draw(st.booleans()):
        matches.append("-m statistic --mode random --probability 0.25000000000")
    return f"-A {' '.join(matches)} -j {draw(st.sampled_from(['DROP', 'REJECT']))}"


def edited(folder: Path, rule: str) -> str:
    text = Path(DUMP).read_text().replace("-A FORWARD ", f"{rule}\n-A FORWARD ", 1)
    path = folder / "dump.txt"
    path.write_text(text)
    return str(path)


def traced(folder: Path, dump: str, client: str, service: str) -> tuple[float, float]:
    """Return the chance that a packet of a client gets no answer, as `trace` has it."""
    protocol = "udp" if "dns" in service else "tcp"
    words = ["trace", dump, "--from", client, "--to", _SERVICES[service], "--protocol", protocol]
    given_ = [*words, *OBJECTS, "--node", "worker1", "-o", "json"]
    assert cli.main([*given_, "--output", str(folder / "trace.json")]) == 0
    ends = json.loads((folder / "trace.json").read_text())["outcomes"]
    reached = [each for each in ends if each["outcome"] == "endpoint"]
    return 1 - sum(each["upper"] for each in reached), 1 - sum(each["lower"] for each in reached)


@examples(8, 300)
@given(rules(), st.sampled_from(_CLIENTS), st.sampled_from([*_SERVICES]))
def test_a_client_is_answered_as_its_packet_is(rule: str, client: str, service: str) -> None:
    with TemporaryDirectory() as folder:
        dump = edited(Path(folder), rule)
        found = read_input(parse(["client", dump, *OBJECTS, "--node", "worker1"]))
        source, address = client_source(ip_address(client), found, balanced=False)
        world = World(
            entries=(EntryNode(node="worker1", chance=Fraction(1), view=found.view),),
            dead=Dead(endpoints=frozenset()),
            fate_of=lambda _: FlowResponse.SILENT,
            source=source,
            client=address,
        )
        (one,) = [each for each in world.services() if each.name.text == service]
        least, most = traced(Path(folder), dump, client, service)
        lower, upper = world.target(one).lot.fails
        assert float(upper) == pytest.approx(most)
        # What is dropped conntrack does not keep, so that a packet sent again may be answered.
        assert float(lower) <= least + 1e-9
