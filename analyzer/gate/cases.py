"""Placements evaluated: each becomes API objects for `predict` and `what_if`.

A Service with one of its placements is a case. Cases are evaluated together, each as a Service
of its own, since rules of one Service do not depend on those of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.advice.scores import dropping
from analyzer.failure.reaching import reaching_at_every_node
from analyzer.failure.whatif import Failure, FailureKind, WhatIf, WhatIfOptions, what_if
from analyzer.gate.every import Ended
from analyzer.gate.failing import Failing
from analyzer.gate.objects import IndexedAddresses, alone, completed_service, families_of, slices
from analyzer.gate.problem import Problem
from analyzer.gate.services import GatedService
from analyzer.gate.templates import PodTemplate
from analyzer.kubeproxy.predict.assumptions import GivenSettings, assumed
from analyzer.kubeproxy.predict.cluster import Prediction, predict
from analyzer.model.probability import NEVER, Bounds
from analyzer.model.value import replace, value
from analyzer.parsers.api_objects import Object, at, elements, text
from analyzer.parsers.kubernetes import cluster_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Final

    from analyzer.kubeproxy.predict.every_node import EveryNode
    from analyzer.model.cluster import Cluster

#: As many have node ports of their own, eight each.
_MOST_TOGETHER: Final = 2_000
_NAMESPACE: Final = "gate"
_NOTHING: Final = Bounds(NEVER, NEVER)


@value(kw_only=True)
class Case:
    """A Service with its pods at one placement, and what failures cost it there.

    Attributes:
        found: None where no pod of it is placed anywhere.
        dropping: nodes that drop its flows whatever fails, having no endpoint of their own.
    """

    service: GatedService
    end: Ended
    found: WhatIf | None
    dropping: int = 0

    def failure(self, kind: FailureKind) -> Failure | None:
        """Return the costliest failure of a kind."""
        found = self.found
        if found is None:
            return None
        match kind:
            case FailureKind.NODE:
                return next(iter(found.of_nodes), None)
            case FailureKind.ZONE:
                return next(iter(found.of_zones), None)
            case FailureKind.CONTROL_PLANE:
                return found.control_plane
            case FailureKind.SET:
                sets = [each for each in found.sets if each.size == found.asked.depth]
                return sets[0].worst[0] if sets and sets[0].worst else None

    def loss(self, kind: FailureKind) -> Bounds:
        """Return the most that it costs, by the worst route on the worst live node."""
        failure = self.failure(kind)
        return (failure.worst if failure is not None else None) or _NOTHING

    @property
    def survives(self) -> int:
        """The number of nodes, whichever they are, that it can lose; -1 without endpoints."""
        if self.found is None:
            return -1
        told = [self.found.survives(n) for n in range(len(self.found.services))]
        return min((each for each in told if each is not None), default=-1)

    @property
    def held(self) -> list[int]:
        """How many pods of it each node has."""
        return self.end.held(self.service.groups)

    def places(self, problem: Problem) -> list[tuple[str, int]]:
        """Return the nodes with its pods, and how many they are."""
        return [(problem.nodes[v].name, number) for v, number in enumerate(self.held) if number]


class CaseEvaluator:
    """Evaluates cases of one cluster.

    Attributes:
        prediction: of the cases that were evaluated last.
        checked: how many predictions were compared with evaluations of generated rules.
    """

    def __init__(
        self,
        problem: Problem,
        templates: Sequence[PodTemplate],
        services: Sequence[GatedService],
        failing: Failing,
        control_plane: Collection[str],
        said: GivenSettings,
        seed: int,
    ) -> None:
        """Say what the nodes' kube-proxies are taken to be.

        Raises:
            ValueError: there are no rules of such a version.
        """
        self._problem = problem
        self._templates = templates
        families = sorted({f for each in services for f in families_of(each.item)}) or [4]
        self._addresses = IndexedAddresses(problem.nodes, families)
        found = assumed(self._addresses.nodes, said)
        self._settings = found.settings
        self._seed = seed
        self._asked = WhatIfOptions(
            control_plane=tuple(control_plane)
            if FailureKind.CONTROL_PLANE in failing.kinds
            else (),
            kinds=frozenset(failing.kinds),
            depth=failing.depth,
            top=1,
        )
        self._numbers = {id(each.manifest): n for n, each in enumerate(services)}
        self.prediction = Prediction(
            settings=found.settings, nodes=tuple(n.name for n in problem.nodes), assumed=found.words
        )
        self.checked = 0
        self.differing: list[str] = []

    def cases(self, asked: Sequence[tuple[GatedService, Ended]]) -> list[Case]:
        """Return what failures cost Services, each with its pods at a placement.

        Raises:
            ParseError: a Service is malformed.
        """
        if len(asked) > _MOST_TOGETHER:
            first, rest = asked[:_MOST_TOGETHER], asked[_MOST_TOGETHER:]
            return [*self.cases(first), *self.cases(rest)]
        items: list[Object] = [*self._addresses.nodes]
        for number, (service, end) in enumerate(asked):
            made = replace(service, item=alone(service.item, number))
            items += self._objects(made, end, _NAMESPACE, f"c{number}", number)
        cluster = cluster_of(items, "manifests")
        services, prediction = predict(items, cluster, self._settings, self._seed)
        for each in prediction.malformed:
            name, _, why = each.partition(": ")
            number = int(name.partition("/c")[2])
            asked[number][0].manifest.fail(why)
        self.prediction = replace(prediction, assumed=self.prediction.assumed)
        self.differing += [
            asked[int(n.partition("/c")[2].partition(":")[0])][0].name for n in prediction.left_out
        ]
        self.checked += sum(w.services - len(w.differing) for w in prediction.walked)
        own: dict[str, list[EveryNode]] = {}
        for port in services:
            own.setdefault(port.service.name.service or "", []).append(port)
        return [
            self._case(own.get(f"c{n}", ()), end, service, cluster)
            for n, (service, end) in enumerate(asked)
        ]

    def _case(
        self, ports: Sequence[EveryNode], end: Ended, service: GatedService, cluster: Cluster
    ) -> Case:
        if not ports or not any(end.held(service.groups)):
            return Case(service=service, end=end, found=None)
        reached = tuple(map(reaching_at_every_node, ports))
        return Case(
            service=service,
            end=end,
            found=what_if([e.service for e in reached], cluster, self._asked, None, reached),
            dropping=max(map(dropping, ports)),
        )

    def objects(self, asked: Sequence[tuple[GatedService, Ended]]) -> list[Object]:
        """Return the objects of placements, under the names of the Services."""
        items = [*self._addresses.nodes]
        for service, end in asked:
            number = self._numbers[id(service.manifest)]
            namespace, name = service.key
            if not service.manifest.is_named:
                name = f"{name[:-1]}{number:05d}"
            items += self._objects(service, end, namespace, name, number)
        return items

    def _objects(
        self, service: GatedService, end: Ended, namespace: str, name: str, number: int
    ) -> list[Object]:
        """Return a Service under some name, with the ports that it is about, and its slices."""
        ports = [
            port
            for port in elements(service.item, "spec", "ports")
            if (text(at(port, "name")) or "") in service.ports
        ]
        metadata = {**service.item["metadata"], "namespace": namespace, "name": name}
        spec = {**service.item["spec"], "ports": ports}
        item = completed_service({**service.item, "metadata": metadata, "spec": spec}, number)
        counts: Mapping[int, Sequence[int]] = {g: end.counts[g] for g in service.groups}
        return [item, *slices(item, self._templates, counts, self._addresses)]
