"""What a client does, as a plan: each draw and each wait until it ends, with the outcome.

Theory of operation
===================

A plan is an acyclic graph. A `NewFlow` is a flow whose fate decides how the plan continues: there
is one only if conntrack has no entry yet, since packets of a tracked flow go where the first one
went. An `EitherPlan` is a choice of unknown probability.

`outcome` computes the outcome of a plan. Nodes are shared: of a thousand paths most are the same
after some draw.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from fractions import Fraction

from analyzer.clients.responses import FlowResponse, Lot
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

ZERO: Final = Fraction(0)


@enum.unique
class OperationResult(enum.Enum):
    """How an operation ends.

    NO_NAME: the answer is that a name does not exist, although it does.
    """

    ANSWERED = "answered"
    TIMED_OUT = "timed-out"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    NO_NAME = "no-such-name"
    CLOSED = "closed"


@value
class Time:
    """A duration in seconds, at least and at most."""

    least: Fraction
    most: Fraction

    def __post_init__(self) -> None:
        assert 0 <= self.least <= self.most

    def __add__(self, other: Time) -> Time:
        return Time(self.least + other.least, self.most + other.most)


AT_ONCE: Final = Time(ZERO, ZERO)


def exactly(seconds: Fraction) -> Time:
    """Return a known duration."""
    return Time(seconds, seconds)


@value
class Finished:
    """The operation is over."""

    result: OperationResult


@value
class Wait:
    """A wait, and the plan after it."""

    time: Time
    then: Plan


@value
class NewFlow:
    """A new flow, and the plan after each fate that it may have."""

    lot: Lot
    then: Mapping[FlowResponse, Plan]


@value
class EitherPlan:
    """One of these plans, and it is not known which."""

    plans: tuple[Plan, ...]


Plan: TypeAlias = Finished | Wait | NewFlow | EitherPlan


def after(time: Time, then: Plan) -> Plan:
    """Return a plan that waits first."""
    return then if time == AT_ONCE else Wait(time, then)


def draw(lot: Lot, goes_on: Callable[[FlowResponse], Plan]) -> Plan:
    """Return a plan that opens a new flow, with the continuations of its possible fates."""
    return NewFlow(lot, {fate: goes_on(fate) for fate in lot.possible()})
