"""What ServicePorts lose over time: one strip each, one below the other.

What is certainly lost is drawn full, what may be lost above it faintly; a line stands where
something happens for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from analyzer.outage.scenario import OutageEvent
from analyzer.outage.timeline import Curve, Played
from analyzer.reports.pages.blocks import escape
from analyzer.reports.phrases import SOURCES
from analyzer.reports.pictures.svg import line, number, picture, rect, text
from analyzer.reports.times import length, seconds, share, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_WIDTH: Final = 960.0
_LEFT, _RIGHT = 48.0, 24.0
#: Of a strip: its title, its curve, and the seconds below.
_TITLE, _HIGH, _AXIS = 24.0, 72.0, 30.0
_STRIP: Final = _TITLE + _HIGH + _AXIS
_TICKS: Final = 4


def curves(
    played: Sequence[Played], events: Sequence[OutageEvent], *, alone: bool
) -> Iterator[str]:
    """Yield the picture."""
    title = "Share of new flows that is lost, over time"
    height = max(1, len(played)) * _STRIP
    inside = _strips(played, events) if played else iter([text(0, 20, "Nothing is lost.")])
    yield from picture(_WIDTH, height, title, inside, alone=alone)


def _strips(played: Sequence[Played], events: Sequence[OutageEvent]) -> Iterator[str]:
    for at, each in enumerate(played):
        top = at * _STRIP
        yield text(0, top + 15, _title(each), "strong") + "\n"
        yield from _curve(each.curve, events, top + _TITLE)


def _title(played: Played) -> str:
    way = "" if played.route is None else f", from {SOURCES[played.route.source]}"
    lost = length(*played.curve.lost)
    return f"{played.service.name.text}{way}: {share(*played.first)} at once, {lost} worth in all"


def _curve(curve: Curve, events: Sequence[OutageEvent], top: float) -> Iterator[str]:
    base, until = top + _HIGH, curve.until
    for each in (0, 50, 100):
        y = base - _HIGH * each / 100
        yield line(_LEFT, y, _WIDTH - _RIGHT, y)
        yield text(_LEFT - 6, y + 4, f"{each}%", "small faint", "end")
    for step, end in curve.pieces():
        x, width = _x(step.since, until), _x(end, until) - _x(step.since, until)
        told = f"{seconds(step.since)} to {seconds(end)}: {share(step.lower, step.upper)} lost"
        shapes = [
            rect(x, base - _HIGH * float(high), width, _HIGH * float(high - low), kind)
            for low, high, kind in (
                (Fraction(0), step.lower, "lost"),
                (step.lower, step.upper, "perhaps"),
            )
            if high > low
        ]
        if shapes:
            yield f"<g><title>{escape(told)}</title>{''.join(shapes)}</g>\n"
    for event in events:
        when = event.when.earliest
        if when is not None and when < until:
            x = _x(when, until)
            told = escape(f"{span(event.when)}: {event.what}")
            mark = f'stroke-dasharray="2 3" x1="{number(x)}" y1="{number(top)}"'
            yield f'<line class="line" {mark} x2="{number(x)}" y2="{number(base)}">'
            yield f"<title>{told}</title></line>\n"
    for tick in range(_TICKS + 1):
        second = until * tick / _TICKS
        anchor = "end" if tick == _TICKS else "middle"
        yield text(_x(second, until), base + 14, seconds(second) or "0s", "small faint", anchor)
    yield "\n"


def _x(second: Fraction, until: Fraction) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * float(second / until)
