"""The lists of endpoints that routes draw from, with the share of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from analyzer.kubeproxy.generate.specs import EndpointSpec
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import Endpoint, LazyShares, Share
from analyzer.model.addresses import Address
from analyzer.model.endings import Endings
from analyzer.model.probability import (
    ALWAYS,
    NEVER,
    XT_STATISTIC_BITS,
    Bounds,
    Dyadic,
    numgen_weights,
    threshold_from_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


class DrawnEndpoints:
    """Endpoints in the order in which they are drawn; each `Endpoint` is made on first access."""

    __slots__ = ("_endpoints", "_printed", "draws", "specs")

    def __init__(self, specs: Sequence[EndpointSpec], draws: Sequence[Bounds]) -> None:
        self.specs = specs
        self.draws = draws
        self._endpoints: tuple[Endpoint, ...] | None = None
        self._printed: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.specs)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints, made on first access."""
        if self._endpoints is None:
            self._endpoints = tuple([Endpoint(e.address, e.port) for e in self.specs])
        return self._endpoints

    @property
    def printed(self) -> tuple[str, ...]:
        """The endpoints as an `Endpoint` is printed."""
        if self._printed is None:
            self._printed = tuple(map(str, self.endpoints))
        return self._printed


class ListedShares(LazyShares):
    """Shares of one route, each made when it is used.

    `masquerade` is that of flows to endpoints of `node` and to all others. For endpoints with a
    node's address, one of `hosts`, it is None: it differs by node.
    """

    __slots__ = ("_hosts", "_listed", "_masquerade", "_node")

    def __init__(
        self,
        listed: DrawnEndpoints,
        node: str,
        masquerade: tuple[bool | None, bool | None],
        hosts: Collection[Address],
    ) -> None:
        self._listed = listed
        self._node = node
        self._masquerade = masquerade
        self._hosts = hosts

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[Share]:
        return map(Share, self._listed.endpoints, self._listed.draws, self.masquerades())

    def columns(self) -> tuple[Sequence[str], Sequence[Bounds]]:
        """Return the endpoints as they are printed, and their shares."""
        return self._listed.printed, self._listed.draws

    def draws(self) -> tuple[Sequence[Endpoint], Sequence[Bounds]]:
        """Return the endpoints and their shares."""
        return self._listed.endpoints, self._listed.draws

    def masquerades(self) -> Sequence[bool | None]:
        """Return for each endpoint whether its flows are masqueraded."""
        here, elsewhere = self._masquerade
        return tuple(
            [
                None if e.address in self._hosts else here if e.node == self._node else elsewhere
                for e in self._listed.specs
            ]
        )

    def losses(self) -> Sequence[Endings]:
        """Return how flows are lost after DNAT: none are, since there are no rules of others."""
        return ()

    def is_like(self, other: ListedShares, own: Collection[Address]) -> bool:
        """Return whether another route has the same results; `own` are the node's addresses.

        Flows to the node itself are not masqueraded, so no rule makes a difference for them.
        """
        if self._listed.specs != other._listed.specs or self._listed.draws != other._listed.draws:
            return False
        here, elsewhere = (self._masquerade[n] == other._masquerade[n] for n in (0, 1))
        return all(
            e.address in own or (here if e.node == self._node else elsewhere)
            for e in self._listed.specs
        )


class DrawnShares:
    """The shares of endpoints by their number, as the rules of a mode draw them."""

    def __init__(self, mode: ProxyMode, digits: int) -> None:
        """Take the digits of the probabilities that kube-proxy writes in iptables mode."""
        self._mode = mode
        self._digits = digits
        self._known: dict[tuple[int, bool], tuple[Bounds, ...]] = {}

    def of(self, number: int, *, certain: bool = True) -> tuple[Bounds, ...]:
        """Return the shares; the same object each time.

        `certain`: that these endpoints are drawn from at all; otherwise shares are bounds from 0
        up.
        """
        found = self._known.get((number, certain))
        if found is None:
            nftables = self._mode is ProxyMode.NFTABLES
            weights = _numgen(number) if nftables else _statistic(number, self._digits)
            found = tuple([Bounds(each if certain else NEVER, each) for each in weights])
            self._known[number, certain] = found
        return found


def _numgen(number: int) -> Sequence[Dyadic]:
    return numgen_weights(number) if number else ()


def _statistic(number: int, digits: int) -> list[Dyadic]:
    """Return the shares of a chain of draws, with probabilities of that many digits.

    Source: pkg/proxy/iptables/proxier.go, ``computeProbability``.
    """
    if not number:
        return []
    left, found = ALWAYS, []
    for behind in range(number, 1, -1):
        chance = Dyadic.of(threshold_from_text(f"{1 / behind:.{digits}f}"), XT_STATISTIC_BITS)
        found.append(left * chance)
        left = left * ~chance
    return [*found, left]
