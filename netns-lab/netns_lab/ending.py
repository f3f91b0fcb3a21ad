"""The rule that drops or rejects flows, from a trace by the kernel where no counter shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from analyzer.kubeproxy.view import Route, ServicePort
from analyzer.model.addresses import Address
from analyzer.model.measurement import Measurement
from analyzer.model.value import replace
from netns_lab.listening import Listener, ending_at, listeners, not_loaded
from netns_lab.measure import RouteRun

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: Flows that are sent until one ends: some of a route's may reach an endpoint.
_MOST: Final = 32


class OneFlow(RouteRun):
    """A route's flows, of which one is sent."""

    def source(self) -> tuple[Address, int]:
        """Return the address and port that the flow comes from."""
        return self._flows.source(0)

    def destination(self) -> tuple[Address, int]:
        """Return the address and port that the flow is sent to."""
        return self._to

    def once(self) -> None:
        """Send the flow, and wait until it has arrived somewhere."""
        self._send(0, 1)
        self._wait_for_the_rest(1)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Let no kernel but the node's have a say in what comes of the flow."""
        with self._lab.muted(), self._deaf():
            yield


def with_rule(
    found: Measurement,
    lab: Lab,
    service: ServicePort,
    route: Route,
    sender: Address | None = None,
) -> Measurement:
    """Return what was counted of a route with the rule that ended some flows, if none counts them.

    Raises:
        LabError: the kernel gives no trace, or part of it got lost.
    """
    if found.ended_by is not None or not found.rejected + found.unaccounted:
        return found
    flow = OneFlow(lab, service, route, 1, sender)
    with flow.undisturbed():
        return replace(found, ended_at=_ended_at(lab, service, flow))


def _ended_at(lab: Lab, service: ServicePort, flow: OneFlow) -> str | None:
    """Send a flow until it ends on the node, and return the rule that ended it.

    None if it did not end, or not by a rule or policy of the node's dumps.
    """
    begun: list[Listener] = []
    try:
        for listener in listeners(lab, service.protocol, flow.source()):
            listener.begin()
            begun.append(listener)
        for _ in range(_MOST):
            lab.forget_flows()
            if service.affinity is not None:
                lab.backend.forget_clients()
            flow.once()
            if (found := _ending(lab, begun)) is not None:
                return found
    finally:
        for listener in begun:
            listener.end()
        lab.drawn()  # so that the next route does not count these flows
    return None


def _ending(lab: Lab, begun: Sequence[Listener]) -> str | None:
    """Return the rule or policy that ended the last flow; None if none of the node's dumps did."""
    left_out = not_loaded(lab)
    for listener in begun:
        listener.met()
        if (where := listener.ended()) is None:
            continue
        for ruleset in lab.question.rulesets:
            if (found := ending_at(ruleset, where, left_out)) is not None:
                return found
    return None
