"""The lab addresses that represent the clients of a capture.

A client has one lab address in all of its flows from one kind of source, and keeps its ports. If
there are more clients than addresses, some share one, unless a Service with session affinity could
tell them apart, or two of their flows would be the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address
from analyzer.model.lab_pcap import StandIn
from netns_lab.captured import Capture, CapturedFlow, CapturedRoute
from netns_lab.sources import Sending, sending_of, version_of

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

NO_ADDRESS: Final = "for whose client the lab has no address"
TAKEN: Final = "whose addresses and ports another flow has in the lab"
SHARED: Final = "with session affinity, of more clients than the lab has addresses"
GONE: Final = "from an endpoint that is dead, or that the lab sends no flows from"
ENDED: Final = "of a client known to session affinity, where rules end some of its flows"


@dataclass(slots=True)
class Standing:
    """The flows of one route, each with the address that it is sent from.

    Attributes:
        repeated: flows that session affinity keeps at the endpoint of an earlier one, without a
            draw; each with the number of that flow.
    """

    of: CapturedRoute
    flows: list[tuple[CapturedFlow, Address]]
    repeated: Mapping[int, int]


def table(standing: Iterable[Standing]) -> tuple[StandIn, ...]:
    """Return which address represents which client."""
    flows = Counter(
        (flow.client, each.of.route.source, address)
        for each in standing
        for flow, address in each.flows
    )
    return tuple(
        StandIn(client=str(client), source=source.value, stands_as=str(to), flows=number)
        for (client, source, to), number in flows.items()
    )


class StandIns:
    """Assigns addresses of one lab to the clients of a capture."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._plan = lab.topology.plan
        self._given: dict[tuple[Sending, Address], tuple[Address, bool]] = {}
        self._number: Counter[Sending] = Counter()
        self._ends: set[tuple[object, ...]] = set()

    def stand(self, of: CapturedRoute, capture: Capture) -> Standing:
        """Return the flows of a route that can be sent; the others are counted in `capture`."""
        flows: list[tuple[CapturedFlow, Address]] = []
        first: dict[Address, int] = {}
        repeated: dict[int, int] = {}
        drawn = any(share.share.upper for share in of.route.shares)
        kept = of.service.affinity is not None and drawn
        for flow in sorted(of.flows, key=lambda each: each.at):
            address, reason = self._address(of, flow, kept=kept)
            if kept and flow.client in first and of.route.astray:
                reason = ENDED
            if address is None or reason:
                capture.leave_out(flow, of, reason)
                continue
            if kept:
                begun = first.setdefault(flow.client, len(flows))
                if begun != len(flows):
                    repeated[len(flows)] = begun
            flows.append((flow, address))
        return Standing(of, flows, repeated)

    def _address(
        self, of: CapturedRoute, flow: CapturedFlow, *, kept: bool
    ) -> tuple[Address | None, str]:
        """Return the address for a flow's client, and why the flow cannot be sent."""
        address, is_shared = self._place(of, flow)
        if address is None:
            return None, GONE if of.sender is not None else NO_ADDRESS
        if is_shared and kept:
            return None, SHARED
        # Where the lab has one address of the node for several, `flow.to` would not do.
        ends = of.service.protocol, address, flow.port, of.route.frontend
        if ends in self._ends:
            return None, TAKEN
        self._ends.add(ends)
        return address, ""

    def _place(self, of: CapturedRoute, flow: CapturedFlow) -> tuple[Address | None, bool]:
        """Return an address, and whether other clients have it too."""
        version = version_of(of.service, of.route)
        if of.sender is not None:
            return (of.sender if of.sender in self._lab.senders else None), False
        if of.route.source is Source.NODE:
            return self._plan.node_address(version), False
        sending = sending_of(of.service, of.route, version)
        key = sending, flow.client
        if key not in self._given:
            pool = self._plan.clients[sending]
            if not pool:
                return None, False
            at = self._number[sending]
            self._number[sending] += 1
            self._given[key] = pool[at % len(pool)], at >= len(pool)
        return self._given[key]
