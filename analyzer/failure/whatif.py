"""What each failure would cost: every node, every zone, the control plane, sets of nodes.

Numbers are those of `loss` with the same nodes or zones dead. Endpoints whose node is not known may
be on any node, so what they carry widens every loss, as it does there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from analyzer.errors import UsageError, suggestion
from analyzer.failure.costs import Cost, cost, singles
from analyzer.failure.incidence import UNPLACED, Incidence, RouteRow, rank
from analyzer.failure.most_silenced import MostSilenced, most_silenced
from analyzer.failure.pairs import worst_pairs
from analyzer.failure.places import incidences
from analyzer.failure.sets import sets_to_look_at
from analyzer.failure.smallest import Survival, rows_that_count, survival, survives
from analyzer.failure.ways import ways, ways_of_every_node
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.cluster import Cluster
from analyzer.model.probability import Bounds
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.kubeproxy.predict.every_node import EveryNode

_PAIR: Final = 2


@enum.unique
class FailureKind(enum.Enum):
    """What fails: one node, a zone, the control plane's nodes, or several nodes of any kind."""

    NODE = "node"
    ZONE = "zone"
    CONTROL_PLANE = "control-plane"
    SET = "set"


@value(kw_only=True)
class WhatIfOptions:
    """Which failures to judge.

    Attributes:
        node: the node whose rules these are.
        control_plane: names of its nodes; if empty, those with its role label.
        depth: the most nodes that fail together.
        top: how many of all sets of several nodes to return.
        by_mean: whether those with the highest mean loss come first.
    """

    node: str | None = None
    control_plane: tuple[str, ...] = ()
    kinds: Collection[FailureKind] = frozenset(FailureKind)
    depth: int = _PAIR
    top: int = 5
    by_mean: bool = False


@value(kw_only=True)
class Failure:
    """One failure, and what it costs.

    Attributes:
        names: of the nodes that fail, or of the zone.
        takes_own: whether the node whose rules these are fails too: then it sends no flows, and
            the numbers are what its rules would do.
    """

    kind: FailureKind
    names: tuple[str, ...]
    groups: tuple[int, ...]
    cost: Cost
    takes_own: bool

    @property
    def worst(self) -> Bounds | None:
        """The loss of the worst route of all, exactly; None if none loses anything."""
        return None if self.cost.row is None else self.cost.row.loss(self.groups)


@value(kw_only=True)
class Sets:
    """Several nodes that fail together.

    Attributes:
        number: of all sets of that size.
        silencing: how many of them put a ServicePort in total loss; None if not counted.
        worst: the worst of them, as many as were asked for.
        is_complete: whether no other is worse than these; otherwise these are the worst for the
            ServicePorts that lose most, and the worst loss of all is among them.
        most: the nodes that put most ServicePorts in total loss.
    """

    size: int
    number: int
    silencing: int | None
    worst: tuple[Failure, ...]
    is_complete: bool
    most: MostSilenced


@value(kw_only=True)
class WhatIf:
    """What failures cost, the worst first.

    Attributes:
        nodes: how much of which ServicePort each node carries.
        zones: the same for zones; None if no zone is known.
        unplaced: endpoints, as they are printed, whose node is not known.
        unzoned: the same for zones.
        vantages: nodes whose rules are considered; shown_at: those that have each ServicePort.
        from_endpoints: what nodes and zones carry of the flows of endpoints that lose hairpin
            flows to rules; only thresholds ask for them. None: none does.
        is_interrupted: the user interrupted it; what is missing was not judged.
    """

    asked: WhatIfOptions
    services: tuple[ServicePort, ...]
    nodes: Incidence
    zones: Incidence | None
    own: int | None
    of_nodes: tuple[Failure, ...] = ()
    of_zones: tuple[Failure, ...] = ()
    control_plane: Failure | None = None
    sets: tuple[Sets, ...] = ()
    unplaced: tuple[str, ...] = ()
    unzoned: tuple[str, ...] = ()
    vantages: tuple[str, ...] = ()
    shown_at: tuple[frozenset[str], ...] = ()
    is_interrupted: bool = False
    from_endpoints: tuple[Incidence, Incidence | None] | None = None

    def service(self, row: RouteRow) -> ServicePort:
        """Return the ServicePort of a row."""
        return self.services[row.service]

    def uncounted(self) -> Iterator[tuple[int, ServicePort]]:
        """Yield the ServicePorts without a flow that reaches an endpoint, by index."""
        for at, service in enumerate(self.services):
            if not self.nodes.services[at] and at not in self.nodes.own:
                yield at, service

    def incidence_of(self, failure: Failure) -> Incidence:
        """Return the incidence whose indexes the groups of a failure are."""
        if failure.kind is FailureKind.ZONE:
            assert self.zones is not None  # it is one of them
            return self.zones
        return self.nodes

    def failures(self) -> Iterator[Failure]:
        """Yield every failure that was judged one by one."""
        if self.control_plane is not None:
            yield self.control_plane
        yield from self.of_zones
        yield from self.of_nodes
        for each in self.sets:
            yield from each.worst

    def survival(self, service: int) -> Survival | None:
        """Return how many nodes a ServicePort survives; None without endpoints."""
        return survival(self.nodes, service, self._counted(service))

    def survives(self, service: int) -> int | None:
        """Return the number alone, which is quick for many."""
        return survives(self.nodes, service, self.own)

    def survival_of_zones(self, service: int) -> Survival | None:
        """Return how many zones a ServicePort survives; None without endpoints, or zones."""
        if self.zones is None:
            return None
        return survival(self.zones, service, self._counted(service))

    def _counted(self, service: int) -> Sequence[int] | None:
        if self.own is None:
            return None
        return rows_that_count(self.nodes.services[service], self.own)


def what_if(
    services: Sequence[ServicePort],
    cluster: Cluster,
    asked: WhatIfOptions,
    advance: Callable[[int, int | None], None] | None = None,
    every_node: Sequence[EveryNode] = (),
    from_endpoints: Sequence[ServicePort] = (),
) -> WhatIf:
    """Return what each failure costs; long computations end if they are interrupted.

    `every_node` are the same ServicePorts at every node, if all nodes are considered;
    `from_endpoints` the same with the flows of endpoints that lose hairpin flows, if any do.

    Raises:
        UsageError: the nodes of endpoints are not known, or a name was not found.
    """
    vantages = frozenset(name for each in every_node for name in each.nodes)
    found = [ways_of_every_node(each, vantages) for each in every_node]
    found = found or [ways(service) for service in services]
    nodes, zones = incidences(found, cluster, vantages)
    _check(nodes, zones, cluster, asked)
    evaluation = _Evaluation(nodes, zones, cluster, asked)
    control_plane = evaluation.control_plane() if FailureKind.CONTROL_PLANE in asked.kinds else None
    answer = WhatIf(
        asked=asked,
        services=tuple(services),
        nodes=nodes,
        zones=zones,
        own=evaluation.own,
        of_nodes=evaluation.of_nodes() if FailureKind.NODE in asked.kinds else (),
        of_zones=evaluation.of_zones() if FailureKind.ZONE in asked.kinds else (),
        control_plane=control_plane,
        unplaced=_unplaced(nodes),
        unzoned=() if zones is None else _unplaced(zones),
        vantages=tuple(sorted(vantages)),
        shown_at=tuple(each.nodes for each in every_node),
        from_endpoints=incidences(map(ways, from_endpoints), cluster) if from_endpoints else None,
    )
    return evaluation.with_sets(answer, advance) if FailureKind.SET in asked.kinds else answer


def control_plane_of(cluster: Cluster, asked: WhatIfOptions) -> tuple[str, ...]:
    """Return the names of the control plane's nodes: those given, or those with its role label."""
    labelled = [node.name for node in cluster.nodes.values() if node.is_control_plane]
    return tuple(sorted(set(asked.control_plane or labelled)))


def _unplaced(found: Incidence) -> tuple[str, ...]:
    """Return the endpoints that are in no group, as they are printed, each once."""
    printed: dict[str, None] = {}
    for row in (row for rows in found.services for row in rows if not row.is_exact):
        if UNPLACED in row.places:
            texts, _ = row.route.columns()
            for text, place in zip(texts, row.places, strict=True):
                if place == UNPLACED:
                    printed[text] = None
    return tuple(printed)


def _check(
    nodes: Incidence, zones: Incidence | None, cluster: Cluster, asked: WhatIfOptions
) -> None:
    """Refuse to judge failures of what is not known.

    Raises:
        UsageError: the message says what would help.
    """
    tells = (
        "pass --objects FILE, from `kubectl get services,endpointslices,nodes,pods -A -o json`, "
        "or --node-of CIDR=NODE"
    )
    if not nodes.groups:
        raise UsageError(f"it is not known which endpoints are on which node; {tells}")
    if not any(nodes.of_group) and any(
        row.upper or row.places for r in nodes.services for row in r
    ):
        raise UsageError(
            f"it is not known on which node any endpoint of these ServicePorts is; {tells}, from "
            "the same cluster"
        )
    for name in asked.control_plane:
        if name not in nodes.groups:
            raise UsageError(
                f"--control-plane {name}: no such node is known" + suggestion(name, nodes.groups)
            )
    if asked.kinds == frozenset(FailureKind):
        return
    # If it was named and cannot be judged, silence would look like an all-clear.
    if FailureKind.ZONE in asked.kinds and zones is None:
        raise UsageError("--only zone: no zone is known; the nodes of --objects have none")
    if FailureKind.CONTROL_PLANE in asked.kinds and not control_plane_of(cluster, asked):
        raise UsageError(
            "--only control-plane: no node has its role label; name them with --control-plane"
        )
    if FailureKind.SET in asked.kinds and min(asked.depth, len(nodes.groups)) < _PAIR:
        raise UsageError("--only set: there is no set of two nodes with --depth 1, or of one node")


class _Evaluation:
    """Judges failures of one cluster."""

    def __init__(
        self, nodes: Incidence, zones: Incidence | None, cluster: Cluster, asked: WhatIfOptions
    ) -> None:
        self._nodes = nodes
        self._zones = zones
        self._cluster = cluster
        self._asked = asked
        self._singles = singles(nodes)
        known = nodes.groups
        self.own = known.index(asked.node) if asked.node in known else None

    def of_nodes(self) -> tuple[Failure, ...]:
        """Return what each node costs."""
        return self._in_order(
            Failure(
                kind=FailureKind.NODE,
                names=(name,),
                groups=(at,),
                cost=self._singles.cost(at),
                takes_own=at == self.own,
            )
            for at, name in enumerate(self._nodes.groups)
        )

    def of_zones(self) -> tuple[Failure, ...]:
        """Return what each zone costs."""
        if self._zones is None:
            return ()
        costs = singles(self._zones)
        node = self._asked.node
        own = None if node is None else self._cluster.zone_of(node)
        return self._in_order(
            Failure(
                kind=FailureKind.ZONE,
                names=(name,),
                groups=(at,),
                cost=costs.cost(at),
                takes_own=name == own,
            )
            for at, name in enumerate(self._zones.groups)
        )

    def control_plane(self) -> Failure | None:
        """Return what all nodes of the control plane cost together."""
        names = control_plane_of(self._cluster, self._asked)
        groups = tuple(at for at, name in enumerate(self._nodes.groups) if name in set(names))
        return self._together(FailureKind.CONTROL_PLANE, groups) if groups else None

    def with_sets(
        self, answer: WhatIf, advance: Callable[[int, int | None], None] | None
    ) -> WhatIf:
        """Return an answer with sets of several nodes, until it is interrupted."""
        made: list[Sets] = []
        sizes = range(_PAIR, min(self._asked.depth, len(self._nodes.groups)) + 1)
        try:
            made.extend(self._sets(size, advance) for size in sizes)
        except KeyboardInterrupt:
            return replace(answer, sets=tuple(made), is_interrupted=True)
        return replace(answer, sets=tuple(made))

    def _sets(self, size: int, advance: Callable[[int, int | None], None] | None) -> Sets:
        import math

        top, by_mean = self._asked.top, self._asked.by_mean
        number = math.comb(len(self._nodes.groups), size)
        step = None if advance is None else lambda done: advance(done, None)
        most = most_silenced(self._nodes.total, size, step)
        silencing = None
        looked_at: Iterable[tuple[int, ...]]
        if size == _PAIR:
            pairs = worst_pairs(self._nodes, self._singles, top, by_mean=by_mean)
            looked_at, is_complete = pairs.worst, pairs.is_complete
            silencing = pairs.silencing
            if (self._nodes.fewest_vantages or size + 1) <= size:
                # If both nodes that have a route are gone, less is lost than with one of them.
                looked_at, is_complete = sets_to_look_at(
                    self._nodes, size, most.groups, [each.groups[0] for each in self.of_nodes()]
                )
        else:
            costly = [each.groups[0] for each in self.of_nodes()]
            looked_at, is_complete = sets_to_look_at(self._nodes, size, most.groups, costly)
        found = []
        for groups in looked_at:
            found.append(self._together(FailureKind.SET, groups))
            if advance is not None:
                advance(1, None)
            if len(found) > 4 * top:
                found = [*self._in_order(found)[:top]]
        return Sets(
            size=size,
            number=number,
            silencing=silencing,
            worst=self._in_order(found)[:top],
            is_complete=is_complete,
            most=most,
        )

    def _together(self, kind: FailureKind, groups: tuple[int, ...]) -> Failure:
        return Failure(
            kind=kind,
            names=tuple(self._nodes.groups[each] for each in groups),
            groups=groups,
            cost=cost(self._nodes, groups),
            takes_own=self.own in groups,
        )

    def _in_order(self, failures: Iterable[Failure]) -> tuple[Failure, ...]:
        by_mean = self._asked.by_mean

        def key(failure: Failure) -> tuple[int, int, int]:
            found = failure.cost
            worst, gone, total = rank(found.worst), len(found.silenced), rank(found.upper)
            return (-total, -worst, -gone) if by_mean else (-worst, -gone, -total)

        return tuple(sorted(failures, key=lambda each: (key(each), each.names)))
