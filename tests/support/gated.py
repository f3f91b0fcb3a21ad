"""Small clusters with manifests, and what a naive reading of them says that failures cost."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from analyzer.failure.whatif import FailureKind
from analyzer.gate.cases import CaseEvaluator
from analyzer.gate.evaluation import EvaluatedService, Thresholds, evaluated
from analyzer.gate.failing import Failing, failing_of
from analyzer.gate.fixes import Fix, fix_of
from analyzer.gate.problem import Problem
from analyzer.kubeproxy.predict.assumptions import GivenSettings
from analyzer.questions.gating import Given, given_of
from tests.support.naive.scheduling import called, every_end, matches

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
APP = "a"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
_KINDS = (FailureKind.NODE, FailureKind.ZONE)


def node(name: str, zone: str | None, taint: str | None = None, cpu: int | None = None) -> Any:
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {},
        "status": {} if cpu is None else {"allocatable": {"cpu": str(cpu)}},
    }


def template(app: str, **spec: Any) -> Any:
    container: dict[str, Any] = {
        "name": "c",
        "image": "i",
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {}},
    }
    if "cpu" in spec:
        container["resources"]["requests"]["cpu"] = str(spec.pop("cpu"))
    if "port" in spec:
        container["ports"][0]["hostPort"] = spec.pop("port")
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **spec}}


def workload(app: str, replicas: int | None, made: Any) -> Any:
    kind = "DaemonSet" if replicas is None else "Deployment"
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": app},
        "spec": {
            **({} if replicas is None else {"replicas": replicas}),
            "selector": {"matchLabels": {"app": app}},
            "template": made,
        },
    }


def service(app: str = APP, **spec: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": app},
        "spec": {"selector": {"app": app}, "ports": [{"port": 80, "targetPort": "http"}], **spec},
    }


def stateful(app: str, replicas: int, made: Any) -> Any:
    return {**workload(app, replicas, made), "kind": "StatefulSet"}


def scaler(app: str, least: int | None, most: int, kind: str = "Deployment") -> Any:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": app},
        "spec": {
            **({} if least is None else {"minReplicas": least}),
            "maxReplicas": most,
            "scaleTargetRef": {"kind": kind, "name": app},
        },
    }


@dataclass(frozen=True)
class World:
    """Nodes, workloads as app, replicas and template, and a Service.

    Of those in `most` there may be up to so many pods; those in `stateful` are StatefulSets.
    """

    nodes: Sequence[Any]
    apps: Sequence[tuple[str, int | None, Any]]
    service: Any
    most: Mapping[str, int] = field(default_factory=dict)
    stateful: frozenset[str] = frozenset()

    def items(self) -> list[Any]:
        """Return the manifests."""
        found = []
        for app, replicas, made in self.apps:
            is_stateful = app in self.stateful
            made_of = stateful if is_stateful else workload
            found.append(made_of(app, replicas, made))  # type: ignore[arg-type]  # it has replicas
            if app in self.most:
                kind = "StatefulSet" if is_stateful else "Deployment"
                found.append(scaler(app, replicas, self.most[app], kind))
        return [*found, self.service]

    def verdict(self, thresholds: Thresholds | None = None) -> EvaluatedService:
        """Return what the gate says."""
        return verdict_of(self.items(), self.nodes, thresholds)[0]

    def problem(self) -> tuple[Problem, Failing, tuple[int, ...]]:
        """Return what is to be placed, what fails, and the groups of the Service."""
        given = _given(self.items(), self.nodes)
        problem = given.problem(given.templates)
        return problem, failing_of(problem, (), _KINDS, 1), given.services[0].groups

    def numbers(self) -> Iterator[dict[str, int | None]]:
        """Give how many replicas each app may have, the least first."""
        ranges = [
            [None] if n is None else range(n, self.most.get(app, n) + 1) for app, n, _ in self.apps
        ]
        for each in itertools.product(*ranges):
            yield dict(zip((app for app, _, _ in self.apps), each, strict=True))

    def pods(self, numbers: Mapping[str, int | None]) -> list[Any]:
        """Return each pod; those of a DaemonSet are each for one node."""
        found = []
        for app, _, made in self.apps:
            replicas = numbers[app]
            if replicas is None:
                for each in self.nodes:
                    name = each["metadata"]["name"]
                    found.append({**made, "spec": {**made["spec"], "only": name}})
            elif app in self.stateful:
                for n in range(replicas):
                    named = {POD_NAME: f"{app}-{n}", POD_INDEX: str(n)}
                    labels = {**made["metadata"]["labels"], **named}
                    found.append({**made, "metadata": {"labels": labels}})
            else:
                found += [made] * replicas
        return found

    def ends(self, numbers: Mapping[str, int | None]) -> list[tuple[dict[str, int], int]]:
        """Return how many pods of the Service each node has at an end, and how many wait."""
        pods = self.pods(numbers)
        selector = {"matchLabels": self.service["spec"]["selector"]}
        own = {called(each) for each in pods if matches(selector, each)}
        found = []
        for end in every_end(pods, self.nodes):
            held: dict[str, int] = {}
            for name, node_name in end:
                if name in own and node_name is not None:
                    held[node_name] = held.get(node_name, 0) + 1
            left = sum(matches(selector, each) for each in pods) - sum(held.values())
            if (held, left) not in found:
                found.append((held, left))
        return found

    def failures(self, kind: FailureKind) -> Iterator[frozenset[str]]:
        """Give what fails together."""
        if kind is FailureKind.NODE:
            yield from (frozenset([each["metadata"]["name"]]) for each in self.nodes)
            return
        for zone in self.zones():
            yield frozenset(n for n in self.names() if self.zone(n) == zone)

    def names(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.nodes]

    def zone(self, name: str) -> str | None:
        (found,) = [n for n in self.nodes if n["metadata"]["name"] == name]
        zone: str | None = found["metadata"]["labels"].get(ZONE)
        return zone

    def zones(self) -> list[str]:
        return sorted({zone for name in self.names() if (zone := self.zone(name))})

    def loss(self, held: dict[str, int], gone: frozenset[str]) -> Fraction:
        """Return what the worst node that lives loses."""
        spec = self.service["spec"]
        if not held:
            return Fraction(1)
        if spec.get("internalTrafficPolicy") == "Local":
            return Fraction(0)
        losses = [Fraction(0)]
        for name in self.names():
            if name in gone:
                continue
            used = held
            near = {n: k for n, k in held.items() if self.zone(n) == self.zone(name)}
            is_close = spec.get("trafficDistribution") == "PreferClose" and self.zone(name)
            # Hints count where each endpoint has one.
            if is_close and near and all(map(self.zone, held)):
                used = near
            dead = sum(k for n, k in used.items() if n in gone)
            losses.append(Fraction(dead, sum(used.values())))
        return max(losses)

    def survives(self, held: dict[str, int]) -> int:
        """Return how many nodes it survives: with one more some node has no endpoint left."""
        for size in range(1, len(self.nodes) + 1):
            for gone in itertools.combinations(self.names(), size):
                if set(held) <= set(gone) or self.loss(held, frozenset(gone)) == 1:
                    return size - 1
        return len(self.nodes)


def verdict_of(
    items: Sequence[Any], nodes: Sequence[Any], thresholds: Thresholds | None = None
) -> tuple[EvaluatedService, Fix | None]:
    """Return what the gate says of manifests with one Service, and what it advises."""
    given = _given(items, nodes)
    problem = given.problem(given.templates)
    failing = failing_of(problem, (), _KINDS, 1)
    (gated,) = given.services
    evaluator = CaseEvaluator(problem, given.templates, [gated], failing, (), GivenSettings(), 1)
    asked = thresholds or Thresholds()
    (verdict,) = evaluated(problem, [gated], failing, evaluator, asked)
    assert not evaluator.differing
    fix = fix_of(verdict, given.templates, given.problem, failing, evaluator, asked)
    return verdict, fix


def _given(items: Sequence[Any], nodes: Sequence[Any]) -> Given:
    file = ("m.json", json.dumps({"kind": "List", "items": [*items]}).encode())
    return given_of([file], nodes, is_described=True)


# --- random ones ---------------------------------------------------------------


@st.composite
def worlds(
    draw: st.DrawFn, *, places: bool = False, scaled: bool = False, stateful_ones: bool = False
) -> World:
    """Give clusters of up to four nodes with up to four pods of one or two workloads."""
    number = draw(st.integers(2, 4))
    zoned = draw(st.booleans())
    room = draw(st.sampled_from([None, None, 2, 3]))
    nodes = [
        node(
            f"n{n}",
            draw(st.sampled_from(["x", "y"])) if zoned else None,
            draw(st.sampled_from([None, None, None, "dedicated"])),
            room,
        )
        for n in range(number)
    ]
    apps: list[tuple[str, int | None, Any]] = [(APP, draw(st.integers(1, 3)), draw(templates(APP)))]
    if draw(st.booleans()):
        apps.append(("b", draw(st.sampled_from([None, 1, 2])), draw(templates("b"))))
    spec: dict[str, Any] = {}
    if places:
        spec = draw(
            st.sampled_from(
                [{"internalTrafficPolicy": "Local"}, {"trafficDistribution": "PreferClose"}]
            )
        )
    most = {}
    if scaled:
        app, replicas, _ = draw(st.sampled_from([each for each in apps if each[1] is not None]))
        most[app] = (replicas or 0) + draw(st.integers(1, 2))
    named = draw(st.booleans()) and stateful_ones
    if named:
        key, value = draw(
            st.sampled_from([(POD_NAME, f"{APP}-0"), (POD_NAME, f"{APP}-1"), (POD_INDEX, "0")])
        )
        spec["selector"] = {key: value}
        if int(value[-1]) >= (apps[0][1] or 0):
            spec["selector"] = {"app": APP}
    kinds = frozenset({APP} if stateful_ones else ())
    return World(nodes, apps, service(**spec), most, kinds)


@st.composite
def templates(draw: st.DrawFn, app: str) -> Any:
    """Give templates of pods with some of what binds them."""
    spec: dict[str, Any] = {}
    keys = st.sampled_from([HOST, ZONE])
    apps = st.sampled_from([APP, "b"])
    for what in draw(st.lists(st.sampled_from(sorted(_BOUND)), max_size=2, unique=True)):
        given = {"key": draw(keys), "app": draw(apps) if draw(st.booleans()) else app}
        for name, made in _BOUND[what](draw, given).items():
            spec[name] = {**spec[name], **made} if name == "affinity" and name in spec else made
    return template(app, **spec)


def _term(given: dict[str, str]) -> Any:
    return {
        "topologyKey": given["key"],
        "labelSelector": {"matchLabels": {"app": given["app"]}},
    }


_NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"
_BOUND: dict[str, Any] = {
    "anti": lambda _, g: {"affinity": {"podAntiAffinity": {_NEEDED: [_term(g)]}}},
    "beside": lambda _, g: {"affinity": {"podAffinity": {_NEEDED: [_term(g)]}}},
    "spread": lambda draw, g: {
        "topologySpreadConstraints": [
            {
                **_term(g),
                "maxSkew": draw(st.integers(1, 2)),
                "whenUnsatisfiable": draw(
                    st.sampled_from(["DoNotSchedule"] * 3 + ["ScheduleAnyway"])
                ),
                **draw(
                    st.sampled_from(
                        [
                            {},
                            {"nodeTaintsPolicy": "Honor"},
                            {"minDomains": 3},
                            {"labelSelector": {}},
                        ]
                    )
                ),
            }
        ]
    },
    "cpu": lambda _, __: {"cpu": 1},
    "port": lambda _, __: {"port": 80},
    "selector": lambda _, __: {"nodeSelector": {ZONE: "x"}},
    "toleration": lambda _, __: {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
}
