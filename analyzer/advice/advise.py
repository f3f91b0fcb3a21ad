"""What each measure gains a Service: applied to its objects, predicted and compared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from analyzer.advice.behind import Behind, behind
from analyzer.advice.measure import API, ClusterState, Measure, NamespacedName, Refused, is_for
from analyzer.advice.objects import key_of, nodes_of
from analyzer.advice.placing import places_of
from analyzer.advice.proxied import proxied
from analyzer.advice.scores import FailedNodes, Score, either_of, of_service, port_of, score
from analyzer.errors import UsageError, suggestion
from analyzer.kubeproxy.predict.cluster import predict
from analyzer.kubeproxy.predict.every_node import EveryNode
from analyzer.kubeproxy.predict.settings import ClusterSettings
from analyzer.model.cluster import Cluster
from analyzer.model.value import replace, value
from analyzer.outage.control_plane import ControlPlaneTopology, survives
from analyzer.outage.topologies import topology
from analyzer.parsers.api_objects import Object, at, text
from analyzer.parsers.kubernetes import cluster_of
from analyzer.parsers.roles import roles_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Most sets of nodes that are judged one by one.
_MOST_SETS: Final = 20_000
_OF_SERVICE: Final = "kubernetes.io/service-name"


@value(kw_only=True)
class Failures:
    """Which failures are evaluated: named ones, or any set of `depth` nodes.

    Attributes:
        dead: names of nodes that fail together; empty for any nodes.
        depth: how many nodes fail together, if none is named.
    """

    dead: FailedNodes = ()
    depth: int = 1

    def of(self, names: Sequence[str]) -> Sequence[FailedNodes]:
        """Return the sets of nodes, among those named, that fail together.

        Raises:
            UsageError: there are too many of them, or a node that fails is none.
        """
        for name in self.dead:
            if name not in names:
                raise UsageError(f"--dead-node {name}: no such node" + suggestion(name, names))
        if self.dead:
            return [self.dead]
        size = min(self.depth, len(names))
        number = math.comb(len(names), size)
        if number > _MOST_SETS:
            raise UsageError(
                f"--depth {self.depth}: {len(names):,} nodes have {number:,} sets of that size, "
                f"and at most {_MOST_SETS:,} are judged; name some with --dead-node"
            )
        return [*itertools.combinations(names, size)]


@value(kw_only=True)
class ServiceCosts:
    """The losses of a Service.

    Attributes:
        places: the node of each of its ready endpoints; None where it is not known.
        api: how many nodes the control plane survives, whichever; None if it is not the API's
            Service, or nothing is known of the control plane. -1: not even that is certain.
    """

    score: Score
    places: tuple[str | None, ...]
    api: int | None = None
    topology: ControlPlaneTopology | None = None

    def key(self) -> tuple[int, ...]:
        """Return the sort key of outcomes, best first."""
        return (0 if self.api is None else -self.api, *self.score.key())


@value(kw_only=True)
class EvaluatedMeasure:
    """A measure with its outcome, or with the reason why there is none."""

    measure: Measure
    outcome: ServiceCosts | Refused


@value(kw_only=True)
class Advice:
    """What measures gain a Service, the best first.

    Attributes:
        ports: names of its ServicePorts.
        predicted: its results now by its objects alone, if dumps give others; otherwise None.
    """

    key: NamespacedName
    ports: tuple[str, ...]
    now: ServiceCosts
    measures: tuple[EvaluatedMeasure, ...]
    behind: Behind
    predicted: ServiceCosts | None = None

    @property
    def name(self) -> str:
        """Namespace and name."""
        return "/".join(self.key)


class Adviser:
    """Evaluates measures for Services of one cluster."""

    def __init__(
        self,
        situation: ClusterState,
        settings: ClusterSettings,
        failures: Failures,
        seed: int,
        advance: Callable[[int, int | None], None] | None = None,
    ) -> None:
        self._situation = situation
        self._settings = settings
        self._failures = failures
        self._seed = seed
        self._advance = advance
        #: ServicePorts for which the generated rules give other results than predicted.
        self.differing: list[str] = []
        #: How many predictions were compared with generated rules.
        self.checked = 0

    def advice(
        self,
        key: NamespacedName,
        now: Sequence[EveryNode],
        cluster: Cluster,
        measures: Iterable[Measure],
    ) -> Advice | None:
        """Return what measures gain a Service, whose ServicePorts now are `now`.

        None: it has no endpoints, so that nothing can be lost.
        """
        first = self._outcome(self._situation, key, now, cluster)
        if first is None:
            return None
        ports = frozenset(map(port_of, now))
        predicted = self.evaluated(self._situation, key, ports)
        assert isinstance(predicted, ServiceCosts)  # it has the endpoints that it has
        found = [
            EvaluatedMeasure(measure=m, outcome=self._after(m, key, ports))
            for m in measures
            if is_for(m, key)
        ]
        return Advice(
            key=key,
            ports=tuple(dict.fromkeys(each.service.name.text for each in now)),
            now=first,
            measures=tuple(sorted(found, key=_order)),
            behind=behind(self._situation.items, key),
            predicted=None if predicted.score == first.score else predicted,
        )

    def _after(
        self, measure: Measure, key: NamespacedName, ports: Collection[object]
    ) -> ServiceCosts | Refused:
        changed = measure.change(self._situation, key)
        if isinstance(changed, Refused):
            return changed
        found = self.evaluated(changed, key, ports)
        if self._advance is not None:
            self._advance(1, None)
        return found

    def evaluated(
        self, situation: ClusterState, key: NamespacedName, ports: Collection[object] | None = None
    ) -> ServiceCosts | Refused:
        """Return the losses of a Service in a situation, for all or some of its ports."""
        scores = []
        for each in situation.either or (key,):
            items = items_of(situation.items, each)
            cluster = cluster_of(items, "objects")
            services, prediction = predict(items, cluster, self._settings, self._seed)
            self.differing += prediction.left_out
            self.checked += sum(w.services - len(w.differing) for w in prediction.walked)
            services = tuple(of_service(services, each, ports))
            found = self._outcome(situation, each, services, cluster)
            if found is None:
                return Refused("nothing would be left to judge")
            scores.append(found)
        if len(scores) == 1:
            return scores[0]
        return replace(scores[0], score=either_of([each.score for each in scores]))

    def _outcome(
        self,
        situation: ClusterState,
        key: NamespacedName,
        services: Sequence[EveryNode],
        cluster: Cluster,
    ) -> ServiceCosts | None:
        names = sorted(cluster.node_names)
        failures = self._failures.of(names)
        found = score(services, cluster, failures)
        if found is None:
            return None
        if situation.client is not None:
            found = proxied(situation.client, found, services, cluster, failures)
        plane = _topology(situation) if key == API else None
        return ServiceCosts(
            score=found,
            places=tuple(places_of(situation.items, key, cluster)),
            api=None if plane is None else survives(plane),
            topology=plane,
        )


def _order(evaluated: EvaluatedMeasure) -> tuple[bool, tuple[int, ...]]:
    outcome = evaluated.outcome
    return (True, ()) if isinstance(outcome, Refused) else (False, outcome.key())


def _topology(situation: ClusterState) -> ControlPlaneTopology | None:
    names = nodes_of(situation.items)
    return topology(situation.said, roles_of(situation.items), names)


def items_of(items: Sequence[Object], key: NamespacedName) -> list[Object]:
    """Return the objects that decide what one Service's rules are: its own, and all nodes."""
    return [item for item in items if _is_of(item, key)]


def _is_of(item: Object, key: NamespacedName) -> bool:
    match item.get("kind"):
        case "Service" | "Endpoints":
            return key_of(item) == key
        case "EndpointSlice":
            name = text(at(item, "metadata", "labels", _OF_SERVICE)) or ""
            return (key_of(item)[0], name) == key
        case "Node" | "ServiceCIDR" | "Pod":
            return True
        case _:
            return False


def keys_of(services: Iterable[EveryNode], items: Sequence[Object]) -> Iterator[NamespacedName]:
    """Yield the Services of ServicePorts, each once, if the objects include them."""
    there = {key_of(item) for item in items if item.get("kind") == "Service"}
    names = (each.service.name for each in services)
    yield from dict.fromkeys(
        key for n in names if (key := (n.namespace or "", n.service or "")) in there
    )
