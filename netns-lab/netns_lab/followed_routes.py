"""The routes of a timed run: in the dump loaded first, and in those that replace it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Source
from analyzer.model.diagnostics import Diagnostic, partial_warning
from netns_lab.arriving import seen_from
from netns_lab.asked import place_of, routes_to

Place = tuple[ServicePort, Route]
#: A route in each dump, by file, that of the first under None; None where a dump has no such route.
RouteByDump = dict[str | None, Place | None]


def places_in(further: Mapping[str, Input], place: Place) -> RouteByDump:
    """Return a route of the first dump as it is in each of the dumps."""
    found: RouteByDump = {None: place}
    found.update({file: _same_route(each, place) for file, each in further.items()})
    return found


def _same_route(given: Input, place: Place) -> Place | None:
    """Return the same route in another dump; None if it has no such route."""
    wanted = place_of(*place)
    for each in given.view.services:
        for service, route in routes_to(each, place[1].source, given):
            if place_of(service, route) == wanted and (route.shares or route.astray):
                return service, route
    return None


def untold(places: RouteByDump) -> Iterator[Diagnostic]:
    """Yield a warning for each dump that lacks a route."""
    first = places[None]
    assert first is not None
    for file, other in places.items():
        if other is None and file is not None:
            says = f"it does not show what happens to flows to {first[0].name.text}: not judged"
            yield partial_warning("not-predicted", says, file)


def by_sender(lab: Any, places: RouteByDump) -> Iterator[RouteByDump]:
    """Yield a route, a hairpin route once for each endpoint that sends flows, as it meets it."""
    first = places[None]
    assert first is not None
    if first[1].source is not Source.HAIRPIN:
        yield places
        return
    for share in first[1].shares:
        if lab.behind.why_not_to_here(*first, share.endpoint) is None:
            yield {file: _sent_by(place, share.endpoint) for file, place in places.items()}


def _sent_by(place: Place | None, endpoint: Endpoint) -> Place | None:
    """Return a hairpin route as an endpoint meets it; None if it is none of the Service's."""
    if place is None:
        return None
    service, route = place
    own = next((each for each in route.shares if each.endpoint == endpoint), None)
    return None if own is None else (service, seen_from(service, route, own))
