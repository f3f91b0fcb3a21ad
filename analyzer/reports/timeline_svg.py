"""``timeline`` as SVG, for documents."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports.answers import TimelineAnswer
from analyzer.reports.pictures.curves import curves
from analyzer.reports.timeline_text import in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: ServicePorts that are drawn; with --all each.
_MOST: Final = 5


def render(answer: TimelineAnswer) -> Iterator[str]:
    """Yield the picture in pieces."""
    lost = in_order(answer)
    yield from curves(lost if answer.every else lost[:_MOST], answer.scenario.events, alone=True)
