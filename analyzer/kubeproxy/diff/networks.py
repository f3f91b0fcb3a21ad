"""Sources that either of two dumps distinguishes by network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from analyzer.kubeproxy.view import Route
from analyzer.model.addresses import Network


def by_network(
    a: Sequence[Route], b: Sequence[Route]
) -> Iterator[tuple[Network | None, Route, Route]]:
    """Give the routes that the same sources take in both dumps.

    `a` and `b` are of one frontend and one kind of source. With a network those sources are meant
    that are in it, and in no narrower one that is given; with None those in none.
    """
    if len(a) == len(b) == 1 and not a[0].networks and not b[0].networks:
        yield None, a[0], b[0]
        return
    asked = list(dict.fromkeys(_networks(*a, *b)))
    for network in asked:
        inner = [n for n in asked if n is not None and n != network and _holds(network, n)]
        if _is_filled(network, inner):
            continue  # nobody is left in it
        here, there = _narrowest(a, network), _narrowest(b, network)
        if here is not None and there is not None:
            yield network, here, there


def inner_networks(network: Network | None, routes: Iterable[Route]) -> tuple[Network, ...]:
    """Return the networks within `network` whose sources have routes of their own."""
    if network is None:
        return ()
    asked = set(_networks(*routes)) - {network}
    inner = [n for n in asked if n is not None and _holds(network, n)]
    four = [n for n in inner if isinstance(n, IPv4Network)]
    six = [n for n in inner if isinstance(n, IPv6Network)]
    return (*collapse_addresses(four), *collapse_addresses(six))


def _holds(outer: Network | None, inner: Network) -> bool:
    if outer is None:
        return True
    return (
        outer.version == inner.version
        and inner.network_address in outer
        and inner.prefixlen >= outer.prefixlen
    )


def _is_filled(outer: Network | None, inner: Sequence[Network]) -> bool:
    """Tell whether networks leave no address of `outer`; of None, none that there is."""
    four = [n for n in inner if isinstance(n, IPv4Network)]
    six = [n for n in inner if isinstance(n, IPv6Network)]
    joined: list[Network] = [*collapse_addresses(four), *collapse_addresses(six)]
    return [n.prefixlen for n in joined] == [0] if outer is None else joined == [outer]


def _narrowest(routes: Iterable[Route], network: Network | None) -> Route | None:
    """Return the route that sources in `network` take."""
    holding = [
        (-1 if each is None else each.prefixlen, at, route)
        for at, route in enumerate(routes)
        for each in _networks(route)
        if each is None or (network is not None and _holds(each, network))
    ]
    return max(holding, default=(0, 0, None))[2]


def _networks(*routes: Route) -> Iterator[Network | None]:
    """Give the networks of routes; None: those in no network."""
    for route in routes:
        yield from route.networks or (None,)
