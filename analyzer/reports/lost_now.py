"""What is lost with nothing dead: by which rule, and on which sources' flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.kubeproxy.view import ServicePort, Source
from analyzer.model.endings import Ending, EndKind
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Final, TypeAlias

    #: How flows end, their share, their sources, and what is lost in all, if that is not the same.
    _Told: TypeAlias = tuple[Ending, Bounds, str, Bounds | None]

    from analyzer.failure.loss import ServiceLoss
    from analyzer.failure.route_loss import KnownLosses, RouteLoss

#: Ways to be lost that have a sentence each.
_MOST: Final = 3
#: Characters of a rule that are quoted.
_LONGEST: Final = 120
#: What happens to flows; if it is not certain, what may happen to them.
_WORDS: Final = {
    EndKind.REFUSED: ("are refused", "may be refused"),
    EndKind.DROPPED: ("are dropped", "may be dropped"),
    EndKind.REJECTED: ("are rejected", "may be rejected"),
    EndKind.UNANSWERED: ("get no answer", "may get no answer"),
    EndKind.NOT_TRANSLATED: ("bypass conntrack and nat", "may bypass conntrack and nat"),
    EndKind.LEFT_OVER: (
        "are taken by no draw of the Service's chain",
        "may be taken by no draw of the Service's chain",
    ),
    EndKind.UNCHANGED: ("are sent to no endpoint", "may be sent to no endpoint"),
    EndKind.UNKNOWN: ("are lost", "may be lost"),
}
_UNKNOWN: Final = " (the dump does not show what happens to them)"


def _losing(services: Iterable[ServicePort]) -> Iterator[tuple[ServicePort, Sequence[_Told]]]:
    """Yield ServicePorts that lose flows with nothing dead, with their losses in words."""
    known: dict[Hashable, Sequence[_Told]] = {}
    losses: list[KnownLosses] = []
    for service in services:
        alike = class_of(service)
        told = None if alike is None else known.get(alike)
        if told is None:
            told = _told_of(service, losses) if _may_lose(service) else ()
            if alike is not None:
                known[alike] = told
        if told:
            yield service, told


def class_of(service: ServicePort) -> Hashable:
    """Return what is the same of ServicePorts of which the same is to be said; or None."""
    routes = service.routes
    if service.unfilled or isinstance(routes, tuple) or routes.is_quiet:
        return None
    alike = routes.class_of()
    return None if alike is None else (alike, service.frontends[0].kind)


def _told_of(service: ServicePort, known: list[KnownLosses]) -> Sequence[_Told]:
    """Return what to say about one; `known` holds the losses already found, if any."""
    from analyzer.failure.loss import service_loss
    from analyzer.failure.models import Dead
    from analyzer.failure.route_loss import Count, KnownLosses

    if not known:
        known.append(KnownLosses())
    loss = service_loss(service, Dead(endpoints=frozenset()), Count.ALL, known[0])
    told = []
    for route, ending, counted in _told(loss):
        astray = dict(route.route.astray).get(ending, counted)
        # For some the end is certain, but not whether it is a loss.
        is_open = counted == Bounds(NEVER, astray.upper)
        share = astray if is_open else counted  # which includes what is lost after DNAT
        alike = [each for each in loss.routes if (ending, counted) in each.otherwise]
        totals = [each.loss for each in alike]
        all_in_all = Bounds(min(each.lower for each in totals), max(e.upper for e in totals))
        total = None if is_open or all_in_all == counted else all_in_all
        told.append((ending, share, _sources(loss, alike), total))
    return told


def _may_lose(service: ServicePort) -> bool:
    if service.is_quiet:
        return False
    return any(route.astray or route.losses() for route in service.routes)


def sentences(services: Iterable[ServicePort]) -> Iterator[Line]:
    """Say which ServicePorts lose flows with nothing dead, the most certain and greatest first."""
    groups: dict[_Told, list[ServicePort]] = {}
    for service, told in _losing(services):
        for each in told:
            groups.setdefault(each, []).append(service)
    order = sorted(groups, key=lambda each: (-float(each[1].lower), -float(each[1].upper)))
    for key in order[:_MOST]:
        yield _sentence(*key, groups[key])
    if order[_MOST:]:
        named = {service.name.text for key in order[:_MOST] for service in groups[key]}
        rest = {service.name.text for key in order[_MOST:] for service in groups[key]} - named
        more = f"{count(len(rest), 'more ServicePort')} with such losses" if rest else "More losses"
        yield Line((Span(f"{more}: --format json has them", Style.WARNING),))


def _told(loss: ServiceLoss) -> Iterator[tuple[RouteLoss, Ending, Bounds]]:
    """Yield how most flows are lost for certain, how more of them may be, and all other ways.

    Of each way the route that loses most: a rule may end all flows of one pod, and the answers to
    half of all others'.
    """
    route = loss.otherwise
    if route is None:
        return
    first = max(route.otherwise, key=lambda each: (each[1].lower, each[1].upper))
    yield route, *first
    every = [(each, *ending) for each in loss.routes for ending in each.otherwise]
    most = max(every, key=lambda each: each[2].upper)
    told = {first[0]}
    if most[2].upper > first[1].upper:
        yield most
        told.add(most[1])
    for each in sorted(every, key=lambda each: (each[2].lower, each[2].upper), reverse=True):
        if each[1] not in told:
            yield each
            told.add(each[1])


def _sentence(
    ending: Ending,
    share: Bounds,
    where: str,
    total: Bounds | None,
    losing: Sequence[ServicePort],
) -> Line:
    first = losing[0].name.text
    who = f"{first} and {len(losing) - 1:,} more" if losing[1:] else first
    certain, perhaps = _WORDS[ending.kind]
    most = bounds_percent(share if share.lower else Bounds(share.upper, share.upper))
    many = f"{'' if share.lower else 'up to '}{most} of"
    verb = certain if share.lower else perhaps
    style = Style.BAD if share.lower == ALWAYS else Style.WARNING
    others = "" if total is None else f"; with other losses, {bounds_percent(total)} in all"
    told = f"{who}: {many} new flows {where} {verb} now{_by(ending)}{others}."
    return Line((Span(told, style),))


def _by(ending: Ending) -> str:
    """Return what decides, for a sentence to end with."""
    if ending.kind is EndKind.UNKNOWN:
        return _UNKNOWN
    table = f"table {ending.table}, " if ending.table else ""
    place = "" if ending.place is None else f"{ending.place}: "
    if not ending.rule:
        return f" ({table}{place}{ending.how})" if ending.how else ""
    rule = " ".join(ending.rule.split())
    rule = rule if len(rule) <= _LONGEST else f"{rule[:_LONGEST]}..."
    from analyzer.model.programs import program_of

    written_by = program_of(ending.chain, ending.rule, ending.table)
    whose = f"{written_by}, " if written_by else ""
    return f" ({whose}{table}{place}{rule})"


def _sources(loss: ServiceLoss, routes: Sequence[RouteLoss]) -> str:
    """Return whose flows end so, those of some routes."""
    from analyzer.reports.loss_words import sources_of  # few dumps need it

    if len(routes) == len(loss.routes) and routes[0].route.source is not Source.HAIRPIN:
        return "from everywhere"
    return f"from {sources_of(routes, loss.routes)}"
