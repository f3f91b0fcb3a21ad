"""Other nodes' rules in the kernel: what loaded them, and what they have counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from analyzer.model.addresses import Address
from netns_lab.backend import Backend, SocketAddress
from netns_lab.backends import BACKENDS, backend_of
from netns_lab.beyond import OtherNode
from netns_lab.namespace import Namespace
from netns_lab.topology import LabTopology


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedNode:
    """Another node whose rules are loaded.

    Attributes:
        addresses: in the lab, one of each IP version.
        backends: one for each of its rulesets.
    """

    node: OtherNode
    namespace: Namespace
    addresses: tuple[Address, ...]
    backends: tuple[Backend, ...]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    def address(self, version: int) -> Address:
        """Return its address of one IP version."""
        return next(each for each in self.addresses if each.version == version)


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
        yield LoadedNode(
            node=node,
            namespace=namespace,
            addresses=host.plan.addresses,
            backends=tuple(backends),
        )


def named(node: str, rule: str) -> str:
    """Return a rule's text with the node that has it."""
    return f"node {node}, {rule}"


def drawn_by(own: Backend, elsewhere: Sequence[LoadedNode]) -> Counter[SocketAddress]:
    """Return how many flows the rules of any node have sent to each endpoint since the last call.

    Endpoints are drawn where a flow comes first, and no other node translates it again.
    """
    if not elsewhere:
        return own.drawn()
    found = Counter(own.drawn())
    for each in (backend for node in elsewhere for backend in node.backends):
        found.update(each.drawn())
    return found


def endings_of(
    node: str, own: Iterable[Backend], elsewhere: Sequence[LoadedNode]
) -> Counter[str] | None:
    """Return the packet counts of rules that drop or reject, by the rules' text.

    If several nodes have rules, each is named with its node and table; `node` is the lab's own.
    None if some do not count.
    """
    found: Counter[str] = Counter()
    counted = [(node, each) for each in own]
    counted += [(other.name, each) for other in elsewhere for each in other.backends]
    for name, backend in counted:
        endings = backend.endings()
        if endings is None:
            return None
        for (table, rule), packets in endings.items():
            found[named(name, f"{table}: {rule}") if elsewhere else rule] += packets
    return found
