"""The captured dumps, and what their objects say, read without the analyzer's readers."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Endpoint, View
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.probability import Dyadic
from tests.support.parsed_objects import parse_objects
from tests.support.reading import read_ruleset

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "captures"


def text_of(path: Path) -> str:
    """Return the text of a file, which may be packed."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def items_of(path: Path) -> list[Any]:
    """Return the API objects of a file."""
    items: list[Any] = json.loads(text_of(path))["items"]
    return items


@dataclass(frozen=True)
class Wanted:
    """A ServicePort of the objects: its name as kube-proxy hashes it is `raw`."""

    raw: str
    protocol: str
    address: Address
    port: int
    endpoints: frozenset[Endpoint]

    @property
    def name(self) -> str:
        return self.raw.removesuffix(":")


@dataclass(frozen=True)
class Capture:
    dump: Path

    def __str__(self) -> str:
        return f"{self.dump.parent.parent.name}/{self.dump.parent.name}"

    @property
    def version(self) -> tuple[int, int]:
        major, minor, *_ = self.dump.parent.parent.name.split(".")
        return int(major), int(minor)

    @property
    def objects(self) -> Path:
        (found,) = self.dump.parent.glob("objects.json*")
        return found

    @property
    def node(self) -> str:
        run = json.loads((self.dump.parent / "run.json").read_text())
        return str(run["node"])

    @property
    def cluster(self) -> Cluster:
        return parse_objects([(self.objects.name, self.objects.read_bytes())])

    @property
    def text(self) -> str:
        data = self.dump.read_bytes()
        return (gzip.decompress(data) if self.dump.suffix == ".gz" else data).decode()

    def view(self) -> View:
        cluster = self.cluster
        addresses = cluster.nodes[self.node].addresses
        ruleset = read_ruleset(self.dump.read_bytes(), self.dump.name)
        return Recogniser(ruleset, cluster, node=self.node, node_addresses=addresses).view()

    def items(self, kind: str) -> list[Any]:
        return [item for item in _items(self.objects) if item["kind"] == kind]

    def wanted(self) -> Iterator[Wanted]:
        """Give every ServicePort with a ClusterIP, endpoints that are not ready left out."""
        family = 6 if self.dump.name.startswith("ip6") else 4
        for service in self.items("Service"):
            meta, spec = service["metadata"], service["spec"]
            addresses = [ip_address(a) for a in spec["clusterIPs"] if a != "None"]
            for address in (a for a in addresses if a.version == family):
                for port in spec["ports"]:
                    yield Wanted(
                        self._raw(meta, port.get("name", "")),
                        port["protocol"].lower(),
                        address,
                        port["port"],
                        frozenset(self._endpoints(meta, port.get("name", ""), address.version)),
                    )

    def _raw(self, meta: Any, port: str) -> str:
        # Up to 1.18 kube-proxy put the colon there even where the port has no name.
        colon = ":" if port or self.version <= (1, 18) else ""
        return f"{meta['namespace']}/{meta['name']}{colon}{port}"

    def _endpoints(self, meta: Any, port: str, family: int) -> Iterator[Endpoint]:
        for each in self.items("EndpointSlice"):
            theirs = each["metadata"]
            of_service = theirs["labels"]["kubernetes.io/service-name"] == meta["name"]
            if not of_service or theirs["namespace"] != meta["namespace"]:
                continue
            numbers = [p["port"] for p in each["ports"] if p.get("name", "") == port]
            for endpoint in each["endpoints"]:
                for address in map(ip_address, endpoint["addresses"]):
                    ready = endpoint.get("conditions", {}).get("ready") is not False
                    if ready and address.version == family:
                        yield from (Endpoint(address, number) for number in numbers)


@functools.cache
def _items(objects: Path) -> list[Any]:
    data = objects.read_bytes()
    text = gzip.decompress(data) if objects.suffix == ".gz" else data
    items: list[Any] = json.loads(text)["items"]
    return items


def captures_in(root: Path, *cases: str) -> list[Capture]:
    """Return the plain iptables-save dumps of the captures whose case matches a pattern."""
    found = {
        dump
        for case in cases
        for directory in root.glob(f"*-iptables-*/{case}")
        for dump in directory.glob("ip*tables-*-save.txt*")
    }
    return [Capture(dump) for dump in sorted(found)]


@functools.cache
def expected_shares(version: tuple[int, int], number: int) -> tuple[Dyadic, ...]:
    """Return what the rules of `number` endpoints draw, in the order of their rules."""
    digits = 10 if version >= (1, 17) else 5
    # What is left is a number of 31 bits more behind each rule; fractions would be reduced anew.
    left, bits, shares = 1, 0, []
    for behind in range(number, 1, -1):
        printed = Fraction(f"{1 / behind:.{digits}f}")
        threshold = int(printed * 2**31 + Fraction(1, 2))
        bits += 31
        shares.append(Dyadic.of(left * threshold, bits))
        left *= 2**31 - threshold
    return (*shares, Dyadic.of(left, bits)) if number else ()
