"""Predicted outcome of a route's flows: how many reach each endpoint, how many the rules end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from analyzer.kubeproxy.view import Endpoint, Route, Share
from analyzer.model.endings import PASSES, EndKind, total
from analyzer.model.probability import NEVER, Bounds, capped_sum
from netns_lab.backend import Door

#: Ends caused by a rule. At the others, the packet goes on unchanged.
_ENDED: Final = frozenset({EndKind.REFUSED, EndKind.DROPPED, EndKind.REJECTED})
NOTHING: Final = Bounds(NEVER, NEVER)

#: Gives the part of the flows sent to an endpoint that rules on other nodes end.
Beyond = Callable[[Share], Bounds]


@dataclass(frozen=True, slots=True)
class Arriving:
    """Shares of all flows of a route.

    Attributes:
        shares: of each endpoint, the flows that reach it.
        lost: of each endpoint, the flows sent to it that rules after the DNAT end.
        ended: the flows that any rule ends, wherever it is.
    """

    shares: Mapping[Door, Bounds]
    lost: Mapping[Door, Bounds]
    ended: Bounds


def arriving(route: Route, beyond: Beyond = lambda _: NOTHING) -> Arriving:
    """Return the prediction for a route's flows, given what ends them beyond this node."""
    shares: dict[Door, Bounds] = {}
    lost: dict[Door, Bounds] = {}
    arrive, behind = [], []
    for each in route.shares:
        here, there = total(each.lost), beyond(each)
        share, gone = each.share, NOTHING
        if (here, there) != (NOTHING, NOTHING):  # as few have: of many endpoints this takes long
            passes = Bounds(~here.upper * ~there.upper, ~here.lower * ~there.lower)
            share = _product(each.share, passes)
            gone = _product(each.share, Bounds(~passes.upper, ~passes.lower))
            behind += [_product(each.share, here), _product(each.share, there)]
        arrive.append(share)
        if each.endpoint.port is not None:
            door = door_of_endpoint(each.endpoint)
            shares[door], lost[door] = share, gone
    ends = route.astray
    ended = [bounds for end, bounds in ends if end.kind in _ENDED and end.how != PASSES] + behind
    found = Bounds(capped_sum(b.lower for b in ended), capped_sum(b.upper for b in ended))
    if any(end.kind is EndKind.UNKNOWN for end, _ in ends):
        found = Bounds(found.lower, ~capped_sum(each.lower for each in arrive))
    return Arriving(shares, lost, found)


def either(one: Arriving, other: Arriving) -> Arriving:
    """Return bounds that hold whichever of two predictions is true."""
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
    """Return an endpoint's address, as an integer, and its port."""
    assert endpoint.port is not None
    return int(endpoint.address), endpoint.port


def _product(one: Bounds, other: Bounds) -> Bounds:
    return Bounds(one.lower * other.lower, one.upper * other.upper)


def hull(one: Bounds, other: Bounds) -> Bounds:
    """Return the smallest bounds that contain both."""
    return Bounds(min(one.lower, other.lower), max(one.upper, other.upper))
