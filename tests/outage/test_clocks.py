"""Each duration's bounds hold whatever the loops' phases are: the loops are played."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from analyzer.outage.clocks import DURATIONS, NEVER, Clocks, TimeBounds

CLOCKS = Clocks(said={})
#: Parts of a period, exactly.
phases = st.fractions(min_value=0, max_value=1, max_denominator=1_000)
spans = st.one_of(
    st.just(NEVER),
    st.builds(
        lambda a, b, known: TimeBounds(min(a, b), max(a, b) if known else None),
        phases,
        phases,
        st.booleans(),
    ),
)


def exactly(**said: int) -> Clocks:
    given = {
        name.replace("_", "-"): TimeBounds(Fraction(n), Fraction(n)) for name, n in said.items()
    }
    return Clocks(said=given)


def within(time: Fraction, span: TimeBounds) -> bool:
    assert span.earliest is not None
    assert span.latest is not None
    return span.earliest <= time <= span.latest


def ticks(phase: Fraction, period: Fraction, after: Fraction) -> Fraction:
    """Return when a loop next looks, no sooner than `after`."""
    number = -(-(after - phase * period) // period)
    return phase * period + number * period


@given(phases, phases, phases, st.sampled_from([40, 50, 7]))
def test_a_dead_node_is_not_ready_within_its_bounds(
    renewed: Fraction, look: Fraction, jitter: Fraction, grace: int
) -> None:
    """The controller's loop: it sees a renewal at a look, and its age at later ones."""
    clocks = exactly(node_monitor_grace_period=grace, latency=0)
    last = -renewed * 10 * (1 + jitter * Fraction(4, 100))  # before the death, which is at 0
    period = Fraction(5)
    seen = ticks(look, period, last)
    unready = ticks(look, period, seen + grace)
    if unready == seen + grace:  # it has to be more than that
        unready += period
    assert within(max(unready, Fraction(0)), clocks.not_ready())


@given(phases, phases, phases, phases, phases)
def test_a_leader_is_elected_within_its_bounds(
    renewed: Fraction, seen: Fraction, retry: Fraction, jitter: Fraction, more: Fraction
) -> None:
    clocks = exactly(latency=0)
    last = -renewed * 2
    wait = 2 * (1 + jitter * Fraction(12, 10))
    observed = last + seen * wait
    expired = observed + 15
    elected = expired + retry * 2 * (1 + more * Fraction(12, 10))
    assert within(elected, clocks.election)


@given(phases, phases)
def test_an_api_server_leaves_within_its_bounds(renewed: Fraction, look: Fraction) -> None:
    clocks = exactly(latency=0, min_sync_period=0)
    expired = -renewed * 10 + 15
    assert within(ticks(look, Fraction(10), expired), clocks.api_removed())


@given(phases, phases, phases, st.integers(0, 60))
def test_a_step_that_waits_for_a_dead_connection_is_within_its_bounds(
    renewed: Fraction, look: Fraction, kept: Fraction, grace: int
) -> None:
    """What was written to a dead API server is written again at the next look."""
    clocks = exactly(node_monitor_grace_period=grace, latency=0)
    period = Fraction(5)
    unready = ticks(look, period, ticks(look, period, -renewed * 10) + grace)
    lives = kept * 45
    if unready < lives:
        unready = ticks(look, period, lives)
    assert within(max(unready, Fraction(0)), clocks.not_ready(is_stuck=True))


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_longer_grace_period_is_never_shorter(one: int, more: int) -> None:
    short = exactly(node_monitor_grace_period=one)
    long = exactly(node_monitor_grace_period=one + more)
    for elect in (False, True):
        before, after = short.not_ready(may_elect=elect), long.not_ready(may_elect=elect)
        assert before.earliest is not None
        assert after.earliest is not None
        assert before.earliest <= after.earliest
        assert (before.latest or 0) <= (after.latest or 0)


@given(spans, spans)
def test_either_of_two_spans_contains_both(one: TimeBounds, other: TimeBounds) -> None:
    both = one | other
    for each in (one, other):
        if each.earliest is not None:
            assert both.earliest is not None
            assert both.earliest <= each.earliest
        assert both.latest is None or (each.latest is not None and each.latest <= both.latest)


@given(spans, spans)
def test_what_never_begins_never_ends(one: TimeBounds, other: TimeBounds) -> None:
    total = one + other
    assert (total.earliest is None) is (one.earliest is None or other.earliest is None)
    assert (total.latest is None) is (one.latest is None or other.latest is None)


def test_a_controller_that_has_to_be_elected_begins_anew() -> None:
    lone, elected = CLOCKS.not_ready(), CLOCKS.not_ready(may_elect=True)
    assert lone.earliest == elected.earliest
    assert lone.latest is not None
    assert elected.latest is not None
    assert elected.latest >= lone.latest + 13


def test_kubelets_tell_the_default_of_the_grace_period() -> None:
    grace = "node-monitor-grace-period"
    assert Clocks(said={}).of(grace) == TimeBounds(Fraction(40), Fraction(50))
    assert Clocks(said={}, newest_kubelet=(1, 32)).of(grace) == TimeBounds(
        Fraction(40), Fraction(50)
    )
    fifty = TimeBounds(Fraction(50), Fraction(50))
    assert Clocks(said={}, newest_kubelet=(1, 33)).of(grace) == fifty
    said = {grace: TimeBounds(Fraction(5), Fraction(5))}
    assert Clocks(said=said, newest_kubelet=(1, 36)).of(grace) == said[grace]


def test_each_default_has_its_source_or_is_called_a_guess() -> None:
    guesses = {name for name, each in DURATIONS.items() if not each.source}
    assert guesses == {"latency", "start-up", "settle"}
    for each in DURATIONS.values():
        for source in filter(None, each.source.split("; ")):
            assert ".go" in source or "#" in source
