"""The flows of a capture that take one route: sent, received, and distinguished at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.addresses import Address
from analyzer.model.lab_pcap import ReplayedFlow
from analyzer.model.measurement import ANSWERED, Measurement
from analyzer.model.probability import Bounds, capped_sum
from netns_lab.affinity import strayed
from netns_lab.arriving import NOTHING, ways_to_end
from netns_lab.backend import SocketAddress
from netns_lab.captured import CapturedFlow, CapturedRoute
from netns_lab.columns import FlowResult, RawSocketAddress, sockaddr_of, tag_of
from netns_lab.count import BATCH
from netns_lab.layout import PacketLayout
from netns_lab.measure import RouteRun
from netns_lab.replay import ChosenFlows, Flows
from netns_lab.standing import Standing

if TYPE_CHECKING:
    from netns_lab.experiment import Lab


class CapturedRun(RouteRun):
    """The flows of one route.

    Args:
        numbers: for each flow, what its tag consists of besides its client port.
    """

    def __init__(self, lab: Lab, standing: Standing, numbers: Sequence[int]) -> None:
        self.standing = standing
        self._numbers = numbers
        self._chosen = [
            (address, flow.port, number)
            for (flow, address), number in zip(standing.flows, numbers, strict=True)
        ]
        self._sent = 0
        of = standing.of
        super().__init__(lab, of.service, of.route, len(standing.flows), of.sender)

    def _packets(
        self, clients: Sequence[Address], macs: tuple[str, str], to: bytes | None
    ) -> Flows:
        del clients  # those of the route; which of them a flow has was settled before
        return ChosenFlows(self._layout, self._to, macs, self._chosen, to)

    @property
    def layout(self) -> PacketLayout:
        """Layout of the flows' packets."""
        return self._layout

    @property
    def to(self) -> tuple[Address, int]:
        """Destination of the flows in the lab."""
        return self._to

    @property
    def ended(self) -> Bounds:
        """Predicted share of the flows that rules end."""
        return self._predicted.ended

    def share_in(self, landed: dict[int, RawSocketAddress], answered: dict[int, bool]) -> None:
        """Record what is received in the same tables as all other routes of the protocol."""
        self._landed, self._answered = landed, answered

    def send(self, first: int, count: int) -> None:
        """Send some of the flows, in their order, and record what is received meanwhile."""
        most = BATCH if self._sender is None else BATCH // 4  # as of every hairpin route
        for at in range(first, first + count, most):
            self._send(at, min(most, first + count - at))
            if self._sender is not None:
                # Replies to an endpoint arrive where flows do; no other route may record them.
                self._drain()
        self._sent = first + count

    def cut(self) -> Iterator[tuple[CapturedFlow, CapturedRoute]]:
        """Leave out the flows that have not been sent, and yield them."""
        standing, sent = self.standing, self._sent
        for flow, _ in standing.flows[sent:]:
            yield flow, standing.of
        del standing.flows[sent:]
        standing.repeated = {n: first for n, first in standing.repeated.items() if n < sent}

    def drain(self) -> None:
        """Record what has arrived."""
        self._drain()

    def dropped(self) -> int:
        """Return how many packets the captures dropped since the last call."""
        return self._dropped()

    def fate(self, number: int) -> FlowResult:
        """Return where a flow arrived, and whether its client was answered."""
        tag = tag_of(self._numbers[number], self._chosen[number][1])
        return self._landed.get(tag), self._answered.get(tag)

    @property
    def kept_back(self) -> frozenset[int]:
        """The flows that the node's own stack did not send."""
        return frozenset(self._flows.kept_back)

    def waits(self, number: int) -> bool:
        """Return whether anything may still arrive for a flow, provided that no rule ended it."""
        sockaddr, answered = self.fate(number)
        if answered is not None:
            return False
        return sockaddr is None or self._is_answered_at(sockaddr)

    def _is_answered_at(self, sockaddr: RawSocketAddress) -> bool:
        """Return whether a living endpoint of an answered protocol has this address and port."""
        lives = self._endpoint(sockaddr) not in self._dead and not self._is_own(sockaddr)
        return lives and self._service.protocol in ANSWERED

    def _endpoint(self, sockaddr: RawSocketAddress) -> Endpoint:
        address, port = sockaddr_of(sockaddr)
        return Endpoint(type(self._to[0])(address), port)

    def _is_own(self, sockaddr: RawSocketAddress) -> bool:
        """Return whether a flow that arrived there was not translated."""
        return sockaddr == self._frontend and sockaddr_of(sockaddr) not in self._predicted.shares

    def flow(self, number: int, begun: float) -> ReplayedFlow:
        """Return the results of a flow; `begun` is the time of the capture's first flow."""
        flow, address = self.standing.flows[number]
        outcome, endpoint, predicted = self._outcome(number)
        _, answered = self.fate(number)
        return ReplayedFlow(
            packet=flow.number,
            at=max(0.0, flow.at - begun),
            client=str(flow.client),
            client_port=flow.port,
            stands_as=str(address),
            to=str(Endpoint(*flow.to)),
            protocol=self._service.protocol,
            service=self._service.name.text,
            frontend=f"{self._route.frontend.kind.value} {self._route.frontend}",
            source=self._route.source.value,
            outcome=outcome,
            endpoint=None if endpoint is None else str(endpoint),
            answered=answered,
            predicted=predicted,
            repeated=number in self.standing.repeated,
        )

    def _outcome(self, number: int) -> tuple[str, Endpoint | None, Bounds]:
        """Return how a flow ended, at which endpoint, and the predicted share of that outcome."""
        sockaddr, answered = self.fate(number)
        if sockaddr is None:
            outcome = "rejected" if answered is False else "dropped"
            if number in self.kept_back:
                # A send fails in the same way, whichever of the two keeps a packet back.
                ways = ways_to_end(self._route)
                outcome = next(iter(ways)) if len(ways) == 1 else "ended"
            return outcome, None, self._predicted.ended
        if self._is_own(sockaddr):
            others = [self._predicted.ended, *self._predicted.shares.values()]
            lower = capped_sum(each.lower for each in others)
            upper = capped_sum(each.upper for each in others)
            return "unchanged", None, Bounds(~upper, ~lower)
        endpoint = self._endpoint(sockaddr)
        share = self._predicted.shares.get(sockaddr_of(sockaddr), NOTHING)
        return ("dead-endpoint" if endpoint in self._dead else "endpoint"), endpoint, share

    def measured(self, dropped: int, seconds: float) -> Measurement:
        """Return what was counted, of first flows and of repeated ones under session affinity."""
        again = self.standing.repeated
        fates = [self.fate(number) for number in range(len(self.standing.flows))]
        drawn = [number for number in range(len(fates)) if number not in again]
        self._fates = Counter(fates[number] for number in drawn)
        self._kept_back = len(self.kept_back - again.keys())
        came = [
            sockaddr_of(sockaddr)
            for sockaddr in (fates[n][0] for n in again)
            if sockaddr is not None
        ]
        self._repeated = Counter(came)
        self._repeated_ended = len(again) - len(came)
        self._strayed = strayed((fates[first][0], fates[n][0]) for n, first in again.items())
        return self._measurement(len(drawn), None, dropped, seconds)

    def landed(self) -> Counter[SocketAddress]:
        """Return how many flows arrived at each endpoint."""
        sockaddrs = (self.fate(number)[0] for number in range(len(self.standing.flows)))
        return Counter(sockaddr_of(d) for d in sockaddrs if d is not None and not self._is_own(d))

    def lost(self) -> set[SocketAddress]:
        """Return the endpoints of which rules after the DNAT end some flows."""
        return {sockaddr for sockaddr, share in self._predicted.lost.items() if share.upper}
