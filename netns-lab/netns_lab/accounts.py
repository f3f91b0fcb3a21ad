"""What happened to the flows of one route, added up to a measurement."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from analyzer.kubeproxy.view import Endpoint, Route, ServicePort
from analyzer.model.measurement import EndpointCount, Measurement
from analyzer.model.probability import Bounds
from netns_lab.arriving import NOTHING, Arriving
from netns_lab.backend import SocketAddress
from netns_lab.columns import FlowResult, RawSocketAddress, raw_sockaddr, sockaddr_of
from netns_lab.count import Answered, Landed
from netns_lab.sources import version_of

if TYPE_CHECKING:
    from netns_lab.experiment import Lab


class Accounts:
    """Where the flows of one route came to, and which were answered, beside the prediction."""

    _predicted: Arriving

    def __init__(self, lab: Lab, service: ServicePort, route: Route) -> None:
        self._lab = lab
        self._service = service
        self._route = route
        version = version_of(service, route)
        address = route.frontend.address or lab.topology.plan.node_address(version)
        assert route.frontend.port is not None  # a route of which the dump has lost it
        self._to = address, route.frontend.port
        self._frontend = raw_sockaddr(address.packed, route.frontend.port)
        self._landed: dict[int, RawSocketAddress] = {}
        self._answered: dict[int, bool] = {}
        self._fates: Counter[FlowResult] = Counter()
        self._duplicates = 0
        #: Those that the sender's own stack refused to send.
        self._kept_back = 0
        #: Of second flows of clients with session affinity: where they came to.
        self._repeated: Counter[SocketAddress] = Counter()
        #: Those that came nowhere.
        self._repeated_ended = 0
        self._strayed = 0
        self._dead = lab.question.dead.endpoints
        #: Flows to which no answer is owed any more, by where they came to.
        self._in_flight: Counter[SocketAddress] = Counter()
        self._ended_by: Counter[str] | None = None

    def _arrived(self, found: Landed) -> None:
        tags, sockaddrs = found
        before = len(self._landed)
        self._landed.update(zip(tags, sockaddrs, strict=True))
        self._duplicates += before + len(tags) - len(self._landed)

    def _answers(self, found: Answered) -> None:
        tags, accepted = found
        self._answered.update(dict.fromkeys(tags, accepted))

    def _settle(self) -> None:
        """Count the flows that are over, and forget which was which."""
        landed, answered = self._landed, self._answered
        silent = Counter(landed.values())
        refused = [] if all(answered.values()) else [t for t, ok in answered.items() if not ok]
        told = Counter(map(landed.get, answered))
        told_no = Counter(map(landed.get, refused))
        for sockaddr, number in told.items():
            if sockaddr is not None:
                silent[sockaddr] -= number
            self._fates[sockaddr, True] += number - told_no[sockaddr]
        for sockaddr, number in told_no.items():
            self._fates[sockaddr, False] += number
        for sockaddr, number in silent.items():
            self._fates[sockaddr, None] += number
        landed.clear()
        answered.clear()

    def came_to(self) -> Counter[SocketAddress]:
        """Return how many flows came to each endpoint, those to which none came among them."""
        found = Counter(dict.fromkeys(self._predicted.shares, 0))
        for (raw, _), number in self._fates.items():
            if raw is not None:
                found[sockaddr_of(raw)] += number
        found.update(self._repeated)
        return found

    def _measurement(
        self, flows: int, counted: Counter[SocketAddress] | None, dropped: int, seconds: float
    ) -> Measurement:
        fates: Counter[tuple[SocketAddress, bool | None]] = Counter()
        landed: Counter[SocketAddress] = Counter()
        rejected = 0
        predicted = self._predicted.shares
        own = () if self._predicted.by_rules else self._lab.topology.plan.node_addresses
        # What other ports of the node do, the dump does not show.
        unshown = set(map(int, own))
        for (raw, fate), number in self._fates.items():
            to = None if raw is None else sockaddr_of(raw)
            if to and (to[0] not in unshown or to in predicted or raw == self._frontend):
                fates[to, fate] += number
                landed[to] += number
            elif fate is False:  # what is dropped is not reported: None
                rejected += number
        sockaddr = sockaddr_of(self._frontend)
        passed = 0 if sockaddr in predicted else landed.pop(sockaddr, 0)
        endpoints = tuple(
            self._count(sockaddr, predicted.get(sockaddr, NOTHING), landed, counted, fates)
            # What the rules counted elsewhere is a difference too.
            for sockaddr in dict.fromkeys([*predicted, *landed, *(+counted if counted else ())])
        )
        return Measurement(
            service=self._service.name.text,
            protocol=self._service.protocol,
            frontend=f"{self._route.frontend.kind.value} {self._route.frontend}",
            source=self._route.source.value,
            node=self._lab.question.view.node,
            flows=flows,
            endpoints=endpoints,
            passed=passed,
            duplicates=self._duplicates,
            dropped_by_capture=dropped,
            seconds=seconds,
            kernel=os.uname().release,
            backend=self._lab.question.backend,
            ended=self._predicted.ended,
            repeated=self._repeated.total(),
            repeated_ended=self._repeated_ended,
            strayed=self._strayed,
            rejected=rejected + self._kept_back,
            ended_by=None
            if self._ended_by is None
            else tuple((packets, rule) for rule, packets in sorted(self._ended_by.items())),
        )

    def _death_of(self, endpoint: Endpoint) -> str | None:
        kind = self._lab.kind_of(endpoint)
        return None if kind is None else str(kind)

    def _count(
        self,
        sockaddr: SocketAddress,
        predicted: Bounds,
        landed: Counter[SocketAddress],
        counted: Counter[SocketAddress] | None,
        fates: Counter[tuple[SocketAddress, bool | None]],
    ) -> EndpointCount:
        question = self._lab.question
        endpoint = Endpoint(type(self._to[0])(sockaddr[0]), sockaddr[1])
        return EndpointCount(
            address=str(endpoint.address),
            port=sockaddr[1],
            node=question.cluster.placement(endpoint.address).node,
            dead=endpoint in self._dead,
            predicted=predicted,
            landed=landed[sockaddr],
            counted=None if counted is None else counted[sockaddr],
            answered=fates[sockaddr, True],
            refused=fates[sockaddr, False],
            in_flight=self._in_flight[sockaddr],
            death=self._death_of(endpoint),
            lost=self._predicted.lost.get(sockaddr, NOTHING),
            unanswered=self._predicted.unanswered.get(sockaddr, NOTHING),
        )
