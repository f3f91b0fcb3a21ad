"""The ServicePort and endpoint of each flow in conntrack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.kubeproxy.view import Endpoint, Frontend, ServicePort
from analyzer.model.addresses import Address
from analyzer.model.conntrack import Tracked
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.absent import FrontendMatch


@value
class Owned:
    """A flow to a Service: its frontend, and the endpoint that DNAT has sent it to."""

    flow: Tracked
    service: ServicePort
    frontend: Frontend
    endpoint: Endpoint


class FlowServices:
    """Finds the ServicePort of a flow, by the address and port that its client sent to."""

    def __init__(self, services: Iterable[ServicePort], own: Sequence[Address]) -> None:
        self._own = frozenset(own)
        self._frontends: dict[FrontendMatch, tuple[ServicePort, Frontend]] = {}
        for service in services:
            for frontend in service.frontends:
                key = service.protocol, frontend.address, frontend.port
                self._frontends.setdefault(key, (service, frontend))

    def owned(self, flows: Iterable[Tracked]) -> Iterator[Owned]:
        """Yield the flows to Services, without those that were not translated."""
        for flow in flows:
            if not flow.is_translated:
                continue
            port = flow.destination_port
            found = self._frontends.get((flow.protocol, flow.destination, port))
            if found is None and (not self._own or flow.destination in self._own):
                found = self._frontends.get((flow.protocol, None, port))  # a NodePort
            if found is not None:
                endpoint = Endpoint(flow.reply_source, flow.reply_source_port)
                yield Owned(flow, *found, endpoint)
