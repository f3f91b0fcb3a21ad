"""The destinations that a client's flows are drawn among, and whether its draw is sticky."""

from __future__ import annotations

from collections.abc import Callable

from analyzer.clients.plan import EitherPlan, Plan, draw
from analyzer.clients.responses import FlowResponse, Lot
from analyzer.model.ternary import Ternary
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


@value(kw_only=True)
class ClientTarget:
    """A frontend of a ServicePort, for the flows of one client.

    Attributes:
        name: distinguishes it from others.
        lot: what happens to a new flow.
        affine: whether session affinity sends all of the client's flows to the endpoint of the
            first; UNKNOWN: unless the rules forget the client.
    """

    name: str
    lot: Lot
    affine: Ternary = Ternary.FALSE


#: The result of the client's first flow to affine targets, by the target's name.
Pins: TypeAlias = tuple[tuple[str, FlowResponse], ...]


def new_flow(
    target: ClientTarget, pins: Pins, goes_on: Callable[[FlowResponse, Pins], Plan]
) -> Plan:
    """Return a plan that opens a new flow to a target."""
    if target.affine is Ternary.FALSE:
        return draw(target.lot, lambda fate: goes_on(fate, pins))
    others = tuple(each for each in pins if each[0] != target.name)
    fresh = draw(target.lot, lambda fate: goes_on(fate, (*others, (target.name, fate))))
    held = dict(pins).get(target.name)
    if held is None:
        return fresh
    stays = goes_on(held, pins)
    return stays if target.affine is Ternary.TRUE else EitherPlan((stays, fresh))
