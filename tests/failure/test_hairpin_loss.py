"""What an endpoint loses of its own flows: one sum over all endpoints, one sender at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from ipaddress import IPv4Network

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
