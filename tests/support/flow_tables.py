"""Packet-flow tables: a ruleset, and lines of source, destination, protocol and expected end.

A file of tests/flows begins with what is read::

    rules    PATH       as `kubeodds trace` takes it; or `rules` alone, and they stand at the end,
                        behind a line `---`
    objects  PATH       optional
    node     NAME       whose addresses the objects tell
    node-ip  ADDRESS    instead of objects and node

Each further line is a new flow. Its source is an address, or ``node``; its end is ``reject``,
``drop``, ``local`` (the node itself), ``forwarded unchanged``, ``forwarded masqueraded`` (no
Service, but another source address), or endpoints, each with its share where it is not all, and
with ``masqueraded`` where its source address becomes the node's::

    10.244.0.99  10.96.0.10:53  udp  1/2 10.244.0.3:53, 1/2 10.244.1.4:53 masqueraded
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.model.addresses import Address, address_and_port_from_text
from analyzer.model.cluster import Cluster
from analyzer.model.packet import Packet
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.fate import PacketEnd
from tests.support.parsed_objects import parse_objects

ROOT: Final = Path(__file__).parents[2]
#: Shares as kube-proxy writes them, with ten digits, are within this of one of n.
_CLOSE: Final = Fraction(1, 1 << 30)


@dataclass(frozen=True)
class Flow:
    """One line of a table: a flow and where it ends; a share for each way to end."""

    line: int
    source: str
    destination: str
    protocol: str
    ends: tuple[tuple[str, Fraction], ...]

    def __str__(self) -> str:
        return f"{self.line}: {self.source} to {self.destination} {self.protocol}"


@dataclass(frozen=True)
class FlowTable:
    """A ruleset and what becomes of flows there."""

    rules: Rules
    addresses: tuple[Address, ...]
    flows: tuple[Flow, ...]

    def ends(self, flow: Flow) -> dict[str, Fraction]:
        """What becomes of a flow, with the share of each end; all of them are exact."""
        to = address_and_port_from_text(flow.destination)
        assert to is not None, flow
        address, port = to
        from_node = flow.source == "node"
        source = self._node(address.version) if from_node else ip_address(flow.source)
        packet = Packet(
            protocol=flow.protocol,
            source=source,
            source_port=40_000,
            destination=address,
            destination_port=port,
            in_interface="" if from_node else "eth0",
        )
        question = Question(packet=packet, addresses=self.addresses)
        found = trace([self.rules], question, "ip" if address.version == 4 else "ip6").ends
        assert all(end.probability.is_exact for end in found), flow
        return {_said(end): end.probability.lower.as_fraction() for end in found}

    def _node(self, version: int) -> Address:
        return next(each for each in self.addresses if each.version == version)


def alike(found: dict[str, Fraction], wanted: tuple[tuple[str, Fraction], ...]) -> bool:
    """Whether the ends are those that are wanted, each as often."""
    return found.keys() == {end for end, _ in wanted} and all(
        abs(found[end] - share) <= _CLOSE for end, share in wanted
    )


def _said(end: PacketEnd) -> str:
    fate = end.fate
    if fate.kind == "no-service":
        return "forwarded masqueraded" if end.masquerade else "forwarded unchanged"
    if fate.kind != "endpoint":
        return fate.kind
    host = f"[{fate.address}]" if fate.address is not None and fate.address.version > 4 else ""
    masked = " masqueraded" if end.masquerade else ""
    assert end.masquerade is not None, end
    return f"{host or fate.address}:{fate.port}{masked}"


def read_table(path: Path) -> FlowTable:
    """Read a file of flows.

    Raises:
        ValueError: a line is no flow.
    """
    head, _, inline = path.read_text(encoding="utf-8").partition("\n---\n")
    given: dict[str, str] = {}
    flows: list[Flow] = []
    for number, line in enumerate(head.splitlines(), 1):
        words = line.split(None, 3)
        if not words or words[0].startswith("#"):
            continue
        if words[0] in {"rules", "objects", "node-ip"} or (words[0] == "node" and len(words) < 3):
            given[words[0]] = words[1] if len(words) > 1 else ""
        elif len(words) == 4:
            source, destination, protocol, ends = words
            flows.append(Flow(number, source, destination, protocol, tuple(_ends(ends))))
        else:
            raise ValueError(f"{path.name}:{number}: expected source, destination, protocol, end")
    data = (ROOT / given["rules"]).read_bytes() if given["rules"] else inline.encode()
    rules = read_ruleset(data, given["rules"] or path.name)
    return FlowTable(rules, _addresses(given), tuple(flows))


def _addresses(given: dict[str, str]) -> tuple[Address, ...]:
    if "node-ip" in given:
        return (ip_address(given["node-ip"]),)
    data = (ROOT / given["objects"]).read_bytes()
    cluster: Cluster = parse_objects([(given["objects"], data)])
    return tuple(cluster.nodes[given["node"]].addresses)


def _ends(text: str) -> Iterator[tuple[str, Fraction]]:
    parts = text.strip().split(", ")
    for part in parts:
        found = re.fullmatch(r"(?:(\d+/\d+) )?(.+)", part)
        assert found is not None, text
        assert found[1] or len(parts) == 1, text
        yield found[2], Fraction(found[1] or 1)
