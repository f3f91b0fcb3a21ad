"""The routes of one frontend for another: the same shares, of its own endpoints."""

from __future__ import annotations

from ipaddress import IPv4Address

from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.fastpath.carried import Carried, EndsOf
from analyzer.kubeproxy.view import Endpoint, Frontend, FrontendKind, Route, Share, Source
from analyzer.model.endings import Ending, EndKind
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from tests.support.effort import examples

HALF = Bounds(Dyadic(1, 1), Dyadic(1, 1))
ALL = Bounds(ALWAYS, ALWAYS)
DROPPED = ((Ending(kind=EndKind.DROPPED, how="policy"), HALF),)


def endpoints(network: int, count: int) -> tuple[Endpoint, ...]:
    return tuple([Endpoint(IPv4Address(f"10.{network}.0.{at}"), 80) for at in range(count)])


def frontend(number: int) -> Frontend:
    return Frontend(FrontendKind.CLUSTER_IP, IPv4Address(f"10.96.0.{number}"), 80)


@st.composite
def routes(draw: st.DrawFn, ends: tuple[Endpoint, ...]) -> Route:
    shares = [
        Share(
            endpoint,
            draw(st.sampled_from((HALF, ALL))),
            draw(st.sampled_from((True, False, None))),
            draw(st.sampled_from(((), DROPPED))),
        )
        for endpoint in draw(st.permutations(ends))
        if draw(st.booleans())
    ]
    source = draw(st.sampled_from(Source))
    return Route(frontend(1), source, tuple(shares), draw(st.sampled_from((NEVER, Dyadic(1, 1)))))


@examples(50, 2000)
@given(st.data(), st.integers(0, 4))
def test_all_but_frontend_and_endpoints_is_the_same(data: st.DataObject, count: int) -> None:
    one, other = endpoints(1, count), endpoints(2, count)
    first = data.draw(st.lists(routes(one), max_size=3))
    found = Carried([(route, None) for route in first], one).to(frontend(2), EndsOf(other))
    own = dict(zip(one, other, strict=True))
    assert [address for _, address in found] == [None] * len(first)
    for (route, _), walked in zip(found, first, strict=True):
        shares = tuple(
            [Share(own[s.endpoint], s.share, s.masquerade, s.lost) for s in walked.shares]
        )
        wanted = Route(frontend(2), walked.source, shares, walked.unresolved)
        assert route == wanted
        assert hash(route) == hash(wanted)
        assert tuple(route.shares[:1]) == shares[:1]
        assert list(map(tuple, route.columns())) == list(map(tuple, wanted.columns()))
        assert list(map(tuple, route.draws())) == list(map(tuple, wanted.draws()))
        assert tuple(route.masquerades()) == tuple(wanted.masquerades())
        assert tuple(route.losses()) == tuple(wanted.losses())


def test_what_is_equal_is_one_list_for_reports_to_know_again() -> None:
    ends = endpoints(1, 2)
    shares = tuple([Share(each, HALF, None) for each in ends])
    ways = [(Route(frontend(1), source, shares, NEVER), None) for source in Source]
    found = Carried(ways, ends).to(frontend(2), EndsOf(endpoints(2, 2)))
    printed, drawn = zip(*[route.columns() for route, _ in found], strict=True)
    assert len(set(map(id, printed))) == 1
    assert len(set(map(id, drawn))) == 1
