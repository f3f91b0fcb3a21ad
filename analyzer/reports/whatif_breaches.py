"""The thresholds of ``whatif`` that are exceeded, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.whatif import FailureKind
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.numbers import percent
from analyzer.reports.phrases import count, listed
from analyzer.reports.whatif_ways import way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Most names of a set of nodes that are shown.
MOST_NAMES: Final = 3


def breaches(answer: WhatIfAnswer) -> Iterator[Line]:
    """Yield which thresholds are exceeded, and by what."""
    for each in answer.breaches:
        if each.kind is None or each.none is None:
            continue
        what = _failing(each.kind, each.names)
        cost = f"{each.service.name.text} {percent(each.none)} of the flows {way(each.row)}"
        says = f"--max-loss: losing {what} may cost more, for example {cost}."
        yield Line((Span(says, Style.BAD),))
    few = [each for each in answer.breaches if each.kind is None]
    if few:
        names = listed([each.service.name.text for each in few])
        number, who = answer.min_survives or 0, count(len(few), "ServicePort")
        says = f"--min-survives {number}: {who} may not survive {count(number, 'node')}: {names}."
        yield Line((Span(says, Style.BAD),))
    if answer.is_lost_now:
        says = "--max-loss is already broken: more may be lost with nothing dead."
        yield Line((Span(says, Style.BAD),))
    elif answer.is_broken and not answer.breaches:
        yield Line((Span("Not everything was judged: that breaks the thresholds.", Style.BAD),))


def _failing(kind: FailureKind, names: Sequence[str]) -> str:
    match kind:
        case FailureKind.ZONE:
            return f"zone {names[0]}"
        case FailureKind.CONTROL_PLANE:
            return "the control plane"
        case FailureKind.NODE | FailureKind.SET:
            return some(names)


def some(names: Sequence[str]) -> str:
    """Return the first few names, and the number of the others."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES:,} more"
