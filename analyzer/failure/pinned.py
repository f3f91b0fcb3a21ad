"""Flows pinned to dead or stale endpoints, or to addresses that belong to other pods now.

A DNAT decision lasts as long as its conntrack entry (docs/semantics.md): a client that tries again
from the same port, as resolvers do, renews the entry and never gets another endpoint.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping

from analyzer.failure.conntrack_command import delete_command
from analyzer.failure.tracked import Owned
from analyzer.kubeproxy.view import Endpoint, Frontend, ServicePort
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_DNS: Final = 53


@enum.unique
class Why(enum.Enum):
    """Why flows should get another endpoint.

    DEAD: their endpoint is dead. STALE: the rules no longer send the Service's flows there.
    FOREIGN: according to the objects, the address belongs to a pod that is not the Service's.
    """

    DEAD = "dead"
    STALE = "stale"
    FOREIGN = "foreign"


@value(kw_only=True)
class Pinned:
    """Flows to one frontend at one endpoint.

    Attributes:
        destination: the address and port that the clients sent to.
        unanswered: those of `flows` without any reply.
        seconds: until the last entry expires, if no packet comes; one that comes renews it. None
            if one is offloaded, whose timeout is not shown.
        owner: the pod that has the address now; None if no object says.
    """

    service: ServicePort
    frontend: Frontend
    destination: Endpoint
    endpoint: Endpoint
    why: Why
    flows: int
    unanswered: int
    seconds: int | None
    owner: str | None = None

    @property
    def command(self) -> str:
        """The command that deletes exactly these entries."""
        return delete_command(self.service.protocol, self.endpoint, self.destination)


def pinned(
    flows: Iterable[Owned],
    dead: Collection[Endpoint],
    foreign: Mapping[Endpoint, str],
) -> tuple[Pinned, ...]:
    """Return the flows that stay at dead, stale or foreign endpoints: DNS first, then UDP.

    An endpoint that the rules do not show is stale only if they show all of the Service's.
    """
    groups: dict[tuple[int, Endpoint, Endpoint], list[Owned]] = {}
    for each in flows:
        destination = Endpoint(each.flow.destination, each.flow.destination_port)
        groups.setdefault((id(each.service), destination, each.endpoint), []).append(each)
    found = []
    for (_, destination, endpoint), owned in groups.items():
        service = owned[0].service
        if endpoint in dead:
            why = Why.DEAD
        elif endpoint not in service.endpoints:
            if not _shows_all(service):
                continue
            why = Why.STALE
        elif endpoint in foreign:
            why = Why.FOREIGN
        else:
            continue
        found.append(
            Pinned(
                service=service,
                frontend=owned[0].frontend,
                destination=destination,
                endpoint=endpoint,
                why=why,
                flows=len(owned),
                unanswered=sum(not each.flow.replied for each in owned),
                seconds=_last(each.flow.seconds for each in owned),
                owner=foreign.get(endpoint),
            )
        )
    return tuple(sorted(found, key=_order))


def left_open(flows: Iterable[Owned], dead: Collection[Endpoint]) -> tuple[Owned, ...]:
    """Return the flows at endpoints of which the rules leave open whether they are drawn."""
    return tuple(
        each
        for each in flows
        if each.endpoint not in dead
        and each.endpoint not in each.service.endpoints
        and not _shows_all(each.service)
    )


def _shows_all(service: ServicePort) -> bool:
    """Return whether the rules show all endpoints of a ServicePort."""
    return not service.unfilled and not any(each.unresolved for each in service.routes)


def _last(seconds: Iterable[int | None]) -> int | None:
    """Return the most of these; None if any is not known."""
    most = 0
    for each in seconds:
        if each is None:
            return None
        most = max(most, each)
    return most


def _order(each: Pinned) -> tuple[bool, bool, int, str, str]:
    udp = each.service.protocol == "udp"
    dns = udp and each.destination.port == _DNS
    return not dns, not udp, -each.flows, each.service.name.text, str(each.endpoint)
