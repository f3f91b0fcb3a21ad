from __future__ import annotations

import pytest

from analyzer.failure.agreement import (
    FALSE_ALARM_RATE,
    client_agrees,
    clients_agree,
    judge,
    judge_all,
    rate_of_trials,
)
from analyzer.failure.binomial import (
    p_value_within,
)
from analyzer.model.measurement import ClientTrial, Measurement
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace
from tests.support.answers import ALIVE, DEAD, HALF, counted, measured


def test_a_right_measurement_agrees() -> None:
    verdict = judge(measured(DEAD, ALIVE))
    assert verdict.faults == ()
    assert [v.agrees for v in verdict.endpoints] == [True, True]


@pytest.mark.parametrize(
    ("measurement", "fault"),
    [
        (measured(DEAD, counted("10.1.0.2", 4_978)), "1 flows unaccounted for"),
        (
            measured(DEAD, counted("10.1.0.2", 4_979, counter=4_980)),
            "1 packets more or fewer in rule counters than in captures",
        ),
        (
            measured(counted("10.1.0.1", 5_021, dead=True, answered=1), ALIVE),
            "1 flows answered by 10.1.0.1:53, which is dead",
        ),
        (
            measured(DEAD, counted("10.1.0.2", 4_979, answered=4_978)),
            "1 flows not answered by 10.1.0.2:53, alive",
        ),
        (measured(DEAD, ALIVE, duplicates=2), "2 flows arrived twice"),
        (measured(DEAD, ALIVE, dropped=3), "3 packets dropped by the capture"),
    ],
)
def test_what_is_no_matter_of_chance_must_hold_exactly(
    measurement: Measurement, fault: str
) -> None:
    verdict = judge(measurement)
    assert verdict.faults == (fault,)
    assert not verdict.agrees


def test_a_wrong_share_disagrees() -> None:
    quarter = Bounds(Dyadic.of(1, 2), Dyadic.of(1, 2))
    verdict = judge(measured(counted("10.1.0.1", 5_021, dead=True, predicted=quarter), ALIVE))
    assert [v.agrees for v in verdict.endpoints] == [False, True]
    of_endpoint, of_the_rest = verdict.faults
    assert of_endpoint.startswith("10.1.0.1:53 drew 5021 of 10000 flows, whose predicted share ")
    # The shares leave a quarter for flows that pass unchanged, and none did.
    assert of_the_rest.startswith("0 flows left the node unchanged")


def test_a_flow_that_passed_disagrees_where_every_flow_should_meet_an_endpoint() -> None:
    assert not judge(measured(DEAD, counted("10.1.0.2", 4_978), passed=1)).agrees


def test_rule_counters_that_were_not_read_are_no_difference() -> None:
    assert judge(measured(DEAD, counted("10.1.0.2", 4_979, counter=None))).agrees


@pytest.mark.parametrize(
    ("source", "rejected", "packets", "agrees"),
    [
        ("pod", 0, (100, 100), True),  # OUTPUT drops every error, so that no sender gets one
        ("pod", 60, (100, 40), True),
        ("pod", 60, (100, 41), False),
        ("pod", 100, (100, 1), False),
        ("node", 100, (200, 0), True),  # one rule ends the flows and the errors about them
        ("node", 100, (201, 0), False),
        ("node", 100, (99, 0), False),
    ],
)
def test_rules_may_end_the_errors_that_no_sender_gets(
    source: str, rejected: int, packets: tuple[int, int], agrees: bool
) -> None:
    rules = "filter: -A KUBE-SERVICES -j REJECT", "filter: -P OUTPUT DROP"
    found = replace(
        measured(),
        source=source,
        flows=100,
        ended=Bounds(ALWAYS, ALWAYS),
        rejected=rejected,
        ended_by=tuple(zip(packets, rules, strict=True)),
    )
    assert judge(found).agrees is agrees


def test_further_flows_of_clients_with_session_affinity_are_ended_too() -> None:
    rule = "filter: -P FORWARD DROP"
    found = replace(measured(), flows=100, ended=Bounds(ALWAYS, ALWAYS), repeated_ended=100)
    assert judge(replace(found, ended_by=((200, rule),))).agrees
    assert not judge(replace(found, ended_by=((100, rule),))).agrees
    (fault,) = judge(replace(measured(DEAD, ALIVE), repeated_ended=3)).faults
    assert fault == "3 second flows of clients with session affinity unaccounted for"


@pytest.mark.parametrize(("packets", "agrees"), [(10_000, True), (20_000, True), (20_001, False)])
def test_answers_to_further_flows_of_clients_may_be_ended_too(packets: int, agrees: bool) -> None:
    silent = replace(
        counted("10.1.0.1", 10_000, answered=0, predicted=Bounds(ALWAYS, ALWAYS)),
        unanswered=Bounds(ALWAYS, ALWAYS),
    )
    found = replace(measured(silent), ended=Bounds(NEVER, HALF.upper), repeated=10_000)
    rule = "filter: -A FORWARD -o eth0 -j DROP"
    assert judge(replace(found, ended_by=((packets, rule),))).agrees is agrees


@pytest.mark.parametrize(("landed", "agrees"), [(0, True), (5_000, True), (10_000, False)])
def test_bounds_explain_every_count_between_them(landed: int, agrees: bool) -> None:
    bounds = Bounds(NEVER, HALF.upper)
    one = counted("10.1.0.1", landed, predicted=bounds)
    rest = counted("10.1.0.2", 10_000 - landed, predicted=Bounds(HALF.lower, ALWAYS))
    assert judge(measured(one, rest)).agrees is agrees


def test_no_flows_speak_against_nothing() -> None:
    assert p_value_within(0, 0, HALF) == 1.0


@pytest.mark.parametrize(("succeeded", "agrees"), [(0, False), (28, True), (60, False)])
def test_a_client_agrees_when_its_successes_are_explained(succeeded: int, agrees: bool) -> None:
    trial = ClientTrial(
        command="dig",
        target="10.2.3.4",
        family="ip",
        runs=60,
        succeeded=succeeded,
        succeeds=HALF,
        failure_seconds=(),
    )
    assert client_agrees(trial) is agrees


@pytest.mark.parametrize(
    ("seconds", "agrees"),
    [
        ((), True),
        ((9.1, 10.0, 10.1), True),
        ((8.9, 10.0, 10.1), False),  # nobody gives up sooner
        ((10.0, 11.6, 30.0), True),  # one run in the way of another
        ((10.0, 11.8, 11.9), False),
    ],
)
def test_a_client_agrees_when_its_failures_take_as_long_as_they_should(
    seconds: tuple[float, ...], agrees: bool
) -> None:
    trial = ClientTrial(
        command="getent",
        target="10.2.3.4",
        family="ip",
        runs=6,
        succeeded=3,
        succeeds=HALF,
        failure_seconds=seconds,
        failure_takes=(10.0, 10.0),
    )
    assert client_agrees(trial) is agrees


def test_a_count_that_is_wrong_alone_may_be_chance_among_many() -> None:
    """The run's rate is divided: what one of 100 measurements may be, one of one may not."""
    landed = next(n for n in range(5_000, 6_000) if p_value_within(n, 10_000, HALF) < 3e-7)
    odd = measured(counted("10.1.0.1", 10_000 - landed, dead=True), counted("10.1.0.2", landed))
    assert not judge(odd).agrees
    (alone,) = judge_all([odd])
    assert (alone.agrees, alone.false_alarm_rate) == (False, FALSE_ALARM_RATE)
    among = judge_all([odd, *[measured(DEAD, ALIVE)] * 99])
    assert all(each.agrees for each in among)
    assert {each.false_alarm_rate for each in among} == {FALSE_ALARM_RATE / 100}


def test_trials_share_the_rate_of_those_that_are_predicted() -> None:
    known = ClientTrial(
        command="dig",
        target="x",
        family="ip",
        runs=60,
        succeeded=20,
        succeeds=HALF,
        failure_seconds=(),
    )
    unknown = replace(known, succeeds=None)
    assert rate_of_trials([known, unknown, known]) == FALSE_ALARM_RATE / 2
    assert rate_of_trials([unknown]) == FALSE_ALARM_RATE
    never = replace(known, succeeded=0)
    assert [clients_agree(each) for each in ([known, unknown], [known, never], [unknown])] == [
        True,
        False,
        None,
    ]
