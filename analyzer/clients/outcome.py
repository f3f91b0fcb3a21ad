"""The outcome of a plan: its chance of failure, its duration, and each way in which it ends."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

from analyzer.clients.plan import OperationResult, Plan, Time
from analyzer.clients.walk import FractionRange, Walk
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Of all operations, those that fail too: half, nine of ten, and 99 of 100.
QUANTILES: Final = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))


@value(kw_only=True)
class OperationEnd:
    """One way in which an operation may end.

    Attributes:
        chance: of all operations.
        time: seconds from its beginning.
    """

    result: OperationResult
    time: Time
    chance: FractionRange


@value(kw_only=True)
class OperationOutcome:
    """How often an operation fails, and how long it takes.

    Attributes:
        fails: the probability of failure.
        delay: seconds that silence and refusals add, the mean over all operations.
        quantiles: seconds after which the shares of `QUANTILES` of all operations have ended.
        endings: each way in which it may end, the soonest first.
    """

    fails: FractionRange
    delay: FractionRange
    quantiles: tuple[FractionRange, ...]
    endings: tuple[OperationEnd, ...]

    def failing(self) -> Time | None:
        """Return the durations of operations that fail; None if none does."""
        found = [
            e.time for e in self.endings if e.result is not OperationResult.ANSWERED and e.chance[1]
        ]
        if not found:
            return None
        return Time(min(t.least for t in found), max(t.most for t in found))


def outcome(plan: Plan) -> OperationOutcome:
    """Return the outcome of a plan."""
    walk = Walk(plan)
    found = walk.ends()
    return OperationOutcome(
        fails=walk.fails(),
        delay=walk.delay(),
        quantiles=_quantiles(walk, [time for _, time in found]),
        endings=tuple(
            OperationEnd(result=result, time=time, chance=walk.chance(result, time))
            for result, time in found
        ),
    )


def fails(plan: Plan) -> FractionRange:
    """Return the chance that a plan ends without an answer."""
    return Walk(plan).fails()


def _quantiles(walk: Walk, times: Sequence[Time]) -> tuple[FractionRange, ...]:
    # The share that may be over by a time, and that certainly is: neither ever decreases.
    may = sorted({time.least for time in times})
    sure = sorted({time.most for time in times})
    return tuple(
        (
            may[bisect_left(may, wanted, key=lambda at: walk.over_by(at)[1])],
            sure[bisect_left(sure, wanted, key=lambda at: walk.over_by(at)[0])],
        )
        for wanted in QUANTILES
    )
