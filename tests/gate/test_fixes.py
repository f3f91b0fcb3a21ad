"""What is advised helps where it is made: the changed manifests lose less, and nothing is idle."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given

from analyzer.failure.whatif import FailureKind
from analyzer.gate.evaluation import EvaluatedService, Thresholds
from analyzer.gate.fixes import Fix, ManifestPatch
from tests.support.effort import examples
from tests.support.gated import APP, HOST, ZONE, World, node, service, template, verdict_of, worlds

_ASKED = Thresholds(Fraction(1, 2), 1)
_ROUNDED = Fraction(1, 1 << 20)


def _merged(into: Any, patch: Any) -> Any:
    """Return a merge patch applied: RFC 7386, section 2."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    made = dict(into) if isinstance(into, dict) else {}
    for key, each in patch.items():
        if each is None:
            made.pop(key, None)
        else:
            made[key] = _merged(made.get(key), each)
    return made


def _patched(items: Sequence[Any], patches: Sequence[ManifestPatch]) -> list[Any]:
    found = [*items]
    for patch in patches:
        (at,) = [
            n
            for n, each in enumerate(found)
            if (each["kind"], each["metadata"]["name"])
            == (patch.manifest.kind, patch.manifest.name)
        ]
        found[at] = _merged(found[at], patch.merge)
    return found


def _losses(found: EvaluatedService) -> list[tuple[Fraction, bool]]:
    return [
        (
            each.case.loss(each.kind).upper.as_fraction() if each.case.found else Fraction(1),
            each.is_proven,
        )
        for each in found.worst
        if each.kind
    ]


def _naive(world: World, kind: FailureKind) -> Fraction:
    return max(
        world.loss(held, gone)
        for numbers in world.numbers()
        for held, _ in world.ends(numbers)
        for gone in world.failures(kind)
    )


def _read(world: World, items: Sequence[Any]) -> World:
    """Return the world that manifests say, as the naive scheduler reads it."""
    by_kind = {(each["kind"], each["metadata"]["name"]): each for each in items}
    apps: list[tuple[str, int | None, Any]] = []
    most = {}
    for app, replicas, _ in world.apps:
        kind = "DaemonSet" if replicas is None else "Deployment"
        spec = by_kind[kind, app]["spec"]
        number = spec.get("replicas")
        if ("HorizontalPodAutoscaler", app) in by_kind:
            scaled = by_kind["HorizontalPodAutoscaler", app]["spec"]
            number, most[app] = scaled["minReplicas"], scaled["maxReplicas"]
        apps.append((app, number, spec["template"]))
    return replace(world, apps=apps, most=most, service=by_kind["Service", APP])


def _check(world: World) -> None:
    items = world.items()
    broken, fix = verdict_of(items, world.nodes, _ASKED)
    if fix is None:
        return
    changed = _patched(items, fix.patches)
    then, _ = verdict_of(changed, world.nodes, _ASKED)
    assert _losses(then) == _losses(fix.then)
    assert bool(then.violations or then.pending) is not fix.is_enough
    # The witness: every placement of the changed manifests, tried one by one.
    naive = _read(world, changed)
    violated = {each.found.kind for each in broken.violations}
    before = {kind: _naive(world, kind) for kind in violated if kind}
    after = {kind: _naive(naive, kind) for kind in violated if kind}
    if fix.is_enough:
        assert all(loss <= Fraction(1, 2) + _ROUNDED for loss in after.values())
    else:
        fewer = [kind for kind, loss in after.items() if loss < before[kind] - _ROUNDED]
        assert fewer or None in violated
        assert all(loss <= before[kind] + _ROUNDED for kind, loss in after.items())


@given(worlds())
@examples(24, 2_000)
def test_what_is_advised_is_proven_to_help(world: World) -> None:
    _check(world)


@given(worlds(scaled=True))
@examples(8, 600)
def test_what_is_advised_helps_at_all_numbers_of_an_autoscaler(world: World) -> None:
    _check(world)


@given(worlds(places=True))
@examples(12, 1_000)
def test_what_is_advised_helps_where_endpoints_are_preferred_by_place(world: World) -> None:
    _check(world)


def _advised(
    replicas: int, spec: dict[str, Any], *nodes: Any, most: int | None = None
) -> Fix | None:
    scaled = {} if most is None else {APP: most}
    world = World(nodes, [(APP, replicas, template(APP, **spec))], service(), scaled)
    return verdict_of(world.items(), world.nodes, _ASKED)[1]


def _spread(key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": APP}}}
    return {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


_FOUR = [node(f"n{n}", "xxyy"[n]) for n in range(4)]


@pytest.mark.parametrize(
    ("replicas", "spec", "says"),
    [
        # One of two would be enough for each node and each zone.
        (2, {}, f"a topologySpreadConstraint on {ZONE} ("),
        # The constraint is there: a replica more is all that helps.
        (1, {"topologySpreadConstraints": [_spread(ZONE)]}, "replicas 2"),
        (3, {"topologySpreadConstraints": [_spread(ZONE)]}, "replicas 4"),
        (1, {}, f"replicas 2 and a topologySpreadConstraint on {ZONE} ("),
    ],
)
def test_no_part_of_what_is_advised_is_idle(replicas: int, spec: dict[str, Any], says: str) -> None:
    fix = _advised(replicas, spec, *_FOUR)
    assert fix is not None
    assert fix.is_enough
    assert fix.says == says or (says.endswith("(") and fix.says.startswith(says))


def test_of_a_scaled_workload_the_least_number_is_changed() -> None:
    fix = _advised(1, {"topologySpreadConstraints": [_spread(ZONE)]}, *_FOUR, most=2)
    assert fix is not None
    assert fix.says == "minReplicas 2"
    (patch,) = fix.patches
    assert patch.manifest.kind == "HorizontalPodAutoscaler"
    assert patch.merge == {"spec": {"minReplicas": 2, "maxReplicas": 2}}


def test_where_nothing_is_proven_to_help_nothing_is_advised() -> None:
    assert _advised(2, {"nodeSelector": {HOST: "n0"}}, *_FOUR) is None
