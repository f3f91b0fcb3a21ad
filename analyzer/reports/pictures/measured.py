"""The kernel's counts beside the prediction: one line for each endpoint.

The band holds the counts that agree with the prediction; a count outside of it is called wrong. It
comes from the exact binomial test of `lab`, one endpoint of all taken at its strictest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.agreement import JudgedEndpoint, JudgedMeasurement
from analyzer.failure.binomial import noticed_deviation
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.pages.blocks import escape
from analyzer.reports.pictures.svg import fitting, line, number, picture, rect, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_WIDTH: Final = 960.0
_LEFT, _RIGHT = 220.0, 150.0
_ROW: Final = 26.0
_HEAD, _AXIS = 28.0, 34.0
#: Endpoints of one measurement that are drawn.
_MOST: Final = 60


def measured(verdicts: Sequence[JudgedMeasurement], *, alone: bool) -> Iterator[str]:
    """Yield the picture of some measurements."""
    height = sum(_height(verdict) for verdict in verdicts)
    title = "Predicted and measured"
    yield from picture(_WIDTH, max(height, _HEAD), title, _drawn(verdicts), alone=alone)


def _height(verdict: JudgedMeasurement) -> float:
    return _HEAD + _ROW * min(len(verdict.endpoints), _MOST) + _AXIS


def _drawn(verdicts: Sequence[JudgedMeasurement]) -> Iterator[str]:
    top = 0.0
    for verdict in verdicts:
        found = verdict.measurement
        head = f"{found.service} ({found.protocol}, {found.frontend}) from {found.source}"
        yield text(0, top + 16, f"{head}: {found.flows:,} new flows", "strong") + "\n"
        shown = verdict.endpoints[:_MOST]
        largest = max((_largest(each, found.flows) for each in shown), default=0.0)
        scale = min(1.0, 1.15 * largest) or 1.0
        rate = verdict.false_alarm_rate / max(1, len(verdict.endpoints))
        for at, each in enumerate(shown):
            yield from _row(each, found.flows, rate, top + _HEAD + _ROW * at, scale)
        base = top + _HEAD + _ROW * len(shown)
        yield line(_LEFT, base, _WIDTH - _RIGHT, base)
        for tick in range(5):
            share = scale * tick / 4
            yield text(_x(share, scale), base + 16, f"{100 * share:.1f}%", "small faint", "middle")
        yield "\n"
        top += _height(verdict)


def _largest(each: JudgedEndpoint, flows: int) -> float:
    return max(float(each.endpoint.predicted.upper), each.endpoint.landed / max(1, flows))


def _row(verdict: JudgedEndpoint, flows: int, rate: float, y: float, scale: float) -> Iterator[str]:
    each = verdict.endpoint
    name = fitting(f"{each.address}:{each.port}{' DEAD' if each.dead else ''}", _LEFT - 12)
    yield text(_LEFT - 8, y + 17, name, anchor="end")
    middle = y + _ROW / 2
    lower, upper = float(each.predicted.lower), float(each.predicted.upper)
    counted = each.landed / max(1, flows)
    far = noticed_deviation(flows, each.predicted, rate) if flows else None
    band = (0.0, 1.0) if far is None else (max(0.0, lower - far), min(1.0, upper + far))
    begins, ends = (_x(share, scale) for share in band)
    told = f"predicted {bounds_percent(each.predicted)}, measured {100 * counted:.2f}%"
    told += f", agrees from {100 * band[0]:.2f} to {100 * band[1]:.2f}%"
    yield f'<g><title>{escape(told)}</title><g class="other">'
    yield rect(begins, middle - 8, min(ends, _WIDTH - _RIGHT) - begins, 16) + "</g>"
    yield rect(
        _x(lower, scale) - 1, middle - 10, _x(upper - lower, scale) - _LEFT + 2, 20, "predicted"
    )
    at = number(_x(counted, scale))
    yield f'<circle class="measured" cx="{at}" cy="{number(middle)}" r="4"/></g>'
    says = f"{100 * counted:.2f}% {'agrees' if verdict.agrees else 'DISAGREES'}"
    yield text(_WIDTH - _RIGHT + 8, y + 17, says, "" if verdict.agrees else "strong") + "\n"


def _x(share: float, scale: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * share / scale
