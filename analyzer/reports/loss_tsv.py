"""``loss`` as TSV: one line for each ServicePort, greatest loss first.

Columns: ServicePort, protocol, family (``ip``, ``ip6``, or empty if not known),
state as in JSON, lower and upper bound of the loss on its worst route, the frontend and the source
of that route, its endpoints, how many of them are dead, the least share that reaches no endpoint
whatever is dead, the seconds of its session affinity, or empty, the greatest share that reaches
dead endpoints on that route, and the shares lost otherwise, a column for each way. Shares are
decimal, the nearest number with 53 bits; exact ones, and those of all routes, are in JSON. What is
not judged has the state ``not-judged`` and bounds of 0 and 1; so has, in a line without a name,
whatever is missing from a truncated dump.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.loss import ServiceLoss
from analyzer.failure.route_loss import RouteLoss
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.endings import EndKind, total
from analyzer.reports.answers import LossAnswer
from analyzer.reports.json_values import family
from analyzer.reports.loss_words import by_harm
from analyzer.reports.route_networks import networks
from analyzer.reports.tsv import cell

#: Lines that are written at a time.
_LINES = 256
HEADINGS = (
    "service",
    "protocol",
    "family",
    "state",
    "lower",
    "upper",
    "frontend",
    "from",
    "endpoints",
    "dead",
    "no_endpoint",
    "affinity",
    "on_dead",
    *(kind.value.replace("-", "_") for kind in EndKind if kind is not EndKind.REFUSED),
)
_ANY = ("not-judged", "0.0", "1.0", *("" for _ in HEADINGS[6:]))


def render(answer: LossAnswer) -> Iterator[str]:
    """Yield the lines, header first."""
    lines = ["\t".join(HEADINGS) + "\n"]
    for row in rows(answer):
        lines.append("\t".join(row) + "\n")
        if len(lines) > _LINES:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


def rows(answer: LossAnswer) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each line, without a header."""
    yield from map(cells, answer.losses if answer.in_order else by_harm(answer.losses))
    for name in (*answer.not_judged, *([""] if answer.is_cut else [])):
        yield (cell(name), "", "", *_ANY)


def not_judged(service: ServicePort | None) -> tuple[str, ...]:
    """Return the cells of a ServicePort, or of all, that is not evaluated."""
    if service is None:
        return ("", "", "", *_ANY)
    return (cell(service.name.text), service.protocol, family(service.version) or "", *_ANY)


def cells(loss: ServiceLoss) -> tuple[str, ...]:
    """Return the cells of one ServicePort."""
    service, worst = loss.service, loss.worst
    route = None if loss.worst_route is None else loss.worst_route.route
    source = "" if route is None else route.source.value
    within = f" in {networks(route)}" if route is not None and route.network is not None else ""
    return (
        cell(service.name.text),
        service.protocol,
        family(service.version) or "",
        loss.state.value,
        repr(float(worst.lower)),
        repr(float(worst.upper)),
        "" if route is None else f"{route.frontend.kind.value} {route.frontend}",
        f"{source}{within}",
        str(len(service.endpoints)),
        str(len(loss.dead)),
        repr(float(loss.nowhere.lower)),
        "" if service.affinity is None else str(service.affinity),
        *_ways(loss.worst_route),
    )


def _ways(route: RouteLoss | None) -> Iterator[str]:
    """Yield the share, at most, that is lost in each way."""
    if route is None:
        yield from ("",) * (len(HEADINGS) - HEADINGS.index("on_dead"))
        return
    yield repr(float(route.on_dead.upper))
    for kind in (kind for kind in EndKind if kind is not EndKind.REFUSED):
        yield repr(float(total(e for e in route.otherwise if e[0].kind is kind).upper))
