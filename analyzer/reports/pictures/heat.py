"""What each node costs each ServicePort: a heat map, greatest loss first.

The darker, the more is lost; each cell has the figure too, so that colour is never the only sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.costs import worst_of
from analyzer.failure.whatif import WhatIf
from analyzer.model.probability import Bounds
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.pages.blocks import escape
from analyzer.reports.phrases import count
from analyzer.reports.pictures.svg import fitting, number, picture, rect, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_LEFT, _TOP = 260.0, 110.0
_ROW, _COLUMN = 20.0, 58.0
_BELOW: Final = 24.0
#: The length of a node's name above its column.
_HEAD: Final = 120.0
#: Shares above which a cell is darker, and from which of these on it has light text.
_STEPS: Final = (0.0, 0.25, 0.5)
_MUCH: Final = 2


def heat(
    found: WhatIf, services: Sequence[int], nodes: Sequence[int], *, alone: bool
) -> Iterator[str]:
    """Yield the picture of some ServicePorts and nodes, by their places."""
    width = _LEFT + _COLUMN * len(nodes) + 60
    height = _TOP + _ROW * len(services) + _BELOW
    title = "Share of new flows that each ServicePort loses when a node dies"
    yield from picture(width, height, title, _drawn(found, services, nodes), alone=alone)


def domain(names: Sequence[str]) -> str:
    """Return the end that all names have in common, from a dot on; empty if there is none."""
    if not names:
        return ""
    ends = [name.split(".")[:0:-1] for name in names]
    parts = []
    for labels in zip(*ends, strict=False) if len(names) > 1 else ():
        if len({*labels}) > 1:
            break
        parts.append(labels[0])
    return "".join(f".{label}" for label in reversed(parts))


def _drawn(found: WhatIf, services: Sequence[int], nodes: Sequence[int]) -> Iterator[str]:
    common = domain([found.nodes.groups[node] for node in nodes])
    for column, node in enumerate(nodes):
        x, y = _LEFT + _COLUMN * (column + 0.5), _TOP - 8
        whole = found.nodes.groups[node]
        # Cut in the middle, names of one domain may all be the same.
        is_long = fitting(whole, _HEAD) != whole
        name = fitting(whole.removesuffix(common), _HEAD) if is_long else whole
        yield (
            f'<text transform="translate({number(x)} {number(y)}) rotate(-45)">{escape(name)}'
            "</text>\n"
        )
    for row, service in enumerate(services):
        y = _TOP + _ROW * row
        name = fitting(found.services[service].name.text, _LEFT - 12)
        yield text(_LEFT - 8, y + 14, name, anchor="end") + "\n"
        for column, node in enumerate(nodes):
            yield _cell(_loss(found, service, node), _LEFT + _COLUMN * column, y)
    hidden = [
        count(len(every) - len(shown), noun)
        for every, shown, noun in (
            (found.services, services, "more ServicePort"),
            (found.nodes.groups, nodes, "more node"),
        )
        if len(every) > len(shown)
    ]
    if hidden:
        y = _TOP + _ROW * len(services) + 16
        yield text(0, y, f"Not drawn: {', '.join(hidden)}.", "faint small") + "\n"


def _loss(found: WhatIf, service: int, node: int) -> Bounds | None:
    rows = found.nodes.services[service]
    if not rows:
        return None
    _, _, row, _ = worst_of(rows, (node,))
    return row.loss((node,))


def _cell(loss: Bounds | None, x: float, y: float) -> str:
    if loss is None or not loss.upper:
        return rect(x, y, _COLUMN - 1, _ROW - 1, "heat-0") + "\n"
    share = float(loss.upper)
    step = sum(share > each for each in _STEPS)
    kind = "small much" if step >= _MUCH else "small"
    words = fitting(bounds_percent(loss), _COLUMN, 10)
    return (
        f"<g><title>{escape(bounds_percent(loss))}</title>"
        f"{rect(x, y, _COLUMN - 1, _ROW - 1, f'heat-{step}')}"
        f"{text(x + _COLUMN / 2, y + 14, words, kind, 'middle')}</g>\n"
    )
