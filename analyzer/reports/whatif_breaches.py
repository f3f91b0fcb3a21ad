"""The thresholds of ``whatif`` that are exceeded, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.whatif import FailureKind
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.numbers import percent
from analyzer.reports.phrases import count, listed, named
from analyzer.reports.whatif_ways import way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.failure.incidence import RouteRow
    from analyzer.model.probability import Dyadic

#: Most names of a set of nodes that are shown.
MOST_NAMES: Final = 3


def breaches(answer: WhatIfAnswer) -> Iterator[Line]:
    """Yield which thresholds are exceeded, and by what."""
    told: set[str] = set()  # a set of nodes may break it by one of them alone
    for each in answer.breaches:
        if each.kind is None or each.none is None:
            continue
        what = _failing(each.kind, each.names)
        lost = most_lost(each.row, each.none)
        cost = f"{named(each.service)} {lost} of the flows {way(each.row)}"
        says = f"--max-loss: losing {what} may cost more, for example {cost}."
        if says not in told:
            told.add(says)
            yield Line((Span(says, Style.BAD),))
    for option, least, unit in limits_of_survival(answer):
        few = [
            named(each.service)
            for each in answer.breaches
            if each.kind is None and each.of_zones is (unit == "zone")
        ]
        if few:
            who = f"{count(len(few), 'ServicePort')} may not survive {count(least, unit)}"
            says = f"{option} {least}: {who}: {listed(few)}."
            yield Line((Span(says, Style.BAD),))
        if answer.lost_now:
            names = listed([named(answer.found.services[at]) for at in answer.lost_now])
            says = f"{option} is already broken: with nothing dead, all new flows on a route "
            says += f"may be lost: {names}."
            yield Line((Span(says, Style.BAD),))
    if answer.is_lost_beyond:
        says = "--max-loss is already broken: more may be lost with nothing dead."
        yield Line((Span(says, Style.BAD),))
    elif answer.is_broken and not answer.breaches and not answer.lost_now:
        yield Line((Span("Not everything was judged: that breaks the thresholds.", Style.BAD),))


def most_lost(row: RouteRow, none: Dyadic) -> str:
    """Return the share of a route's flows that reaches no living endpoint, at most `none`."""
    return percent(none, up=None if row.is_exact else True)


def limits_of_survival(answer: WhatIfAnswer) -> Iterator[tuple[str, int, str]]:
    """Yield the limits on what ServicePorts survive: the option, how many, and of what."""
    if answer.min_survives is not None:
        yield "--min-survives", answer.min_survives, "node"
    if answer.min_survives_zones is not None:
        yield "--min-survives-zones", answer.min_survives_zones, "zone"


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
