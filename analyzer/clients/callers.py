"""The client pods: one on a dead node is dead too, and opens no connections."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from analyzer.clients.walk import FractionRange
from analyzer.failure.models import Dead
from analyzer.model.cluster import Cluster
from analyzer.model.value import value


@value(kw_only=True)
class Callers:
    """Client pods by name, each with its node.

    Attributes:
        dead: those that die with their node.
        unplaced: those whose node is not known, so that they may be dead.
    """

    living: Mapping[str, str | None]
    dead: Mapping[str, str | None]
    unplaced: tuple[str, ...]

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.living) + len(self.dead) + len(self.unplaced)

    def without_answer(self, fails: FractionRange) -> FractionRange:
        """Return the share of client pods without an answer: those dead, and those that fail."""
        dead, unplaced, number = len(self.dead), len(self.unplaced), self.number
        least, most = fails
        return (
            Fraction(dead + (number - dead) * least, number),
            Fraction(dead + unplaced + (number - dead - unplaced) * most, number),
        )


def callers(pods: Mapping[str, str | None], dead: Dead, cluster: Cluster) -> Callers:
    """Return which of these pods, given with their nodes, are alive.

    A pod without a node does not run: it counts among the unplaced.
    """
    living: dict[str, str | None] = {}
    dying: dict[str, str | None] = {}
    unplaced = []
    kills_nodes = bool(dead.nodes or dead.zones)
    for pod, node in pods.items():
        if node is None and kills_nodes:
            unplaced.append(pod)
        elif dead.takes(node, cluster):
            dying[pod] = node
        else:
            living[pod] = node
    return Callers(living=living, dead=dying, unplaced=tuple(unplaced))
