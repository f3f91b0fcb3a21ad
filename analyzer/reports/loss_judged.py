"""What ``loss`` says of ServicePorts that it does not judge, and of flows lost whatever is dead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.loss import ServiceLoss
from analyzer.model.probability import Bounds
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_IPV4: Final = 4
#: Distinct shares that reach no endpoint anyway, each with its sentence.
_MOST_SENTENCES: Final = 3


def nowhere(answer: LossAnswer, told: Sequence[ServiceLoss]) -> Iterator[Line]:
    """Name ServicePorts that lose flows though nothing of theirs is dead."""
    known = set(map(id, told))
    groups: dict[Bounds, list[ServiceLoss]] = {}
    for loss in answer.losses:
        if loss.nowhere.lower and id(loss) not in known:
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


def not_judged(answer: LossAnswer) -> Iterator[Line]:
    """Name what is not judged, each with the reason."""
    lacking, beyond = answer.absent.lacking, answer.absent.beyond
    if answer.view.cut:
        says = "The dump ends before all ServicePorts are told: what others lose is not known."
        yield Line((Span(says, Style.WARNING),))
    if lacking:
        what = count(len(lacking), "ServicePort of the objects", "ServicePorts of the objects")
        says = f"Not judged: {what} without a rule in the dump ({listed(answer.names(lacking))})."
        yield Line((Span(says, Style.WARNING),))
    if beyond:
        version = beyond[0].version
        program = "iptables-save" if version == _IPV4 else "ip6tables-save"
        what = count(len(beyond), f"ServicePort of IPv{version}", f"ServicePorts of IPv{version}")
        names = listed([each.name.text for each in beyond])
        says = f"Not judged: {what} ({names}); `{program}` prints their rules."
        yield Line((Span(says, Style.WARNING),))
    if unled := answer.absent.unled:
        what = count(len(unled), "ServicePort", "ServicePorts")
        names = listed([each.name.text for each in unled])
        says = f"Not judged: {what} with chains that no rule leads to ({names})."
        yield Line((Span(says, Style.WARNING),))
    if answer.view.left_out:
        names = listed(answer.view.left_out)
        says = f"Not judged in whole, since not all rules are understood: {names}."
        yield Line((Span(says, Style.WARNING),))
