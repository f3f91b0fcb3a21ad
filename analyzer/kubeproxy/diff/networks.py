"""Sources that either of two dumps distinguishes by network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from analyzer.kubeproxy.view import Route
from analyzer.model.addresses import Network


def by_network(
    a: Sequence[Route], b: Sequence[Route]
) -> Iterator[tuple[Network | None, Route, Route]]:
    """Yield the routes of the same sources in both dumps.

    `a` and `b` are of one frontend and one kind of source. A network stands for the sources in it
    that are in no narrower one of these routes; None for those in none.
    """
    if len(a) == len(b) == 1 and a[0].network is None and b[0].network is None:
        yield None, a[0], b[0]
        return
    asked = list(dict.fromkeys(route.network for route in (*a, *b)))
    for network in asked:
        inner = [n for n in asked if n is not None and n != network and _holds(network, n)]
        if _is_filled(network, inner):
            continue  # no sources are left in it
        here, there = _narrowest(a, network), _narrowest(b, network)
        if here is not None and there is not None:
            yield network, here, there


def inner_networks(network: Network | None, routes: Iterable[Route]) -> tuple[Network, ...]:
    """Return the networks within `network` whose sources have routes of their own."""
    if network is None:
        return ()
    asked = {route.network for route in routes} - {network}
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
    """Return whether networks cover all addresses of `outer`; None: all addresses."""
    four = [n for n in inner if isinstance(n, IPv4Network)]
    six = [n for n in inner if isinstance(n, IPv6Network)]
    joined: list[Network] = [*collapse_addresses(four), *collapse_addresses(six)]
    return [n.prefixlen for n in joined] == [0] if outer is None else joined == [outer]


def _narrowest(routes: Iterable[Route], network: Network | None) -> Route | None:
    """Return the route of the sources in `network`."""
    holding = [
        (-1 if route.network is None else route.network.prefixlen, at, route)
        for at, route in enumerate(routes)
        if route.network is None or (network is not None and _holds(route.network, network))
    ]
    return max(holding, default=(0, 0, None))[2]
