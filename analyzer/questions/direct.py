"""What the node's rules do to flows that clients send to pods themselves, and not to a Service."""

from __future__ import annotations

from functools import cache

from analyzer.clients.responses import Ended, FlowResponse
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.diff.changes import UNANSWERED, UNRESOLVED
from analyzer.kubeproxy.diff.side import DumpSide
from analyzer.kubeproxy.view import Endpoint, ServicePort, Source
from analyzer.model.addresses import Address
from analyzer.model.probability import capped_sum
from analyzer.model.ternary import Ternary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Sources whose flows to any pod pass the node; others pass it only on their way to its own pods.
_HERE: Final = frozenset({Source.POD, Source.NODE})
_SILENT: Final = frozenset({"drop", UNANSWERED, UNRESOLVED})


class DirectFlows:
    """The flows of one kind of source, or of one client, at the node that a dump is from."""

    def __init__(self, given: Input, source: Source, client: Address | None) -> None:
        self._source = source
        self._client = client
        self._side = cache(given.side)

    def __call__(self, service: ServicePort, endpoint: Endpoint) -> Ended | None:
        """Return how such flows to an endpoint end at the node's rules; None: they pass."""
        version = endpoint.address.version
        side: DumpSide = self._side(version)
        is_elsewhere = self._source not in _HERE and side.has(endpoint.address) is Ternary.FALSE
        if is_elsewhere or endpoint.address == self._client:
            return None
        ends = dict(side.direct(service, self._source, self._client, endpoint))
        lost = {kind: ends[kind] for kind in ({*_SILENT, "reject"} & ends.keys())}
        if not lost:
            return None
        how = FlowResponse.SILENT if lost.keys() & _SILENT else FlowResponse.REFUSED
        rest = capped_sum(share.upper for kind, share in ends.items() if kind not in lost)
        return Ended(how, is_sure=not rest and UNRESOLVED not in lost)
