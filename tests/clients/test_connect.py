"""Clients that try pods themselves: what is said of many holds however many of them are dead."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.clients import connect
from analyzer.clients.connect import connect_to_pods
from analyzer.clients.connectors import CONNECTORS
from analyzer.clients.operations import ends
from analyzer.clients.outcome import outcome
from analyzer.clients.responses import RESPONSES_OF_THE_DEAD, FlowResponse
from analyzer.clients.walk import FractionRange, Walk
from tests.support.effort import examples


@pytest.mark.parametrize(("perhaps", "pods"), [(False, 1_000), (True, 1_000)])
def test_a_client_may_try_many_pods(*, perhaps: bool, pods: int) -> None:
    counts = {FlowResponse.SILENT: pods}
    none: dict[FlowResponse, int] = {}
    given = (none, counts) if perhaps else (counts, none)
    found = outcome(connect_to_pods(CONNECTORS["headless"], *given, (), ends))
    assert found.fails == (Fraction(not perhaps), Fraction(1))


@examples(30, 1_000)
@given(
    sure=st.dictionaries(st.sampled_from(FlowResponse), st.integers(0, 2), max_size=2),
    perhaps=st.dictionaries(
        st.sampled_from(RESPONSES_OF_THE_DEAD), st.integers(1, 2), min_size=1, max_size=2
    ),
    name=st.sampled_from(["headless", "proxy-by-pod-ip"]),
)
def test_what_holds_of_each_number_of_pods_is_within_what_is_said_of_many(
    sure: dict[FlowResponse, int], perhaps: dict[FlowResponse, int], name: str
) -> None:
    with patch.object(connect, "_FEW", -1):
        many = Walk(connect_to_pods(CONNECTORS[name], sure, perhaps, (), ends))
    numbers = [range(each + 1) for each in perhaps.values()]
    for dead in product(*numbers):
        counts = dict(sure)
        for fate, fails, most in zip(perhaps, dead, perhaps.values(), strict=True):
            counts[fate] = counts.get(fate, 0) + fails
            lives = counts.get(FlowResponse.ANSWERED, 0) + most - fails
            counts[FlowResponse.ANSWERED] = lives
        one = Walk(connect_to_pods(CONNECTORS[name], counts, {}, (), ends))
        assert within(one.fails(), many.fails())
        assert within(one.delay(), many.delay())
        for result, time in one.ends():
            assert within(one.chance(result, time), many.chance(result, time))
            for seconds in (time.least, time.most):
                assert within(one.over_by(seconds), many.over_by(seconds))


def within(inner: FractionRange, outer: FractionRange) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
