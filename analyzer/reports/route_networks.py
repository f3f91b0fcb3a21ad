"""The networks of a route's sources, in words and in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.kubeproxy.view import Route
from analyzer.model.addresses import Network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Networks of one route that are told one by one.
MOST_NETWORKS: Final = 3


def networks(route: Route) -> str:
    """Return the networks as ``A``, ``A, B`` or ``A, B, C and 997 others``.

    Empty where the route is of the sources in no network.
    """
    return first_networks(
        [str(each) for each in route.networks[: MOST_NETWORKS + 1]], len(route.networks)
    )


def first_networks(names: Sequence[str], number: int) -> str:
    """Return the first of so many networks, and how many others there are."""
    more = number - MOST_NETWORKS
    others = "" if more < 1 else f" and {more:,} {'other' if more == 1 else 'others'}"
    return ", ".join(names[:MOST_NETWORKS]) + others


def network_fields(route: Route) -> dict[str, Any]:
    """Return the fields of a route that is named as one of many: a network, and how many more."""
    found: dict[str, Any] = {"network": None if route.network is None else str(route.network)}
    return found | ({"more_networks": len(route.also)} if route.also else {})


class NetworkLists:
    """Lists of networks, each of which a document has once, and to which its routes refer."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Network, ...], int] = {}
        # By identity, as most routes share theirs; kept, so that no other gets the same identity.
        self._known: dict[int, tuple[Network | None, tuple[Network, ...], int]] = {}

    def fields(self, route: Route) -> str:
        """Return the fields of a route, encoded: its first network, and the list of several."""
        if route.network is None:
            return '"network":null'
        if not route.also:
            return f'"network":"{route.network}"'
        return f'"network":"{route.network}","networks":{self._number(route)}'

    def _number(self, route: Route) -> int:
        known = self._known.get(id(route.also))
        if known is None or known[0] != route.network:
            number = self._numbers.setdefault(route.networks, len(self._numbers))
            known = self._known[id(route.also)] = route.network, route.also, number
        return known[2]

    def written(self) -> Iterator[str] | None:
        """Return the lists that routes have referred to, encoded; None: they have to none."""
        if not self._numbers:
            return None
        return (f"[{','.join(map(_quoted, networks))}]" for networks in self._numbers)


def _quoted(network: Network) -> str:
    return f'"{network}"'
