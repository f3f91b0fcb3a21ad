"""A captured ruleset as text, the node it was taken at, and its Services by the recognisers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_network
from itertools import islice
from pathlib import Path
from random import Random

from analyzer.kubeproxy.view import View
from analyzer.model.addresses import Address, Network
from analyzer.model.cluster import Cluster
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.base_chains import Rules
from tests.support.captures import FIXTURES
from tests.support.parsed_objects import parse_objects
from tests.support.reading import recogniser

#: Cases whose dumps are small enough for an interpreter that follows each draw.
_SMALL = ("two-node*", "seed-dns*", "dual-stack")
#: Cases that have everything that kube-proxy writes, and take long.
_LARGE = ("features*",)
_DUMPS = {"iptables-legacy-save.txt", "iptables-nft-save.txt", "nft-list-ruleset.txt"}
#: The length of the prefix of a node's podCIDR.
_LONGEST = 24
#: How often one of those is taken, if there are any.
_RATE = 0.05


@dataclass(frozen=True)
class Ground:
    """A dump of one family of IPv4, or of nft."""

    path: Path

    @property
    def is_nft(self) -> bool:
        return "nftables" in self.path.parent.parent.name

    @cached_property
    def text(self) -> str:
        data = self.path.read_bytes()
        return (gzip.decompress(data) if self.path.suffix == ".gz" else data).decode()

    @cached_property
    def node(self) -> str:
        return str(json.loads((self.path.parent / "run.json").read_text())["node"])

    @cached_property
    def cluster(self) -> Cluster:
        (objects,) = self.path.parent.glob("objects.json*")
        return parse_objects([(objects.name, objects.read_bytes())])

    @cached_property
    def own(self) -> tuple[Address, ...]:
        return tuple(a for a in self.cluster.nodes[self.node].addresses if a.version == 4)

    @cached_property
    def pods_here(self) -> tuple[Network, ...]:
        return tuple(n for n in self.cluster.nodes[self.node].pod_networks if n.version == 4)

    @cached_property
    def pods_elsewhere(self) -> tuple[Network, ...]:
        others = [node for name, node in self.cluster.nodes.items() if name != self.node]
        return tuple(n for node in others for n in node.pod_networks if n.version == 4)

    @cached_property
    def pods_of_none(self) -> tuple[Network, ...]:
        """Networks of pods, according to kube-proxy's flags, of nodes that the objects lack."""
        flags = json.loads((self.path.parent / "run.json").read_text()).get("flags", ())
        said = (each.partition("=")[2] for each in flags if each.startswith("--cluster-cidr="))
        whole = next((ip_network(each) for each in ",".join(said).split(",") if "." in each), None)
        if whole is None or whole.prefixlen > _LONGEST:
            return ()
        known = (*self.pods_here, *self.pods_elsewhere)
        parts = whole.subnets(new_prefix=_LONGEST)
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
    """The captures of one folder."""

    def __init__(self, root: Path = FIXTURES) -> None:
        self._small, self._large = (
            [
                Ground(path)
                for case in cases
                for folder in sorted(root.glob(f"*/{case}"))
                for path in sorted(folder.iterdir())
                if path.name.removesuffix(".gz") in _DUMPS
            ]
            for cases in (_SMALL, _LARGE)
        )

    def one(self, random: Random, *, nft: bool) -> Ground:
        """Return one of them, of nft or of iptables."""
        small, large = (
            [ground for ground in some if ground.is_nft is nft]
            for some in (self._small, self._large)
        )
        return random.choice(large if large and random.random() < _RATE else small)
