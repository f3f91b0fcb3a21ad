"""What becomes of one new flow: bounds that hold, and that are what `loss` says."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.clients.responses import (
    RESPONSES,
    RESPONSES_OF_THE_DEAD,
    FlowResponse,
    Lot,
    lot,
    lot_of,
    mixed,
)
from analyzer.failure.models import dead
from analyzer.failure.route_loss import route_loss
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import FrontendKind, Source
from analyzer.model.cluster import Cluster
from analyzer.parsers.iptables_save import parse
from tests.support.answers import RICH
from tests.support.captures import FIXTURES, Capture
from tests.support.dumps import dump, two_endpoints
from tests.support.effort import examples

CAPTURES = [Capture(path) for path in sorted(FIXTURES.glob("*/*/iptables-*-save.txt"))]
_SETS = st.frozensets(st.sampled_from(RESPONSES), min_size=1)


@st.composite
def truths(draw: st.DrawFn) -> tuple[list[tuple[Fraction, Fraction, frozenset[FlowResponse]]], Lot]:
    """Pieces, and the lot of which they tell: each piece's share is divided among its fates."""
    weights = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(any))
    pieces, true = [], dict.fromkeys(RESPONSES, Fraction(0))
    for weight in weights:
        share, may = Fraction(weight, sum(weights)), draw(_SETS)
        slack = Fraction(draw(st.integers(0, 2)), 10)
        pieces.append((max(Fraction(0), share - slack), min(Fraction(1), share + slack), may))
        each = sorted(may, key=RESPONSES.index)
        parts = draw(st.lists(st.integers(0, 3), min_size=len(each), max_size=len(each)))
        parts[0] += not any(parts)
        for fate, part in zip(each, parts, strict=True):
            true[fate] += share * Fraction(part, sum(parts))
    return pieces, Lot(tuple((true[f], true[f]) for f in RESPONSES))


@given(truths())
@examples(60, 1_000)
def test_a_lot_holds_all_that_its_pieces_may_be(
    given_: tuple[list[tuple[Fraction, Fraction, frozenset[FlowResponse]]], Lot],
) -> None:
    pieces, true = given_
    for (lower, upper), (share, _) in zip(lot(pieces).bounds, true.bounds, strict=True):
        assert lower <= share <= upper


@given(truths(), st.lists(st.fractions(-5, 5), min_size=4, max_size=4))
@examples(60, 1_000)
def test_the_least_mean_is_no_more_than_any(
    given_: tuple[list[tuple[Fraction, Fraction, frozenset[FlowResponse]]], Lot],
    values: list[Fraction],
) -> None:
    pieces, true = given_
    mean = sum((v * share for v, (share, _) in zip(values, true.bounds, strict=True)), Fraction(0))
    assert lot(pieces).least(values) <= mean
    assert true.least(values) == mean


@given(truths(), truths(), st.integers(0, 4))
@examples(30, 500)
def test_a_mixture_holds_what_its_parts_hold(
    one: tuple[object, Lot], other: tuple[object, Lot], part: int
) -> None:
    chance = Fraction(part, 4)
    found = mixed([(chance, one[1]), (1 - chance, other[1])])
    assert found.is_exact
    assert found.fails[0] == chance * one[1].fails[0] + (1 - chance) * other[1].fails[0]


@pytest.mark.parametrize("capture", CAPTURES, ids=str)
def test_of_one_flow_it_is_what_loss_says(capture: Capture) -> None:
    view = capture.view()
    died = dead(view, Cluster(), endpoints=[str(end) for end in view.endpoints[:1]])
    seen = 0
    for service in view.services:
        for route in service.routes:
            lost = route_loss(route, died)
            refusal = dict(service.refusals).get(route.frontend)
            found = lot_of(lost, died, lambda _: FlowResponse.SILENT, refusal)
            lower, upper = (
                each.as_fraction() for each in (lost.survives.lower, lost.survives.upper)
            )
            # Who is sent to nobody may be answered all the same, at an address that is somebody's.
            assert found.bounds[0][0] == lower
            assert found.bounds[0][1] >= upper
            if not lost.nowhere.upper and not route.losses():
                assert found.bounds[0][1] == upper
            seen += 1
    assert seen or not view.services


@pytest.mark.parametrize("fate", RESPONSES_OF_THE_DEAD)
def test_the_dead_have_the_fate_that_was_said(fate: FlowResponse) -> None:
    view = Recogniser(parse(dump(*two_endpoints()), "dump.txt"), Cluster()).view()
    died = dead(view, Cluster(), endpoints=["10.0.0.1"])
    (service,) = view.services
    found = lot_of(route_loss(service.routes[0], died), died, lambda _: fate, None)
    half = (Fraction(1, 2), Fraction(1, 2))
    assert {f for f, each in zip(RESPONSES, found.bounds, strict=True) if each == half} == {
        FlowResponse.ANSWERED, fate,
    }  # fmt: skip


def test_what_is_not_known_may_be_anything_and_a_refusal_is_one() -> None:
    view = Recogniser(parse(RICH, "dump.txt"), Cluster()).view()
    died = dead(view, Cluster(), endpoints=["10.0.0.1"])
    by_name = {each.name.text: each for each in view.services}
    cluster = by_name["ns/a:http"].cluster_route
    assert cluster is not None
    found = lot_of(route_loss(cluster, died), died, lambda _: FlowResponse.SILENT, None)
    assert not found.is_exact
    empty = by_name["ns/empty:dns"]
    frontend = next(f for f in empty.frontends if f.kind is FrontendKind.CLUSTER_IP)
    assert dict(empty.refusals)[frontend] == "reject"


def test_long_fractions_are_rounded_outwards() -> None:
    third = Fraction(3**700, 3**701 + 1)
    found = lot(
        [
            (third, third, frozenset({FlowResponse.ANSWERED})),
            (1 - third, 1 - third, frozenset({FlowResponse.SILENT})),
        ]
    )
    lower, upper = found.bounds[0]
    assert lower < third < upper
    assert upper - lower <= Fraction(1, 2**255)


def test_what_the_node_itself_stops_is_drawn_anew() -> None:
    row = "-A FORWARD -d 10.0.0.2/32 -m conntrack --ctstate NEW -j DROP"
    stops = f"*filter\n:FORWARD ACCEPT [0:0]\n{row}\nCOMMIT\n"
    view = Recogniser(parse(dump(*two_endpoints()) + stops, "dump.txt"), Cluster()).view()
    died = dead(view, Cluster(), endpoints=["10.0.0.1"])
    (service,) = view.services
    route = next(r for r in service.routes if r.source is Source.POD)
    assert route.losses()
    found = lot_of(route_loss(route, died), died, lambda _: FlowResponse.SILENT, None)
    half = Fraction(1, 2)
    # Half is silent for good; of the other half a packet that is sent again may do better.
    assert found.bounds[RESPONSES.index(FlowResponse.SILENT)] == (half, Fraction(1))
    assert found.bounds[0] == (Fraction(0), half)
