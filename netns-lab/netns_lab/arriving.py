"""What is predicted of the flows of a route: how many arrive where, and how many rules end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from analyzer.kubeproxy.view import Endpoint, Route, Share
from analyzer.model.endings import PASSES, EndKind, total
from analyzer.model.probability import NEVER, Bounds, capped_sum
from netns_lab.backend import Door

#: Ends that a rule puts to a flow; at the others it goes on as it came.
_ENDED: Final = frozenset({EndKind.REFUSED, EndKind.DROPPED, EndKind.REJECTED})
NOTHING: Final = Bounds(NEVER, NEVER)

#: The part of the flows to an endpoint that rules elsewhere than at the node end: of its share.
Beyond = Callable[[Share], Bounds]


@dataclass(frozen=True, slots=True)
class Arriving:
    """Shares of all flows of a route.

    Attributes:
        shares: that arrive at each endpoint.
        lost: that are sent to each endpoint, and that rules behind the DNAT end.
        ended: that rules end, wherever.
    """

    shares: Mapping[Door, Bounds]
    lost: Mapping[Door, Bounds]
    ended: Bounds


def arriving(route: Route, beyond: Beyond = lambda _: NOTHING) -> Arriving:
    """Return what is predicted of a route's flows, given what ends them beyond this node."""
    shares: dict[Door, Bounds] = {}
    lost: dict[Door, Bounds] = {}
    arrive = []
    for each in route.shares:
        here, there = total(each.lost), beyond(each)
        passes = Bounds(~here.upper * ~there.upper, ~here.lower * ~there.lower)
        share = _product(each.share, passes)
        arrive.append(share)
        if each.endpoint.port is not None:
            door = door_of_endpoint(each.endpoint)
            shares[door] = share
            lost[door] = _product(each.share, Bounds(~passes.upper, ~passes.lower))
    ends = route.astray
    behind = [_product(each.share, total(each.lost)) for each in route.shares]
    behind += [_product(each.share, beyond(each)) for each in route.shares]
    ended = [bounds for end, bounds in ends if end.kind in _ENDED and end.how != PASSES] + behind
    found = Bounds(capped_sum(b.lower for b in ended), capped_sum(b.upper for b in ended))
    if any(end.kind is EndKind.UNKNOWN for end, _ in ends):
        found = Bounds(found.lower, ~capped_sum(each.lower for each in arrive))
    return Arriving(shares, lost, found)


def either(one: Arriving, other: Arriving) -> Arriving:
    """Return what holds of flows of which nobody knows which of two holds."""
    return Arriving(
        {
            door: hull(one.shares.get(door, NOTHING), other.shares.get(door, NOTHING))
            for door in dict.fromkeys((*one.shares, *other.shares))
        },
        {
            door: hull(one.lost.get(door, NOTHING), other.lost.get(door, NOTHING))
            for door in dict.fromkeys((*one.lost, *other.lost))
        },
        hull(one.ended, other.ended),
    )


def door_of_endpoint(endpoint: Endpoint) -> Door:
    """Return an endpoint's address and port, as numbers."""
    assert endpoint.port is not None
    return int(endpoint.address), endpoint.port


def _product(one: Bounds, other: Bounds) -> Bounds:
    return Bounds(one.lower * other.lower, one.upper * other.upper)


def hull(one: Bounds, other: Bounds) -> Bounds:
    """Return the bounds of what may be either."""
    return Bounds(min(one.lower, other.lower), max(one.upper, other.upper))
