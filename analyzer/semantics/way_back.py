"""The way of one answer through the node's hooks, back to its client.

Theory of operation
===================

Conntrack puts the answer's destination back where the nat of PREROUTING or OUTPUT is called, and
its source where that of POSTROUTING or INPUT is; rules of nat are not evaluated.

Source: Linux, net/netfilter/nf_nat_core.c, ``nf_nat_inet_fn``; seen on Linux 6.18.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeAlias

from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.model.routing import LOOPBACK
from analyzer.model.value import replace
from analyzer.semantics.calling_order import Stage, after_nat, before_nat
from analyzer.semantics.calls import Calls, met_before
from analyzer.semantics.tree import Delivered, Leaf, OtherZone, Tree, Unanswered, Unresolved


@enum.unique
class AnswerDirection(enum.Enum):
    """From whom an answer goes to whom: other hosts or pods, or the node itself."""

    FORWARDED = enum.auto()
    FROM_NODE = enum.auto()
    TO_NODE = enum.auto()
    LOOPED = enum.auto()


#: What an answer is when its destination has been put back, its client as a source, and its ends.
Restored: TypeAlias = "tuple[Packet, Packet, AnswerDirection]"


def put_back(answer: Packet, client: Packet) -> Packet:
    """Return an answer whose destination conntrack has put back; `client` is given as a source."""
    return replace(
        answer,
        destination=client.source,
        destinations=client.sources,
        destination_port=client.source_port,
        to_node=client.from_node,
        is_masquerades=False,
    )


class WayBack:
    """One answer on its way back to a client."""

    def __init__(
        self,
        calls: Calls,
        client: Packet,
        ends: AnswerDirection,
        shared: Callable[[Restored, Callable[[Packet], Tree]], Tree],
    ) -> None:
        self._calls = calls
        self._client = client
        self._ends = ends
        self._shared = shared

    def of(self, answer: Packet) -> Tree:
        """Return what happens to an answer that comes to the first hook."""
        hook = "OUTPUT" if answer.in_interface == NO_DEVICE else "PREROUTING"
        return self._calls.run(self._until_nat(hook), answer, lambda p: self._restored(p, hook))

    def _until_nat(self, hook: str) -> tuple[Stage, ...]:
        return self._calls.part(before_nat, hook)

    def _after_nat(self, hook: str) -> tuple[Stage, ...]:
        return self._calls.part(after_nat, hook)

    def _restored(self, answer: Packet, hook: str) -> Tree:
        if answer.tracked is False:
            return Leaf(Unanswered(None), answer)  # its addresses are not put back
        if answer.tracked is None:
            return Leaf(Unresolved("whether conntrack sees the answer"), answer)
        # It is compared with the flow in the direction of answers.
        zones, of_flow = answer.zones, self._client.zones
        if zones is None or of_flow is None:
            return Leaf(Unresolved("whether the answer is in the zone of its flow"), answer)
        if zones[1] != of_flow[1]:
            return Leaf(Unanswered(OtherZone()), answer)
        restored = put_back(answer, self._client)
        return self._shared(
            (restored, self._client, self._ends),
            lambda p: self._calls.run(self._after_nat(hook), p, self._routed),
        )

    def _routed(self, answer: Packet) -> Tree:
        if self._ends is AnswerDirection.TO_NODE:
            return self._to_client(answer, "INPUT")
        if self._ends is not AnswerDirection.FORWARDED:
            return self._to_client(replace(answer, in_interface=None), "POSTROUTING")
        back = self._client
        leaving = replace(answer, out_interface=back.out_interface, leaves_by=back.leaves_by)
        return self._calls.run(
            self._calls.stages["FORWARD"],
            leaving,
            lambda p: self._to_client(replace(p, in_interface=None, came_by=None), "POSTROUTING"),
        )

    def _to_client(self, answer: Packet, hook: str) -> Tree:
        """Return what happens at the last hook, or before the answer comes back by loopback."""
        return self._calls.run(self._until_nat(hook), answer, lambda p: self._undone(p, hook))

    def _undone(self, answer: Packet, hook: str) -> Tree:
        # Its source is the frontend's address again, which may be one of the node's.
        unknown = replace(answer, source=None, sources=None, source_port=None, from_node=None)
        then = self._looped if self._ends is AnswerDirection.LOOPED else _delivered
        return self._calls.run(self._after_nat(hook), unknown, then)

    def _looped(self, answer: Packet) -> Tree:
        back = replace(answer, in_interface=LOOPBACK, out_interface=NO_DEVICE)
        stages = (*self._calls.stages["PREROUTING"], *self._calls.stages["INPUT"])
        return self._calls.run(met_before(stages), back, _delivered)


def _delivered(answer: Packet) -> Tree:
    return Leaf(Delivered(here=True), answer)
