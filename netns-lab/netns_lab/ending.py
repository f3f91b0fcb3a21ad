"""The rule that drops or rejects flows, from a trace by the kernel where no counter shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from analyzer.kubeproxy.view import Route, ServicePort
from analyzer.model.addresses import Address
from analyzer.model.measurement import Measurement
from analyzer.model.value import replace
from analyzer.semantics.base_chains import Rules
from netns_lab.listening import Listener, ending_at, listeners, listeners_at, not_loaded
from netns_lab.loaded_nodes import LoadedNode, named
from netns_lab.measure import RouteRun

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: Flows that are sent until one ends: some of a route's may reach an endpoint.
_MOST: Final = 32
#: What reports the rules that a flow matches, the rulesets that these are in, and whose they are;
#: None: the lab's own node's.
Traced = tuple[Listener, tuple[Rules, ...], LoadedNode | None]


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
        self.leave()
        self.late()

    def leave(self) -> None:
        """Send the flow."""
        self._settle()  # or one sent before would seem to be this one, arrived
        self._put_out(0, 1)

    def late(self) -> None:
        """Give the flow a chance to arrive."""
        self._wait_for_the_rest(1)
        self._waited_in_vain = True  # for a flow that does not come, once is enough

    def has_arrived(self) -> bool:
        """Return whether the flow has arrived somewhere by now."""
        self._drain()
        return bool(self._landed)

    def nodes(self) -> list[LoadedNode]:
        """Return the other nodes with loaded rules that the flow may come to."""
        cluster = self._lab.question.cluster
        addresses = [each.endpoint.address for each in self._route.shares]
        names = {cluster.placement(each).node for each in addresses}
        names |= {None if self._behind is None else self._behind.name}
        return [each for each in self._lab.nodes if each.name in names]

    def passed(self, node: LoadedNode | None) -> list[Address]:
        """Return addresses of the nodes that the flow may have passed before it comes to `node`.

        None is the lab's own node.
        """
        plan, version = self._lab.topology.plan, self._to[0].version
        found = [] if node is None else [plan.node_address(version)]
        if self._behind is not None and node is not self._behind:
            found.append(self._behind.address(version))
        return found

    @property
    def _behind(self) -> LoadedNode | None:
        """The node with rules of its own that the sender is behind; None if there is none."""
        return None if self._sender is None else self._lab.behind.node_of(self._sender)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Let no kernel but the node's have a say in what comes of the flow."""
        with self._lab.muted(), self._deaf(), self._sending():
            yield

    def _sending(self) -> AbstractContextManager[None]:
        if self._sender is None:
            return nullcontext()
        return self._lab.behind.sending(self._service, self._route, self._sender)


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
    """Send a flow until it ends on a node, and return the rule that ended it.

    None if it did not end, or not by a rule or policy of the nodes' dumps.
    """
    begun: list[Traced] = []
    at_node = listeners(lab, service.protocol, flow.source(), flow.passed(None))
    every: list[Traced] = [(each, lab.question.rulesets, None) for each in at_node]
    for node in flow.nodes():
        there = listeners_at(node, service.protocol, flow.source(), flow.passed(node))
        every += [(each, node.node.rulesets, node) for each in there]
    try:
        for each in every:
            each[0].begin()
            begun.append(each)
        for _ in range(_MOST):
            lab.forget_flows()
            if service.affinity is not None:
                lab.backend.forget_clients()
            flow.leave()
            for wait in (_at_once, flow.late):
                wait()
                found = _ending(lab, begun)
                # A rule that ends only the answer of a flow does not end the flow.
                if found is not None and not flow.has_arrived():
                    return found
    finally:
        for listener, _, _ in begun:
            listener.end()
        lab.drawn()  # so that the next route does not count these flows
    return None


def _at_once() -> None:
    """Wait for nothing: most flows are where they end when they have been sent."""


def _ending(lab: Lab, begun: Sequence[Traced]) -> str | None:
    """Return the rule or policy that ended the last flow; None if none of the nodes' dumps did."""
    left_out = not_loaded(lab)
    for listener, rulesets, node in begun:
        listener.met()
        if (where := listener.ended()) is None:
            continue
        for ruleset in rulesets:
            if (found := ending_at(ruleset, where, left_out)) is not None:
                if not lab.nodes:
                    return found
                return named(lab.topology.plan.node if node is None else node.name, found)
    return None
