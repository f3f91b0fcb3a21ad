"""The worst placement is the worst of all, which another program tries one by one."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given

from analyzer.failure.whatif import FailureKind
from analyzer.gate.evaluation import EvaluatedService
from analyzer.gate.scaling import scaled_placements
from tests.support.effort import examples
from tests.support.gated import APP, HOST, ZONE, World, node, service, template, worlds

_ROUNDED = Fraction(1, 1 << 20)


def _check(world: World) -> EvaluatedService:
    verdict = world.verdict()
    by_numbers = [world.ends(each) for each in world.numbers()]
    ends = [held for found in by_numbers for held, _ in found]
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
    least, most = verdict.placements.pending
    assert least == min(left for _, left in by_numbers[0])
    assert most is None or most >= max(left for found in by_numbers for _, left in found)
    return verdict


@given(worlds())
@examples(40, 3_000)
def test_no_placement_is_worse_than_the_one_that_is_called_the_worst(world: World) -> None:
    _check(world)


@given(worlds(places=True))
@examples(20, 1_500)
def test_the_same_holds_where_rules_prefer_endpoints_by_place(world: World) -> None:
    _check(world)


@given(worlds(scaled=True))
@examples(30, 2_000)
def test_the_same_holds_of_all_numbers_that_an_autoscaler_makes(world: World) -> None:
    verdict = _check(world)
    for found in verdict.worst:
        assert found.kind is not None
        # The number that is told is one at which so much is lost.
        held = sum(found.case.held)
        lost = found.case.loss(found.kind).upper.as_fraction() if held else Fraction(1)
        at = [
            world.loss(end, gone)
            for numbers in world.numbers()
            for end, _ in world.ends(numbers)
            for gone in world.failures(found.kind)
            if sum(end.values()) == held
        ]
        assert any(abs(each - lost) < _ROUNDED for each in at)


@given(worlds(scaled=True, places=True))
@examples(12, 1_000)
def test_the_same_holds_where_both_are_so(world: World) -> None:
    _check(world)


@given(worlds(stateful_ones=True))
@examples(30, 2_000)
def test_the_same_holds_of_pods_that_are_selected_by_name(world: World) -> None:
    _check(world)


@given(worlds(stateful_ones=True, scaled=True))
@examples(12, 1_000)
def test_the_same_holds_of_pods_by_name_that_are_scaled(world: World) -> None:
    _check(world)


def test_more_pods_may_be_worse_and_it_is_told_at_which_number() -> None:
    """Two in two zones cost a half, three two thirds, four a half again."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": APP}}}
    spread = [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    made = template(APP, topologySpreadConstraints=spread)
    nodes = [node("n1", "x"), node("n2", "y"), node("n3", "y")]
    losses = []
    for least, most in ((2, 2), (2, 3), (4, 4), (2, 9), (4, 9)):
        world = World(nodes, [(APP, least, made)], service(), {APP: most})
        (_, zone) = world.verdict().worst
        assert zone.is_proven
        losses.append((zone.case.loss(FailureKind.ZONE).upper.as_fraction(), sum(zone.case.held)))
    near = [(f.limit_denominator(100), n) for f, n in losses]
    third, fifth = Fraction(2, 3), Fraction(3, 5)
    assert near == [(Fraction(1, 2), 2), (third, 3), (Fraction(1, 2), 4), (third, 3), (fifth, 5)]


def _apart(most: int) -> World:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": APP}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [node(f"n{n}", "xy"[n % 2]) for n in range(60)]
    return World(nodes, [(APP, 2, template(APP, affinity=anti))], service(), {APP: most})


def test_numbers_that_bounds_leave_out_are_not_tried() -> None:
    given = _apart(50)
    problem, failing, groups = given.problem()
    # Not a pod may be placed to find it out.
    found = scaled_placements(problem, groups, failing, work=0)
    assert {kind: (each.part, each.most) for kind, each in found.worst.items()} == {
        FailureKind.NODE: (Fraction(1, 2), Fraction(1, 2)),
        FailureKind.ZONE: (Fraction(1), Fraction(1)),
    }


def test_numbers_that_are_not_tried_leave_a_range() -> None:
    spread = [
        {
            "topologyKey": ZONE,
            "labelSelector": {"matchLabels": {"app": APP}},
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
        },
    ]
    nodes = [node("n1", "x"), node("n2", "y")]
    made = template(APP, topologySpreadConstraints=spread)
    problem, failing, groups = World(nodes, [(APP, 2, made)], service(), {APP: 9}).problem()
    worst = scaled_placements(problem, groups, failing, work=0).worst[FailureKind.ZONE]
    assert (worst.part, worst.most) == (Fraction(1, 2), Fraction(2, 3))
    worst = scaled_placements(problem, groups, failing).worst[FailureKind.ZONE]
    assert (worst.part, worst.most) == (Fraction(2, 3), Fraction(2, 3))
