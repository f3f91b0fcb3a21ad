"""Sources that either of two dumps distinguishes by network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import TypeAlias

from analyzer.kubeproxy.view import Route
from analyzer.model.addresses import Network

#: Sources, the networks in theirs that are not of them, and their routes in both dumps.
RoutesOfNetwork: TypeAlias = "tuple[Network | None, tuple[Network, ...], Route, Route]"


def by_network(a: Sequence[Route], b: Sequence[Route]) -> Iterator[RoutesOfNetwork]:
    """Yield the routes of the same sources in both dumps.

    `a` and `b` are of one frontend and one kind of source. A network represents the sources in it
    that are in no narrower one of these routes, which are returned with it; None represents those
    in none, and all are returned with it.
    """
    if len(a) == len(b) == 1 and not a[0].networks and not b[0].networks:
        yield None, (), a[0], b[0]
        return
    asked = dict.fromkeys(network for route in (*a, *b) for network in route.networks or (None,))
    inner = _inner([network for network in asked if network is not None])
    one, other = _Narrowest(a), _Narrowest(b)
    for network in asked:
        within = _collapsed(inner[network])
        if _is_filled(network, within):
            continue  # no sources are left in it
        here, there = one.of(network), other.of(network)
        if here is not None and there is not None:
            yield network, within, here, there


def _inner(networks: Sequence[Network]) -> dict[Network | None, Sequence[Network]]:
    """Return the networks within each; of None, all."""
    found: dict[Network | None, Sequence[Network]] = {None: networks}
    order = sorted(networks, key=lambda n: (n.version, int(n.network_address), n.prefixlen))
    for at, network in enumerate(order, 1):
        end = at  # those within it follow it
        while end < len(order) and _holds(network, order[end]):
            end += 1
        found[network] = order[at:end]
    return found


def _holds(outer: Network, inner: Network) -> bool:
    return (
        outer.version == inner.version
        and inner.network_address in outer
        and inner.prefixlen >= outer.prefixlen
    )


def _collapsed(networks: Sequence[Network]) -> tuple[Network, ...]:
    """Return the fewest networks that hold the same addresses."""
    four = [n for n in networks if isinstance(n, IPv4Network)]
    six = [n for n in networks if isinstance(n, IPv6Network)]
    return (*collapse_addresses(four), *collapse_addresses(six))


def _is_filled(outer: Network | None, inner: Sequence[Network]) -> bool:
    """Return whether networks cover all addresses of `outer`; None: all addresses."""
    return [n.prefixlen for n in inner] == [0] if outer is None else inner == (outer,)


class _Narrowest:
    """Routes by the networks of their sources."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._others = next((route for route in reversed(routes) if not route.networks), None)
        self._by_length: dict[int, dict[Network, Route]] = {}
        for route in routes:
            for network in route.networks:
                self._by_length.setdefault(network.prefixlen, {})[network] = route

    def of(self, network: Network | None) -> Route | None:
        """Return the route of the sources in `network`."""
        if network is not None:
            for length in sorted(self._by_length, reverse=True):
                if length <= network.prefixlen:
                    found = self._by_length[length].get(network.supernet(new_prefix=length))
                    if found is not None:
                        return found
        return self._others
