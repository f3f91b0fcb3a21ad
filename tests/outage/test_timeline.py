"""Losses over time: bounds hold in every world that they allow, and the laws of an outage."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.services import ApiEndpoint
from analyzer.model.value import replace
from analyzer.outage.causes import Cause, Replacement
from analyzer.outage.clocks import NEVER, TimeBounds
from analyzer.outage.control_plane import LoadBalancer
from analyzer.outage.timeline import Curve, LossStep, Reboot, play
from tests.support.outages import (
    APART,
    NAME,
    address,
    outage,
    played,
    seconds,
    spec,
    view,
    workloads,
)

#: What one draw may be off.
OFF = Fraction(1, 1 << 31)
UNTIL = Fraction(20)
moments = st.integers(0, 20).map(Fraction)
spans = st.one_of(
    st.just(NEVER),
    moments.map(lambda first: TimeBounds(first, None)),
    st.builds(lambda one, other: TimeBounds(min(one, other), max(one, other)), moments, moments),
)
fates = st.builds(
    Replacement, cause=st.just(Cause.REPLACED), removed=spans, replaced=spans, returns=spans
)


def moment(data: st.DataObject, span: TimeBounds) -> Fraction | None:
    """Return some moment within a span; None: never."""
    if span.earliest is None or (span.latest is None and data.draw(st.booleans())):
        return None
    last = UNTIL if span.latest is None else span.latest
    if last <= span.earliest:
        return span.earliest
    return span.earliest + data.draw(st.integers(0, int(last - span.earliest)))


def has(when: Fraction | None, time: Fraction) -> bool:
    return when is not None and when <= time


@given(st.data())
def test_bounds_contain_every_way_an_outage_may_go(data: st.DataObject) -> None:
    draw = data.draw
    number = draw(st.integers(1, 4))
    (service,) = view(number).services
    ends = {n + 1: end for n, end in enumerate(service.endpoints)}
    kinds = {n: draw(st.sampled_from(("dead", "perhaps", "alive"))) for n in ends}
    given_fates = {ends[n]: draw(fates) for n, kind in kinds.items() if kind != "alive"}
    died = Dead(
        endpoints=frozenset(ends[n] for n, kind in kinds.items() if kind == "dead"),
        uncertain=frozenset(ends[n] for n, kind in kinds.items() if kind == "perhaps"),
    )
    listed = {each.key: each for each in (spec(number),)} if draw(st.booleans()) else {}
    (found,) = play([service], died, lambda _, dead: pick(given_fates, dead), listed, UNTIL)
    # One world: who is dead, and when what happens.
    gone = {e for n, e in ends.items() if kinds[n] == "dead"}
    gone |= {e for e in sorted(died.uncertain, key=str) if draw(st.booleans())}
    removed, replaced, returns = (
        {e: moment(data, getattr(given_fates[e], what)) for e in sorted(gone, key=str)}
        for what in ("removed", "replaced", "returns")
    )
    shares = {s.endpoint: s.share.lower.as_fraction() for s in service.routes[0].shares}
    for time in map(Fraction, range(int(UNTIL))):
        lost = [e for e in gone if not has(returns[e], time)]
        out = [e for e in lost if has(removed[e], time)]
        came = len([e for e in gone if has(replaced[e], time)])
        if not out and not came:
            share, off = sum((shares[e] for e in lost), Fraction(0)), Fraction(0)
        else:
            dead = len(lost) - len(out)
            drawn = number - len(out) + came
            share, off = (Fraction(dead, drawn) if drawn else Fraction(1)), drawn * OFF
        step = found.curve.at(time)
        assert step.lower <= share + off
        assert share - off <= step.upper


def test_who_may_live_is_not_certainly_replaced() -> None:
    """One of two is dead for good; the other may be, and is replaced and back if it is."""
    (service,) = view(2).services
    dead, perhaps = service.endpoints
    stays = Replacement(cause=Cause.BY_HAND, removed=NEVER, replaced=NEVER)
    comes = replace(stays, replaced=seconds(0), returns=seconds(0))
    (found,) = play(
        [service],
        Dead(endpoints=frozenset([dead]), uncertain=frozenset([perhaps])),
        lambda *_: {dead: stays, perhaps: comes},
        {(NAME, "tcp", 4): spec(2)},
        UNTIL,
    )
    assert found.curve.steps[0].upper >= Fraction(1, 2)


def pick(
    all_fates: dict[Endpoint, Replacement], dead: Collection[Endpoint]
) -> dict[Endpoint, Replacement]:
    return {end: all_fates[end] for end in dead}


@given(st.integers(1, 4), st.booleans())
def test_with_nothing_dead_nothing_is_lost(number: int, frozen: bool) -> None:
    found = played(number, outage(number, (), heals=not frozen))
    assert found.curve.lost == (Fraction(0), Fraction(0))
    assert found.route is None
    assert found.curve.over == TimeBounds(Fraction(0), Fraction(0))


some = st.integers(1, 4).flatmap(
    lambda number: st.tuples(
        st.just(number), st.sets(st.integers(1, number), min_size=1, max_size=number)
    )
)


@given(some, st.integers(0, 120), st.integers(0, 120))
def test_a_longer_grace_period_never_loses_less(
    case: tuple[int, set[int]], grace: int, more: int
) -> None:
    number, nodes = case
    short, long = (
        played(number, outage(number, nodes, said=said(grace=each))).curve.lost
        for each in (grace, grace + more)
    )
    assert short[0] <= long[0]
    assert short[1] <= long[1]


@given(some, st.integers(0, 120), st.booleans())
def test_healing_never_loses_more_than_frozen(
    case: tuple[int, set[int]], grace: int, starts: bool
) -> None:
    number, nodes = case
    durations = said(grace=grace, **({"start_up": 30} if starts else {}))
    frozen, healing = (
        played(number, outage(number, nodes, said=durations, heals=heals)).curve
        for heals in (False, True)
    )
    for one, other in zip(healing.lost, frozen.lost, strict=True):
        assert one <= other
    assert frozen.steps == (frozen.steps[0],)
    assert frozen.over == NEVER


def said(**durations: int) -> dict[str, TimeBounds]:
    names = {"grace": "node-monitor-grace-period", "start_up": "start-up"}
    return {names[name]: seconds(value) for name, value in durations.items()}


@given(some)
def test_what_is_not_known_to_heal_is_between_both(case: tuple[int, set[int]]) -> None:
    number, nodes = case
    unknown = played(number, outage(number, nodes, topology=None)).curve.lost
    frozen = played(number, outage(number, nodes, heals=False)).curve.lost
    healing = played(number, outage(number, nodes, heals=True)).curve.lost
    assert unknown[0] <= healing[0]
    assert unknown[1] >= frozen[1]


def test_one_of_two_is_lost_until_it_leaves_the_rules() -> None:
    found = played(2, outage(2, (1,), said=said(grace=40)))
    half = Fraction(1, 2)
    assert found.first == (half, half)
    assert found.curve.steps == (
        LossStep(Fraction(0), half, half),
        LossStep(Fraction("28.6"), Fraction(0), half),
        LossStep(Fraction(56), Fraction(0), Fraction(0)),
    )
    assert found.curve.over == TimeBounds(Fraction("28.6"), Fraction(56))
    assert found.curve.lost == (Fraction("14.3"), Fraction(28))


def test_a_service_without_endpoints_left_refuses_until_a_pod_comes() -> None:
    scenario = outage(1, (1,), said=said(grace=40, start_up=10))
    found = played(1, scenario)
    (fate,) = found.fates.values()
    assert found.curve.steps[0] == LossStep(Fraction(0), Fraction(1), Fraction(1))
    assert found.curve.over == fate.replaced
    assert fate.replaced.earliest is not None
    assert fate.removed.latest is not None
    assert fate.removed.latest < fate.replaced.earliest
    never = played(1, outage(1, (1,), said=said(grace=40)))
    assert never.curve.over.latest is None


def test_rules_that_nothing_lists_may_draw_others() -> None:
    """A route that may lead to endpoints elsewhere by then is refused, or is not."""
    (service,) = view(1).services
    dead = frozenset(service.endpoints)
    fate = Replacement(cause=Cause.REPLACED, removed=seconds(5), replaced=NEVER)

    def after(listed: dict[tuple[str, str, int], object]) -> LossStep:
        (found,) = play(
            [service],
            Dead(endpoints=dead),
            lambda _, ends: dict.fromkeys(ends, fate),
            listed,  # type: ignore[arg-type]  # Specs, or none
            UNTIL,
        )
        return found.curve.at(Fraction(10))

    refused, either = (Fraction(1), Fraction(1)), (Fraction(0), Fraction(1))
    step = after({(NAME, "tcp", 4): spec(1)})
    assert (step.lower, step.upper) == refused
    step = after({})
    assert (step.lower, step.upper) == either
    elsewhere = ApiEndpoint(address=address(9), port=80, spellings=(), is_ready=True)
    more = spec(1, endpoints=(*spec(1).endpoints, elsewhere))
    step = after({(NAME, "tcp", 4): more})
    assert (step.lower, step.upper) == either
    step = after({(NAME, "tcp", 4): replace(more, internal_local=True)})
    assert (step.lower, step.upper) == refused


def test_a_node_that_restarts_without_an_api_has_no_service() -> None:
    found = played(2, outage(2, (), heals=False, reboots_after=Fraction(120)))
    assert found.curve.steps == (
        LossStep(Fraction(0), Fraction(0), Fraction(0)),
        LossStep(Fraction(120), Fraction(1), Fraction(1)),
    )
    scenario = outage(2, (), heals=False, reboots_after=Fraction(120), api_back=Fraction(600))
    assert scenario.reboot == Reboot(at=Fraction(120), rules=TimeBounds(Fraction(600), None))
    step = played(2, scenario).curve.at(Fraction(601))
    assert (step.lower, step.upper) == (Fraction(0), Fraction(1))


def test_dead_rules_of_a_dead_proxy_stay() -> None:
    found = played(2, outage(2, (1,), proxy_dead=True))
    assert found.curve.lost == (Fraction(1800), Fraction(1800))


def test_while_living_nodes_may_be_silent_all_may_be_lost() -> None:
    """Their endpoints may leave the rules, also of Services that have none on a dead node."""
    on_first = replace(
        APART,
        api=("n1", "m"),
        controllers=("n1", "m"),
        load_balancer=LoadBalancer.CLIENT_SIDE,
    )
    for nodes in ((1,), (1, 2)):
        found = played(3, outage(3, nodes, topology=on_first)).curve
        for second, upper in ((28, len(nodes)), (30, 3), (104, 3), (140, 0)):
            share = found.at(Fraction(second)).upper
            assert abs(share - Fraction(upper, 3)) < 4 * OFF
    dead_proxy = played(3, outage(3, (1,), topology=on_first, proxy_dead=True)).curve
    assert len(dead_proxy.steps) == 1


def test_pods_that_nothing_moves_are_gone_for_good() -> None:
    behind = workloads(1, {1: replace(workloads(1).pods["ns/p1"], owner="DaemonSet")})
    found = played(1, outage(1, (1,), behind, said=said(grace=40, start_up=10)))
    assert found.curve.lost == (Fraction(3600), Fraction(3600))


@pytest.mark.parametrize(
    ("steps", "over"),
    [
        ([(0, 0, 0)], seconds(0)),
        ([(0, 1, 1)], NEVER),
        ([(0, 1, 1), (5, 0, 1)], TimeBounds(Fraction(5), None)),
        ([(0, 1, 1), (5, 0, 1), (7, 0, 0)], seconds(5, 7)),
        ([(0, 1, 1), (5, 0, 0), (7, 1, 1), (9, 0, 0)], seconds(9)),
    ],
)
def test_a_curve_is_over_when_nothing_follows(
    steps: list[tuple[int, int, int]], over: TimeBounds
) -> None:
    made = tuple(LossStep(*map(Fraction, step)) for step in steps)
    assert Curve(steps=made, until=UNTIL).over == over


def test_the_integral_is_that_of_the_steps() -> None:
    steps = (
        LossStep(Fraction(0), Fraction(1, 2), Fraction(1)),
        LossStep(Fraction(8), *2 * [Fraction(0)]),
    )
    assert Curve(steps=steps, until=UNTIL).lost == (Fraction(4), Fraction(8))
