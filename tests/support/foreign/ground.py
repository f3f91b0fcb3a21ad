"""A captured ruleset as text, the node it was taken at, and its Services by the recognisers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_network
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.view import View
from analyzer.model.addresses import IPV4, IPV6, Address, Network
from analyzer.model.cluster import Cluster
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.base_chains import Rules
from tests.support.captures import FIXTURES
from tests.support.clusters import GeneratedCluster
from tests.support.parsed_objects import parse_objects
from tests.support.reading import recogniser

#: Cases whose dumps are small enough for an interpreter that follows each draw.
_SMALL = ("two-node*", "seed-dns*", "dual-stack")
#: Cases that have everything that kube-proxy writes, and take long.
_LARGE = ("features*",)
#: The length of the prefix of a node's podCIDR, by IP version.
_LONGEST = {4: 24, 6: 64}
_DUMPS = {
    "iptables-legacy-save.txt": (4,),
    "iptables-nft-save.txt": (4,),
    "ip6tables-legacy-save.txt": (6,),
    "nft-list-ruleset.txt": (4, 6),
}
#: Cases that have Services of both IP versions, with dumps of iptables.
_DUAL = FIXTURES.parent / "check"
#: Layouts of which rules are generated for these cases.
_LAYOUTS = (RulesLayout.V1_20, RulesLayout.V1_25, RulesLayout.V1_30, RulesLayout.V1_36)
#: How often one of those is taken, if there are any.
_RATE = 0.05


@dataclass(frozen=True)
class Ground:
    """A dump of iptables, or of nft as far as one IP version goes.

    With `generated`, its rules are those that this layout has for the objects, of nft or not.
    """

    path: Path
    version: int = 4
    generated: tuple[RulesLayout, bool] | None = None

    @property
    def is_nft(self) -> bool:
        if self.generated is not None:
            return self.generated[1]
        return "nftables" in self.path.parent.parent.name

    @property
    def has_services(self) -> bool:
        """Whether there are Services of its IP version."""
        return any(each.version == self.version for each in self.view(self.text).services)

    @cached_property
    def text(self) -> str:
        if self.generated is not None:
            return self._generated(*self.generated)
        data = self.path.read_bytes()
        return (gzip.decompress(data) if self.path.suffix == ".gz" else data).decode()

    def _generated(self, layout: RulesLayout, nft: bool) -> str:
        cluster = GeneratedCluster(self._items, self._flags, layout, self.version, self.node)
        return cluster.nft if nft else cluster.dump

    @property
    def _items(self) -> list[Any]:
        found: list[Any] = json.loads((self.path.parent / "objects.json").read_text())["items"]
        return found

    @property
    def _flags(self) -> tuple[str, ...]:
        return tuple(self._run["flags"])

    @cached_property
    def _run(self) -> Any:
        return json.loads((self.path.parent / "run.json").read_text())

    @cached_property
    def node(self) -> str:
        return str(self._run["node"])

    @cached_property
    def cluster(self) -> Cluster:
        (objects,) = self.path.parent.glob("objects.json*")
        return parse_objects([(objects.name, objects.read_bytes())])

    @cached_property
    def own(self) -> tuple[Address, ...]:
        return tuple(
            a for a in self.cluster.nodes[self.node].addresses if a.version == self.version
        )

    @cached_property
    def pods_here(self) -> tuple[Network, ...]:
        return tuple(
            n for n in self.cluster.nodes[self.node].pod_networks if n.version == self.version
        )

    @cached_property
    def pods_elsewhere(self) -> tuple[Network, ...]:
        others = [node for name, node in self.cluster.nodes.items() if name != self.node]
        return tuple(n for node in others for n in node.pod_networks if n.version == self.version)

    @cached_property
    def pods_of_none(self) -> tuple[Network, ...]:
        """Networks of pods, according to kube-proxy's flags, of nodes that the objects lack."""
        flags = self._run.get("flags", ())
        said = ",".join(f.partition("=")[2] for f in flags if f.startswith("--cluster-cidr="))
        every = [ip_network(each) for each in said.split(",") if each]
        whole = next((each for each in every if each.version == self.version), None)
        longest = _LONGEST[self.version]
        if whole is None or whole.prefixlen > longest:
            return ()
        known = (*self.pods_here, *self.pods_elsewhere)
        parts = whole.subnets(new_prefix=longest)
        return tuple(islice((n for n in parts if not any(map(n.overlaps, known))), 2))

    def view(self, text: str, others: Sequence[str] = (), *, plainly: bool = True) -> View:
        """Return the Services of a text, `others` being the texts of rules beside it."""
        ruleset = rules_of(text)
        beside = [rules_of(other) for other in others]
        return recogniser(
            ruleset,
            self.cluster,
            node=self.node,
            node_addresses=self.own,
            others=beside,
            plainly=plainly,
        ).view()


def rules_of(text: str) -> Rules:
    """Return the rules of a dump of any kind."""
    return read_ruleset(text.encode(), "dump")


class Grounds:
    """The captures of one folder, and those of clusters with both IP versions."""

    def __init__(self, root: Path = FIXTURES) -> None:
        self._small = [*_found(root, _SMALL), *_found(_DUAL, _SMALL), *_rendered()]
        self._large = [*_found(root, _LARGE)]

    def one(self, random: Random, *, nft: bool, versions: Sequence[int] = (IPV4, IPV6)) -> Ground:
        """Return one of them, of nft or of iptables, and as often of each IP version."""
        version = random.choice(versions)
        small, large = (
            [each for each in some if each.is_nft is nft and each.version == version]
            for some in (self._small, self._large)
        )
        return random.choice(large if large and random.random() < _RATE else small)


def _found(root: Path, cases: Sequence[str]) -> Iterator[Ground]:
    for case in cases:
        for folder in sorted(root.glob(f"*/{case}")):
            for path in sorted(folder.iterdir()):
                for version in _DUMPS.get(path.name.removesuffix(".gz"), ()):
                    ground = Ground(path, version)
                    if version == IPV4 or ground.has_services:
                        yield ground


def _rendered() -> Iterator[Ground]:
    for path in sorted(_DUAL.glob("*/dual-stack/ip6tables-legacy-save.txt")):
        for version in (IPV4, IPV6):
            for layout in _LAYOUTS:
                yield Ground(path, version, (layout, False))
                if layout.minor >= RulesLayout.V1_30.minor:
                    yield Ground(path, version, (layout, True))
