"""Small clusters with manifests, and what a naive reading of them says that failures cost."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from analyzer.failure.whatif import Kind
from analyzer.gate.cases import Judge
from analyzer.gate.compiling import problem_of
from analyzer.gate.failing import failing_of
from analyzer.gate.nodes import scheduling_nodes
from analyzer.gate.services import GatedService, services_of
from analyzer.gate.templates import templates_of
from analyzer.gate.verdict import Judged, Thresholds, judged
from analyzer.gate.workloads import workloads
from analyzer.kubeproxy.predict.assumptions import Said
from analyzer.parsers.manifests import manifests
from tests.support.naive.scheduling import every_end

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
APP = "a"
_KINDS = (Kind.NODE, Kind.ZONE)


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


@dataclass(frozen=True)
class World:
    """Nodes, workloads as app, replicas and template, and the Service of the first app."""

    nodes: Sequence[Any]
    apps: Sequence[tuple[str, int | None, Any]]
    service: Any

    def verdict(self, thresholds: Thresholds | None = None) -> Judged:
        """Return what the gate says."""
        items = [*(workload(*each) for each in self.apps), self.service]
        found = manifests([("m.json", json.dumps({"kind": "List", "items": items}).encode())])
        nodes = scheduling_nodes(self.nodes)
        templates = templates_of(workloads(found), [each.item for each in found])
        problem = problem_of(templates, nodes, {}, is_described=True)
        failing = failing_of(problem, (), _KINDS, 1)
        (gated,) = services_of(found, templates)
        assert isinstance(gated, GatedService)
        judge = Judge(problem, templates, [gated], failing, (), Said(), 1)
        (verdict,) = judged(problem, [gated], failing, judge, thresholds or Thresholds())
        assert not judge.differing
        return verdict

    def pods(self) -> list[Any]:
        """Return each pod; those of a DaemonSet are each for one node."""
        found = []
        for _, replicas, made in self.apps:
            if replicas is not None:
                found += [made] * replicas
                continue
            for each in self.nodes:
                name = each["metadata"]["name"]
                found.append({**made, "spec": {**made["spec"], "only": name}})
        return found

    def ends(self) -> list[dict[str, int]]:
        """Return how many pods of the Service each node has, for each end there is."""
        found = []
        for end in every_end(self.pods(), self.nodes):
            held: dict[str, int] = {}
            for app, name in end:
                if app == APP and name is not None:
                    held[name] = held.get(name, 0) + 1
            if held not in found:
                found.append(held)
        return found

    def failures(self, kind: Kind) -> Iterator[frozenset[str]]:
        """Give what fails together."""
        if kind is Kind.NODE:
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


# --- random ones ---------------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn, *, places: bool = False) -> World:
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
    return World(nodes, apps, service(**spec))


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
