"""``loss`` of flows that reach no endpoint, whatever is dead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.loss import ServiceLoss
from analyzer.model.probability import Bounds
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Distinct shares that reach no endpoint anyway, each with its sentence.
_MOST_SENTENCES: Final = 3


def nowhere(answer: LossAnswer, told: Sequence[ServiceLoss]) -> Iterator[Line]:
    """Yield ServicePorts that lose flows though none of their endpoints is dead."""
    known = set(map(id, told))
    groups: dict[Bounds, list[ServiceLoss]] = {}
    for loss in answer.losses:
        if loss.nowhere.lower and id(loss) not in known and loss.otherwise is None:
            groups.setdefault(loss.nowhere, []).append(loss)
    by_share = sorted(groups.items(), key=lambda each: -float(each[0].lower))
    for share, lost in by_share[:_MOST_SENTENCES]:
        more = f" and {len(lost) - 1:,} more" if lost[1:] else ""
        to = f"{lost[0].service.name.text}{more}"
        says = f"{bounds_percent(share)} of new flows to {to} reach no endpoint anyway"
        yield Line((Span(says, Style.WARNING),))
    others = sum(len(lost) for _, lost in by_share[_MOST_SENTENCES:])
    if others:
        says = f"Less of those to {count(others, 'other ServicePort')} do: --format json has them"
        yield Line((Span(says, Style.WARNING),))
