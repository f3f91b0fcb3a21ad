"""Groups of pods, nodes and their constraints, by index: the input of a `SchedulerState`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyzer.gate.templates import numbered
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.gate.nodes import SchedulingNode
    from analyzer.gate.workloads import Workload


@value
class Term:
    """A required term of (anti)affinity.

    Attributes:
        domains: the domain of each node by its topologyKey; -1: it has no such label.
        groups: whose pods its selector means.
    """

    domains: Sequence[int]
    groups: frozenset[int]


@value(kw_only=True)
class Spread:
    """A topologySpreadConstraint with ``DoNotSchedule``.

    Attributes:
        domains: the domain of each node; -1: it has no such label.
        counted: nodes whose domains and pods count, by the policies for nodes.
        groups: whose pods count.
        own: 1 where a pod of the group itself counts, else 0.
    """

    domains: Sequence[int]
    counted: Sequence[int]
    most: int
    least_domains: int
    groups: frozenset[int]
    own: int


@value(kw_only=True)
class Wishes:
    """Preferences of pods, which exclude no node.

    Attributes:
        nodes: for each node, the weights of preferred nodeAffinity that it matches.
        taints: for each node, how many taints of effect PreferNoSchedule are not tolerated.
        beside: preferred terms of (anti)affinity with their weights, negative for anti-affinity.
        spread: domains of the constraints with ScheduleAnyway, or of the scheduler's defaults, each
            with maxSkew and the groups whose pods count.
    """

    nodes: tuple[int, ...]
    taints: tuple[int, ...]
    beside: tuple[tuple[int, Term], ...]
    spread: tuple[tuple[Sequence[int], int, frozenset[int]], ...]


@value(kw_only=True)
class PodGroup:
    """Pods that are equivalent to the scheduler.

    Attributes:
        workload: their workload; None if they run already.
        number: how many are to be placed.
        nodes: those that may take one, whatever other pods there are.
        refused: for the other nodes, the reason, by name.
        requests: amounts by resource, as far as nodes report their resources.
        conflicting: groups that use a host port that these use, including this one if so.
        anti: required anti-affinity of its own.
        kept_from: anti-affinity of other groups that selects these pods.
        affine: groups whose pods match all terms of affinity; None if there are no terms.
        one_each: at most one on each node, as for a DaemonSet.
        fixed: how many are on nodes from the beginning, by node.
        stuck: why none of them is placed at all; None if they are.
    """

    name: str
    workload: Workload | None
    number: int
    nodes: tuple[int, ...]
    refused: Mapping[str, str]
    requests: Mapping[str, int]
    conflicting: frozenset[int]
    affinity: tuple[Term, ...]
    anti: tuple[Term, ...]
    kept_from: tuple[Term, ...]
    affine: frozenset[int] | None
    spread: tuple[Spread, ...]
    wishes: Wishes
    one_each: bool = False
    fixed: Mapping[int, int] = {}  # never changed: values are not
    stuck: str | None = None

    @property
    def asked(self) -> int:
        """How many pods there are: those to place, and those that run already."""
        return self.number + sum(self.fixed.values())

    @property
    def related(self) -> frozenset[int]:
        """Groups whose pods affect where these may be, other than by their requests."""
        found = set(self.conflicting) | set(self.affine or ())
        for term in (*self.anti, *self.kept_from):
            found |= term.groups
        for spread in self.spread:
            found |= spread.groups
        return frozenset(found)


@value(kw_only=True)
class Scale:
    """A workload that an autoscaler scales.

    Attributes:
        least: the number that its groups have to begin with.
        groups: of its pods, each with its place where it is one pod of a StatefulSet.
    """

    workload: Workload
    least: int
    most: int
    groups: Mapping[int, int | None]

    def numbers(self, replicas: int) -> Iterator[tuple[int, int]]:
        """Yield how many pods each of its groups has with `replicas` replicas."""
        apart = [each for each in self.groups.values() if each is not None]
        for g, place in self.groups.items():
            yield g, numbered(place, apart, replicas)


@value(kw_only=True)
class Problem:
    """Pods to place, and nodes to place them on.

    Attributes:
        scales: workloads with variable replica counts; groups have the least of them.
        room: allocatable amounts of each node, for the resources that are evaluated.
        classes: nodes that differ only in their names have the same number.
    """

    nodes: tuple[SchedulingNode, ...]
    groups: tuple[PodGroup, ...]
    room: tuple[Mapping[str, int], ...]
    classes: tuple[int, ...]
    scales: tuple[Scale, ...] = ()

    def scaled(self, replicas: Sequence[int]) -> Problem:
        """Return the same problem with other replica counts, in the order of `scales`."""
        groups = [*self.groups]
        for scale, told in zip(self.scales, replicas, strict=True):
            for g, number in scale.numbers(told):
                group = groups[g]
                # What names its node is there from the beginning.
                fixed = dict.fromkeys(group.fixed, number)
                groups[g] = replace(group, number=0 if fixed else number, fixed=fixed)
        return replace(self, groups=tuple(groups))

    @property
    def fullest(self) -> Problem:
        """The same problem with the most replicas of every scaled workload."""
        return self.scaled([each.most for each in self.scales])

    def replicas(
        self, counts: Sequence[Sequence[int]], left: Sequence[int]
    ) -> Iterator[tuple[Scale, int]]:
        """Yield the replica counts of scaled workloads at which this placement came about."""
        for scale in self.scales:
            number = sum(sum(counts[g]) + left[g] for g in scale.groups)
            if number >= scale.least:
                yield scale, number

    def zones(self) -> dict[str, list[int]]:
        """Return the nodes of each zone, by its name."""
        from analyzer.gate.nodes import ZONE

        found: dict[str, list[int]] = {}
        for at, node in enumerate(self.nodes):
            if zone := node.labels.get(ZONE):
                found.setdefault(zone, []).append(at)
        return found
