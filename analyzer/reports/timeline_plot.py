"""A curve of losses in characters: the lower and the upper bound."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from analyzer.outage.timeline import Curve
from analyzer.reports.times import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Columns of the picture, without its labels; with them it fits into 80.
WIDTH: Final = 64
#: Rows above the axis, each of them the like share.
HEIGHT: Final = 5
LOST: Final = "#"
PERHAPS: Final = ":"


def plot(curve: Curve) -> Iterator[str]:
    """Yield the lines of the plot.

    A column is a slice of time: a row in it has the sign of a loss that is certain for all of the
    slice, or possible for some of it, if that fills at least half of the row; in the lowest row any
    loss does.
    """
    slices = [_slice(curve, at) for at in range(WIDTH)]
    for row in reversed(range(HEIGHT)):
        line = "".join(_sign(lower, upper, row) for lower, upper in slices)
        yield f"{100 * (row + 1) // HEIGHT:>4}% |{line}".rstrip()
    yield f"      +{'-' * WIDTH}"
    middle, end = seconds(curve.until / 2), seconds(curve.until)
    left = f"0{middle:>{WIDTH // 2 + len(middle) // 2}}"
    yield f"      {left}{end:>{WIDTH + 1 - len(left)}}"


def _slice(curve: Curve, at: int) -> tuple[Fraction, Fraction]:
    """Return the least of the lower and the most of the upper bounds within a slice."""
    begin, end = (curve.until * each / WIDTH for each in (at, at + 1))
    within = [step for step, last in curve.pieces() if step.since < end and last > begin]
    return min(step.lower for step in within), max(step.upper for step in within)


def _sign(lower: Fraction, upper: Fraction, row: int) -> str:
    for share, sign in ((lower, LOST), (upper, PERHAPS)):
        if share * HEIGHT - row >= Fraction(1, 2) or (not row and share):
            return sign
    return " "
