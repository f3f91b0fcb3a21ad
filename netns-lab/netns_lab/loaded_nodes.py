"""Other nodes' rules in the kernel: what loaded them, and what they have counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netns_lab.backend import Backend
from netns_lab.backends import BACKENDS, backend_of
from netns_lab.beyond import OtherNode
from netns_lab.namespace import Namespace
from netns_lab.topology import LabTopology


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedNode:
    """Another node whose rules are loaded.

    Attributes:
        backends: one for each of its rulesets.
    """

    node: OtherNode
    namespace: Namespace
    backends: tuple[Backend, ...]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    def named(self, rule: str) -> str:
        """Return a rule's text with the node that has it."""
        return f"node {self.name}, {rule}"


def load_nodes(
    topology: LabTopology, nodes: Iterable[OtherNode], *, lenient: bool
) -> Iterator[LoadedNode]:
    """Load the rules of other nodes that have pods in the lab.

    Raises:
        LabError: the rules of one cannot be loaded.
    """
    by_name = {each.name: each for each in nodes}
    for host in topology.others:
        if host.gate is None or host.plan is None:
            continue
        node, namespace = by_name[host.plan.name], host.gate.namespace
        backends = [
            BACKENDS[backend_of(ruleset)](namespace, ruleset, lenient=lenient)
            for ruleset in node.rulesets
        ]
        yield LoadedNode(node=node, namespace=namespace, backends=tuple(backends))


def endings_of(own: Iterable[Backend], elsewhere: Iterable[LoadedNode]) -> Counter[str] | None:
    """Return the packet counts of rules that drop or reject, by the rules' text.

    Those of other nodes are named with their node and table. None if some do not count.
    """
    found: Counter[str] = Counter()
    counted: list[tuple[LoadedNode | None, Backend]] = [(None, each) for each in own]
    counted += [(node, each) for node in elsewhere for each in node.backends]
    for node, backend in counted:
        endings = backend.endings()
        if endings is None:
            return None
        for (table, rule), packets in endings.items():
            found[rule if node is None else node.named(f"{table}: {rule}")] += packets
    return found
