"""How the Services of two dumps differ. The first dump is A, the second is B."""

from __future__ import annotations

from typing import TypeAlias

from analyzer.kubeproxy.names import ServiceName
from analyzer.kubeproxy.view import Endpoint, Frontend, ServicePort, Source
from analyzer.model.addresses import Network
from analyzer.model.probability import Bounds
from analyzer.model.value import value

#: What happens to the flows on a route that DNAT sends to no endpoint, or that are lost on the way
#: there or back: drop, reject, no-service (forwarded unchanged) or unanswered, and the share of all
#: new flows on the route.
Otherwise: TypeAlias = tuple[tuple[str, Bounds], ...]


@value
class EndpointChange:
    """An endpoint whose share of new flows differs; None: that dump sends it none."""

    endpoint: Endpoint
    a: Bounds | None
    b: Bounds | None


@value
class MasqueradeChange:
    """An endpoint that sees the client's address in one dump, and the node's in the other.

    Attributes:
        a: whether such a flow is masqueraded.
    """

    endpoint: Endpoint
    a: bool
    b: bool


@value(kw_only=True)
class Change:
    """What differs on a route.

    Attributes:
        endpoints: removed, added, or with a different share.
        each: every endpoint is drawn with 1/n in both dumps, with these two n; `endpoints` then has
            none that merely has a different share.
        otherwise: in each dump.
        unknown: what may or may not differ: shares, masquerade, otherwise.
        alike: what is not known in either dump, in the same way.
    """

    endpoints: tuple[EndpointChange, ...] = ()
    each: tuple[int, int] | None = None
    masquerade: tuple[MasqueradeChange, ...] = ()
    otherwise: tuple[Otherwise, Otherwise] | None = None
    unknown: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether something certainly differs."""
        return bool(self.endpoints or self.each or self.masquerade or self.otherwise)


#: Nothing differs, and all is known.
NO_CHANGE = Change()
#: What may not be known of a route.
SHARES, MASQUERADE, OTHERWISE = "shares", "masquerade", "otherwise"
#: Ends of flows: they are forwarded unchanged; they reach their endpoint, and rules end the answer;
#: it is not known.
NO_SERVICE, UNANSWERED, UNRESOLVED = "no-service", "unanswered", "unresolved"
#: What happens to the source address of flows that reach their endpoint.
MASQUERADED, KEPT = "masqueraded", "not-masqueraded"


@value
class RouteIdentity:
    """A route by what identifies it in both dumps; `network` as in a `Route`.

    Attributes:
        but: the networks within `network`, or any if it is None, whose sources have routes of
            their own.
    """

    frontend: Frontend
    source: Source
    network: Network | None
    but: tuple[Network, ...] = ()


@value
class RouteChange:
    """The same change on several routes."""

    ways: tuple[RouteIdentity, ...]
    change: Change


@value(kw_only=True)
class ServiceChange:
    """A ServicePort that is not the same in both dumps.

    Attributes:
        a: as in the first dump; None: it is not there, so the ServicePort is added.
        gone: frontends that only A has; all of them if the ServicePort is removed.
        affinity: the seconds of session affinity in each, if they differ.
        routes: what differs on the routes to frontends that both have.
        ways: how many routes these frontends have.
        cut: whether the dump without it, or without some of its frontends, may have lost them.
    """

    name: ServiceName
    protocol: str
    version: int | None
    a: ServicePort | None
    b: ServicePort | None
    gone: tuple[Frontend, ...] = ()
    added: tuple[Frontend, ...] = ()
    affinity: tuple[int | None, int | None] | None = None
    routes: tuple[RouteChange, ...] = ()
    ways: int = 0
    cut: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether something certainly differs."""
        return bool(
            (not self.cut and (self.gone or self.added))
            or self.affinity
            or any(each.change.is_certain for each in self.routes)
        )
