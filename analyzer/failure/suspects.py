"""Which endpoints look dead in conntrack, when it is not known what is dead.

Theory of operation
===================

The rules' draws spread flows regardless of what is dead. So among the unanswered flows of one
ServicePort, those at an endpoint that answers like the others are a binomial count with the
endpoint's share; the same is true of answered flows. A dead endpoint has too many of the former,
and too few of the latter. Both are tested exactly, one-sided, with the greatest and the least share
that any route gives the endpoint; twice the smaller p-value counts. Holm's procedure over all
endpoints of ServicePorts with such flows, including endpoints without any flow, keeps the
probability that any is named although it answers like the others below the requested rate.

That a connection was once answered does not show that its endpoint is alive: ESTABLISHED lasts for
days. Such flows are shown and not tested, unless conntrack was listed twice and they began in
between. With session affinity only one flow of each client counts, since the others follow the
first. An endpoint that receives all flows of its ServicePort cannot be judged by shares. A test
says what the draws do not explain, and never why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from analyzer.failure.binomial import at_least, at_most, holm
from analyzer.failure.hairpin_loss import sent_by
from analyzer.failure.reached import Connectivity
from analyzer.failure.tracked import Owned
from analyzer.kubeproxy.routes.narrowest import narrowest
from analyzer.kubeproxy.view import Endpoint, Frontend, ServicePort, Source
from analyzer.model.endings import Ending, EndKind
from analyzer.model.probability import ALWAYS, Dyadic
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.addresses import Address

#: TCP and SCTP state of flows that were answered at some time, maybe long ago.
_OLD: Final = frozenset({"ESTABLISHED"})


@value(kw_only=True)
class Suspect:
    """The flows in conntrack at one endpoint of one ServicePort.

    Attributes:
        share: the least and the greatest share of new flows that any route gives it.
        unanswered: those of `flows` without any reply; `of_unanswered` those of the ServicePort.
        answered: the same for answered ones, except ESTABLISHED.
        established: flows that were answered at some time, maybe long ago.
        p_value: the probability of counts at least as odd if it answers like the others; None if
            its share says nothing, or none of its flows is unanswered.
        is_suspect: after Holm's procedure over all endpoints of ServicePorts with such flows.
        way_lost: evidence from neighbours, routes and rules that it cannot be reached, or that its
            answers do not come back; None if none.
        drawn: new flows that its DNAT rule counted between two listings; None if not known.
    """

    service: ServicePort
    endpoint: Endpoint
    share: tuple[float, float]
    unanswered: int
    of_unanswered: int
    answered: int
    of_answered: int
    established: int
    p_value: float | None
    is_suspect: bool
    way_lost: str | None = None
    drawn: int | None = None


def suspects(
    flows: Iterable[Owned],
    rate: float,
    reached: Connectivity | None = None,
    counted: Mapping[tuple[str, Endpoint], int] = MappingProxyType({}),
    kind_of: Callable[[Address], Source] = lambda _: Source.POD,
) -> tuple[Suspect, ...]:
    """Return each endpoint that conntrack has flows of, the most suspect first.

    `rate` is the highest probability that any endpoint is named that answers like the others.
    `counted` are new flows to each, by protocol, between two listings, from the rules' counters.
    They are shown and not tested, because rules draw dead endpoints as well as living ones.
    `kind_of` returns the kind of source that a client is.
    """
    ways = reached or Connectivity()
    by_service: dict[int, list[Owned]] = {}
    services: dict[int, ServicePort] = {}
    for each in flows:
        services[id(each.service)] = each.service
        by_service.setdefault(id(each.service), []).append(each)
    found = [
        replace(
            row,
            way_lost=ways.why_not(row.endpoint.address) or ended.get(row.endpoint),
            drawn=counted.get((row.service.protocol, row.endpoint)),
        )
        for key, owned in by_service.items()
        for ended in [_EndedByRules(services[key], kind_of).words(owned)]
        for row in _rows(services[key], owned)
    ]
    tested = [each for each in found if each.p_value is not None]
    p_values = [each.p_value for each in tested if each.p_value is not None]
    # Any other endpoint of theirs could have been the odd one: it counts as a test that passed.
    doubted = {id(each.service): each.service for each in tested}
    others = sum(len(each.endpoints) for each in doubted.values()) - len(tested)
    kept = holm([*p_values, *[1.0] * others], rate)
    named = {id(each) for each, fine in zip(tested, kept, strict=False) if not fine}
    judged = [replace(each, is_suspect=True) if id(each) in named else each for each in found]
    return tuple(sorted(judged, key=_order))


class _EndedByRules:
    """What rules end of the unanswered flows at the endpoints of one ServicePort."""

    def __init__(self, service: ServicePort, kind_of: Callable[[Address], Source]) -> None:
        self._service = service
        self._kind_of = kind_of
        self._known: dict[tuple[Frontend, Address], dict[Endpoint, tuple[Dyadic, Ending]]] = {}

    def words(self, owned: Iterable[Owned]) -> dict[Endpoint, str]:
        """Return of each endpoint which chain ends its flows, or its answers, for certain."""
        found: dict[Endpoint, list[tuple[Dyadic, Ending] | None]] = {}
        for each in owned:
            if not each.flow.replied:
                ended = self._ended(each.frontend, each.flow.source).get(each.endpoint)
                found.setdefault(each.endpoint, []).append(ended)
        told = {}
        for endpoint, every in found.items():
            some = [each for each in every if each is not None]
            if some:
                is_all = len(some) == len(every) and all(share == ALWAYS for share, _ in some)
                told[endpoint] = _words(some[0][1], "" if is_all else "some ")
        return told

    def _ended(
        self, frontend: Frontend, client: Address
    ) -> Mapping[Endpoint, tuple[Dyadic, Ending]]:
        """Return of each endpoint the greatest share of a client's flows that ends for certain."""
        key = frontend, client
        if key not in self._known:
            found = self._known[key] = {}
            of_kind = self._service.routes_from(self._kind_of(client))
            route = narrowest([each for each in of_kind if each.frontend == frontend], client)
            if route is not None:
                route = sent_by(client, self._service, route)
                for endpoint, lost in zip(route.draws()[0], route.losses(), strict=False):
                    certain = [(share.lower, ending) for ending, share in lost if share.lower]
                    if certain:
                        found[endpoint] = max(certain, key=lambda each: each[0])
        return self._known[key]


def _words(ending: Ending, some: str) -> str:
    what = "answers" if ending.kind is EndKind.UNANSWERED else "flows"
    at = f" in table {ending.table}, chain {ending.chain}" if ending.table else ""
    return f"rules end {some}{what}{at or f' ({ending.how})'}"


def _order(each: Suspect) -> tuple[bool, float, int, str, str]:
    p_value = 2.0 if each.p_value is None else each.p_value
    name = each.service.name.text
    return not each.is_suspect, p_value, -each.unanswered, name, str(each.endpoint)


def _rows(service: ServicePort, owned: Sequence[Owned]) -> Iterable[Suspect]:
    known = set(service.endpoints)
    # Flows at former endpoints have no share: they are pinned, and not drawn any more.
    owned = [each for each in owned if each.endpoint in known]
    if service.affinity is not None:
        owned = [*{each.flow.source: each for each in owned}.values()]
    unanswered: dict[Endpoint, int] = {}
    answered: dict[Endpoint, int] = {}
    established: dict[Endpoint, int] = {}
    for each in owned:
        count = answered if each.flow.replied else unanswered
        count = established if each.flow.state in _OLD and not each.flow.is_new else count
        count[each.endpoint] = count.get(each.endpoint, 0) + 1
    shares = _shares(service, {each.frontend for each in owned})
    for endpoint in sorted({*unanswered, *answered, *established}, key=str):
        least, most = shares.get(endpoint, (0.0, 1.0))
        lacking, heard = unanswered.get(endpoint, 0), answered.get(endpoint, 0)
        of_lacking, of_heard = sum(unanswered.values()), sum(answered.values())
        p_value = None
        if lacking and 0 < most < 1:
            both = at_least(lacking, of_lacking, most), at_most(heard, of_heard, least)
            p_value = min(1.0, 2 * min(both))
        yield Suspect(
            service=service,
            endpoint=endpoint,
            share=(least, most),
            unanswered=lacking,
            of_unanswered=of_lacking,
            answered=heard,
            of_answered=of_heard,
            established=established.get(endpoint, 0),
            p_value=p_value,
            is_suspect=False,
        )


def _shares(
    service: ServicePort, frontends: Collection[object]
) -> dict[Endpoint, tuple[float, float]]:
    """Return the least and the greatest share of each endpoint, over routes that draw any."""
    found: dict[Endpoint, tuple[float, float]] = {}
    routes = [
        each
        for each in service.routes
        if each.frontend in frontends and each.source is not Source.HAIRPIN and len(each.shares)
    ]
    drawn = [(dict(zip(*each.draws(), strict=True)), float(each.unresolved)) for each in routes]
    for endpoint in service.endpoints if drawn else ():
        told = [(shares.get(endpoint), unresolved) for shares, unresolved in drawn]
        lower = min(0.0 if share is None else float(share.lower) for share, _ in told)
        upper = max(rest if share is None else float(share.upper) for share, rest in told)
        found[endpoint] = lower, min(1.0, upper)
    return found
