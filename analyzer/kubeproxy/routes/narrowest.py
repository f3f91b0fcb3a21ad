"""The route of one client, by its address."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.kubeproxy.view import Route
from analyzer.model.addresses import Address


def narrowest(routes: Iterable[Route], client: Address) -> Route | None:
    """Return a client's route of those of one frontend and source: that of its smallest network.

    That of sources in no network, if it is in none; None if there is no such route.
    """
    found, longest = None, -2
    for route in routes:
        within = [each.prefixlen for each in route.networks if client in each]
        length = max(within, default=-2 if route.networks else -1)
        if length > longest:
            found, longest = route, length
    return found
