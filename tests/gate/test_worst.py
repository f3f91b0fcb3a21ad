"""The worst placement is the worst of all, which another program tries one by one."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given

from tests.support.effort import examples
from tests.support.gated import APP, World, worlds

_ROUNDED = Fraction(1, 1 << 20)


def _check(world: World) -> None:
    verdict = world.verdict()
    ends = world.ends()
    for found in verdict.worst:
        assert found.kind is not None
        failures = [*world.failures(found.kind)]
        worst = max(world.loss(held, gone) for held in ends for gone in failures)
        told = found.case.loss(found.kind).upper.as_fraction()
        told = Fraction(1) if found.case.found is None else told
        assert found.is_proven
        assert abs(told - worst) < _ROUNDED, (found.kind, found.case.held)
    fewest = min(world.survives(held) if held else -1 for held in ends)
    assert verdict.fewest.is_proven
    assert verdict.fewest.case.survives == fewest
    asked = sum(replicas or 0 for app, replicas, _ in world.apps if app == APP)
    left = [asked - sum(held.values()) for held in ends]
    least, most = verdict.placements.pending
    assert least == min(left)
    assert most is None or most >= max(left)


@given(worlds())
@examples(40, 3_000)
def test_no_placement_is_worse_than_the_one_that_is_called_the_worst(world: World) -> None:
    _check(world)


@given(worlds(places=True))
@examples(20, 1_500)
def test_the_same_holds_where_rules_prefer_endpoints_by_place(world: World) -> None:
    _check(world)
