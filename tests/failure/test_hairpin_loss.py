"""What an endpoint loses of its own flows: one sum over all endpoints, one sender at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from ipaddress import IPv4Network
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.hairpin_loss import hairpin_losses, route_of_sender
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import DrawnLosses, RouteLoss
from analyzer.kubeproxy.view import Endpoint, Route, Share, Source
from analyzer.model.endings import Ending, Endings, EndKind, total
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace
from tests.support.commands import Command
from tests.support.effort import examples
from tests.support.noise import KNOWN, NOISE
from tests.support.routes import ENDPOINTS, FRONTEND, exact_routes, sets_of_endpoints, with_routes

_PARTS = (NEVER, Dyadic.of(1, 2), Dyadic.of(1, 1), ALWAYS)
_LOST = [
    ((Ending(kind=EndKind.DROPPED, rule=f"-j DROP {n}"), Bounds(part, part)),) if part else ()
    for n, part in enumerate(_PARTS)
]
_losing = st.lists(st.sampled_from(_LOST), min_size=6, max_size=6)


def with_lost(whole: Route, lost: Sequence[Endings], source: Source) -> Route:
    shares = (replace(s, lost=e) for s, e in zip(whole.shares, lost, strict=False))
    return replace(whole, source=source, shares=tuple(shares))


def found(pods: Route, hairpin: Route, dead: Dead) -> RouteLoss | None:
    every = list(hairpin_losses(with_routes(pods, hairpin), DrawnLosses(dead)))
    assert len(every) < 2
    return every[0] if every else None


def truth(pods: Route, hairpin: Route, dead: set[Endpoint]) -> Fraction | None:
    """Return the highest loss of any living endpoint that loses hairpin flows, by trying all."""
    every = []
    for own in hairpin.shares:
        if not own.lost or own.endpoint in dead:
            continue
        parts = []
        for each in pods.shares:
            ends = own.lost if each.endpoint == own.endpoint else each.lost
            gone = Fraction(1) if each.endpoint in dead else total(ends).lower.as_fraction()
            parts.append(each.share.lower.as_fraction() * gone)
        every.append(sum(parts, Fraction()))
    return max(every, default=None)


@given(whole=exact_routes(), others=_losing, own=_losing, dead=sets_of_endpoints)
def test_an_endpoint_loses_its_hairpin_flows_and_what_others_get(
    whole: Route, others: list[Endings], own: list[Endings], dead: set[Endpoint]
) -> None:
    pods, hairpin = with_lost(whole, others, Source.POD), with_lost(whole, own, Source.HAIRPIN)
    told = found(pods, hairpin, Dead(endpoints=frozenset(dead)))
    wanted = truth(pods, hairpin, dead)
    if told is None:
        assert wanted is None
    else:
        assert told.route is hairpin
        assert told.loss.is_exact
        assert told.loss.lower.as_fraction() == wanted
        assert told.survives.lower.as_fraction() == 1 - told.loss.lower.as_fraction()


@given(
    whole=exact_routes(),
    others=_losing,
    own=_losing,
    dead=sets_of_endpoints,
    uncertain=sets_of_endpoints,
    die=sets_of_endpoints,
)
def test_bounds_contain_what_is_lost_whatever_of_the_uncertain_dies(
    whole: Route,
    others: list[Endings],
    own: list[Endings],
    dead: set[Endpoint],
    uncertain: set[Endpoint],
    die: set[Endpoint],
) -> None:
    pods, hairpin = with_lost(whole, others, Source.POD), with_lost(whole, own, Source.HAIRPIN)
    told = found(pods, hairpin, Dead(endpoints=frozenset(dead), uncertain=frozenset(uncertain)))
    wanted = truth(pods, hairpin, dead | (uncertain & die))
    if told is None:
        assert wanted is None
        return
    # If all that might send are dead, nothing is lost.
    assert told.loss.lower.as_fraction() <= (wanted or 0)
    if wanted is not None:
        assert wanted <= told.loss.upper.as_fraction()
        assert uncertain or told.loss.is_exact


_eighths = (
    st.tuples(st.integers(0, 8), st.integers(0, 8))
    .map(sorted)
    .map(lambda ends: Bounds(Dyadic.of(ends[0], 3), Dyadic.of(ends[1], 3)))
)
_cuts = st.lists(st.integers(0, 16), min_size=6, max_size=6).map(sorted)
_more = st.lists(st.integers(0, 16), min_size=6, max_size=6)
#: Few, so that many senders have the same.
_ends = st.lists(
    st.one_of(st.just(()), _eighths.map(lambda b: ((Ending(kind=EndKind.DROPPED), b),))),
    min_size=1,
    max_size=2,
)


@examples(30, 3_000)
@given(
    _cuts,
    _more,
    _ends,
    _ends,
    sets_of_endpoints,
    st.lists(st.integers(0, 1), min_size=12, max_size=12),
)
def test_of_many_senders_the_one_that_may_lose_most_counts(
    cuts: list[int],
    more: list[int],
    others: list[Endings],
    own: list[Endings],
    dead: set[Endpoint],
    which: list[int],
) -> None:
    shares = tuple(
        Share(end, Bounds(Dyadic.of(b - a, 4), Dyadic.of(min(16, b - a + wide), 4)), None)
        for end, (a, b), wide in zip(ENDPOINTS, pairwise([0, *cuts]), more, strict=True)
    )
    whole = Route(FRONTEND, Source.POD, shares, NEVER)
    of_others = [others[n % len(others)] for n in which[:6]]
    of_own = [own[n % len(own)] for n in which[6:]]
    pods = with_lost(whole, of_others, Source.POD)
    marked = Dead(endpoints=frozenset(dead))
    told = found(pods, with_lost(whole, of_own, Source.HAIRPIN), marked)
    alone = [
        found(pods, with_lost(whole, [*[()] * at, each, *[()] * (5 - at)], Source.HAIRPIN), marked)
        for at, each in enumerate(of_own)
    ]
    losses = [each.loss for each in alone if each is not None]
    if told is None:
        assert not losses
    else:
        assert told.loss.upper == max(each.upper for each in losses)
        assert told.loss.lower <= max(each.lower for each in losses)


@pytest.mark.parametrize(
    "dead", [Dead(endpoints=frozenset()), Dead(endpoints=frozenset(), nodes=("n",))]
)
def test_where_the_other_flows_of_an_endpoint_go_may_not_be_known(dead: Dead) -> None:
    half = Bounds(Dyadic.of(1, 1), Dyadic.of(1, 1))
    own = Share(ENDPOINTS[0], half, masquerade=False, lost=_LOST[3])
    other = Share(ENDPOINTS[1], Bounds(ALWAYS, ALWAYS), masquerade=False)
    hairpin = Route(FRONTEND, Source.HAIRPIN, (own,), NEVER)
    told = found(Route(FRONTEND, Source.POD, (other,), NEVER), hairpin, dead)
    assert told is not None
    assert told.loss == Bounds(half.lower, ALWAYS)
    assert told.survives == Bounds(NEVER, half.lower)
    assert told.on_dead.upper == (ALWAYS if dead.is_anything else NEVER)


def test_an_endpoint_takes_the_route_of_the_smallest_network_that_it_is_in() -> None:
    route = Route(FRONTEND, Source.POD, (), NEVER)
    nets = ["10.0.0.0/8", "10.0.0.0/24", "192.168.0.0/24"]
    of_networks = [replace(route, network=IPv4Network(each)) for each in nets]
    hairpin = replace(route, source=Source.HAIRPIN)
    first = ENDPOINTS[0]
    assert route_of_sender(first, hairpin, [route, *of_networks]) is of_networks[1]
    assert route_of_sender(first, hairpin, [of_networks[2], route]) is route
    assert route_of_sender(first, hairpin, [of_networks[2]]) is hairpin


@pytest.mark.parametrize(("most", "status"), [("50%", 1), ("99%", 1), ("100%", 0)])
def test_hairpin_and_dead_halves_are_all(command: Command, most: str, status: int) -> None:
    row = "-A FORWARD -s 10.244.1.9/32 -d 10.244.1.9/32 -j DROP\n-A FORWARD"
    text = (NOISE / "base.txt").read_text().replace("-A FORWARD", row, 1)
    asked = command.file("itself.txt", text), *KNOWN, "--service", "app"
    alone = command("whatif", *asked, "--depth", "1", "--max-loss", most)
    assert alone.status == status
    says = "losing master may cost more, for example default/app 100.0%"
    assert bool(status) == (says in alone.out)
    done = command("loss", *asked, "--dead", "10.244.0.7", "--max-loss", most)
    assert done.status == status
