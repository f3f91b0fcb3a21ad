"""Suspects: the tests are exact, the dead are named, and nobody else is too often."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from ipaddress import ip_address
from itertools import starmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.binomial import at_least, at_most
from analyzer.failure.suspects import Suspect, suspects
from analyzer.failure.tracked import FlowServices
from analyzer.kubeproxy.view import Endpoint, View
from analyzer.model.conntrack import Tracked
from analyzer.model.value import replace
from analyzer.parsers.iptables_save import parse
from tests.support.dumps import many_endpoints, view_of
from tests.support.effort import examples
from tests.support.flows import drawn, entry
from tests.support.reading import recogniser

RATE = 0.001


def judged(view: View, flows: list[Tracked], rate: float = RATE) -> tuple[Suspect, ...]:
    return suspects(FlowServices(view.services, ()).owned(flows), rate)


def named(view: View, flows: list[Tracked], rate: float = RATE) -> set[Endpoint]:
    return {each.endpoint for each in judged(view, flows, rate) if each.is_suspect}


def shares_of(view: View) -> dict[Endpoint, float]:
    (service,) = view.services
    route = service.cluster_route
    assert route is not None
    return {e: float(s.lower) for e, s in zip(*route.draws(), strict=True)}


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 15))
@examples(quick=60, soak=2_000)
def test_tails_are_those_of_the_binomial_distribution(hits: int, trials: int, part: int) -> None:
    share = Fraction(part, 16)
    exact = sum(
        (
            math.comb(trials, k) * share**k * (1 - share) ** (trials - k)
            for k in range(hits, trials + 1)
        ),
        Fraction(),
    )
    assert at_least(hits, trials, float(share)) == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
    below = 1 - float(exact) if hits else 0.0
    assert at_most(hits - 1, trials, float(share)) == pytest.approx(below, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("endpoints", "dead"), [(2, 1), (5, 2), (5, 4), (10, 1), (3, 2)])
def test_the_dead_are_named_and_no_other(endpoints: int, dead: int) -> None:
    view = view_of(many_endpoints(endpoints))
    shares = shares_of(view)
    gone = set([*shares][:dead])
    for seed in range(20):
        flows = drawn(random.Random(seed), 500, shares, gone, answering=0.98)
        assert named(view, flows) == gone


def test_where_all_answer_alike_somebody_is_named_no_more_often_than_was_asked_for() -> None:
    view = view_of(many_endpoints(5))
    shares, rate, runs = shares_of(view), 0.05, 300
    wrong = sum(
        bool(named(view, drawn(random.Random(seed), 200, shares, (), answering=0.7), rate))
        for seed in range(runs)
    )
    # One in a million times at the rate itself.
    assert at_least(wrong, runs, rate) > 1e-6


def test_one_that_takes_all_flows_cannot_be_told() -> None:
    view = view_of(many_endpoints(1))
    (endpoint,) = shares_of(view)
    (found,) = judged(view, [entry(at, endpoint, replied=False) for at in range(100)])
    assert (found.p_value, found.is_suspect, found.unanswered) == (None, False, 100)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            "-s {}/32 -p tcp -m tcp --sport 80 -j DROP",
            "rules end answers in table filter, chain FORWARD",
        ),
        (
            "-d {}/32 -p tcp -m tcp --dport 80 -j REJECT",
            "rules end flows in table filter, chain FORWARD",
        ),
        (
            "-s {}/32 -p tcp --sport 80 -m statistic --mode random --probability 0.5 -j DROP",
            "rules end some answers in table filter, chain FORWARD",
        ),
    ],
)
def test_rules_that_end_flows_or_answers_are_named(rule: str, told: str) -> None:
    dump = many_endpoints(2)
    one, two = shares_of(view_of(dump))
    chains = "".join(f":{name} ACCEPT [0:0]\n" for name in ("INPUT", "FORWARD", "OUTPUT"))
    other = f"*filter\n{chains}-A FORWARD {rule.format(one.address)}\nCOMMIT\n"
    own = (ip_address("192.0.2.1"),)
    view = recogniser(parse(dump + other, "dump.txt"), node_addresses=own).view()
    flows = [entry(at, one, replied=False) for at in range(60)]
    flows += [entry(100 + at, two, replied=True) for at in range(60)]
    found = {each.endpoint: each for each in judged(view, flows)}
    assert (found[one].is_suspect, found[one].way_lost) == (True, told)
    assert (found[two].is_suspect, found[two].way_lost) == (False, None)


def test_rules_that_concern_other_clients_are_not_named() -> None:
    dump = many_endpoints(2)
    one, two = shares_of(view_of(dump))
    chains = "".join(f":{name} ACCEPT [0:0]\n" for name in ("INPUT", "FORWARD", "OUTPUT"))
    rule = f"-A FORWARD -s 10.9.9.9/32 -d {one.address}/32 -p tcp -m tcp --dport 80 -j DROP"
    own = (ip_address("192.0.2.1"),)
    ruleset = parse(f"{dump}*filter\n{chains}{rule}\nCOMMIT\n", "dump.txt")
    view = recogniser(ruleset, node_addresses=own).view()
    flows = [entry(at, one, replied=False) for at in range(60)]
    flows += [entry(100 + at, two, replied=True) for at in range(60)]
    assert {each.way_lost for each in judged(view, flows)} == {None}
    # What was answered no rule has ended.
    other = parse(f"{dump}*filter\n{chains}{rule.replace('-s 10.9.9.9/32 ', '')}\nCOMMIT\n", "d")
    view = recogniser(other, node_addresses=own).view()
    answered = [replace(each, replied=True) for each in flows]
    assert {each.way_lost for each in judged(view, answered)} == {None}


def test_connections_of_long_ago_neither_save_nor_condemn() -> None:
    view = view_of(many_endpoints(2))
    one, two = shares_of(view)
    old = [entry(at, one, replied=True, state="ESTABLISHED") for at in range(500)]
    new = [entry(600 + at, one, replied=False) for at in range(60)]
    fine = [entry(700 + at, two, replied=True) for at in range(60)]
    assert named(view, [*old, *new, *fine]) == {one}
    assert named(view, old) == set()


def test_connections_that_came_between_two_takes_were_answered_now() -> None:
    view = view_of(many_endpoints(2))
    one, two = shares_of(view)
    flows = [entry(at, one, replied=False) for at in range(3)]
    new = [entry(700 + at, two, replied=True, state="ESTABLISHED") for at in range(60)]
    assert named(view, [*flows, *new]) == set()
    assert named(view, [*flows, *[replace(each, is_new=True) for each in new]]) == {one}


def test_flows_at_what_is_no_endpoint_any_more_do_not_count() -> None:
    view = view_of(many_endpoints(2))
    one, two = shares_of(view)
    gone = Endpoint(one.address + 100, 80)
    flows = [entry(at, gone, replied=False) for at in range(200)]
    flows += [entry(300 + at, (one, two)[at % 2], replied=True) for at in range(100)]
    assert named(view, flows) == set()


def test_counts_are_of_the_service_port() -> None:
    view = view_of(many_endpoints(2))
    one, two = shares_of(view)
    flows = [
        *starmap(lambda at, end: entry(at, end, replied=end is two), enumerate([one, two] * 9))
    ]
    first, second = judged(view, flows)
    assert (first.endpoint, first.unanswered, first.of_unanswered) == (one, 9, 9)
    assert (second.answered, second.of_answered, second.p_value) == (9, 9, None)


def test_of_many_endpoints_one_is_odd_by_chance() -> None:
    # Two flows without an answer, both at one of 250: once in 250 times, whichever it is.
    view = view_of(many_endpoints(250))
    one, *others = shares_of(view)
    flows = [entry(at, one, replied=False) for at in range(2)]
    flows += [entry(10 + at, end, replied=True) for at, end in enumerate(others)]
    first, *_ = judged(view, flows)
    assert first.p_value == pytest.approx(2 / 250**2)
    assert not first.is_suspect
    assert named(view, [*flows, *[entry(900 + at, one, replied=False) for at in range(2)]]) == {one}
