"""Tables of ``loss``: one line for each ServicePort, or all of its endpoints and routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyzer.failure.loss import LossState, ServiceLoss
from analyzer.kubeproxy.view import Endpoint
from analyzer.reports.affinity import duration
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Cell, Column, Span, Style, TextTable
from analyzer.reports.loss_words import STYLES, WORDS, worst_routes
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.phrases import proto
from analyzer.reports.pod_column import with_pods
from analyzer.reports.route_networks import networks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_BRIEF: Final = (
    Column("SERVICE PORT", shortens=True),
    Column("PROTO", spare=1),
    Column("DEAD", right=True),
    Column("LOST", right=True),
    Column(""),
    Column("WORST ROUTE", spare=2),
)
_WHOLE: Final = (
    Column("SERVICE PORT", shortens=True),
    Column("PROTO", spare=3),
    Column("ENDPOINT", begins=True),
    Column("NODE", shortens=True),
    Column("EXACT", right=True, spare=2),
    Column("SHARE", right=True),
    Column(""),
)
#: What follows the loss of a route.
_LOST: Final = Span("lost", Style.WARNING)
_UNTOUCHED: Final = Span(WORDS[LossState.UNTOUCHED], STYLES[LossState.UNTOUCHED])
#: A Service with more endpoints than this shows only its dead ones, and at most this many of them.
_MOST_ENDPOINTS: Final = 10


def brief(losses: Sequence[ServiceLoss], at: Mapping[int, str] | None = None) -> TextTable:
    """Return one line for each ServicePort, with what its worst route loses.

    `at`: of several nodes, by the identity of a loss, where that is so.
    """
    if at is None:
        return TextTable(_BRIEF, tuple(_line(each) for each in losses))
    rows = tuple((*_line(each)[:-1], at[id(each)], _line(each)[-1]) for each in losses)
    return TextTable((*_BRIEF[:-1], Column("AT", shortens=True), _BRIEF[-1]), rows)


def whole(losses: Sequence[ServiceLoss], answer: LossAnswer) -> TextTable:
    """Return a table of ServicePorts with their endpoints, and routes with other losses."""
    return with_pods(_WHOLE, (row for each in losses for row in _rows(each, answer)))


def height(loss: ServiceLoss) -> int:
    """Return the most lines that a ServicePort takes in `whole`."""
    return 1 + min(len(loss.service.endpoints), _MOST_ENDPOINTS + 1) + _others(loss)


def _others(loss: ServiceLoss) -> int:
    shown = loss.loss if loss.loss is not None else loss.worst
    return sum(each.loss != shown for each in loss.routes)


def _line(loss: ServiceLoss) -> tuple[Cell, ...]:
    style, endpoints = STYLES[loss.state], len(loss.service.endpoints)
    return (
        Span(loss.service.name.text, Style.STRONG),
        proto(loss.service.protocol, loss.service.version),
        f"{len(loss.dead):,} of {endpoints:,}" if endpoints else "",
        Span(bounds_percent(loss.worst), style),
        _state(loss),
        worst_routes(loss) if loss.worst.upper else "",
    )


def _state(loss: ServiceLoss) -> Cell:
    seconds = loss.service.affinity
    told = Span(WORDS[loss.state], STYLES[loss.state])
    return told if seconds is None else (told, f", affinity {duration(seconds)}")


def _rows(loss: ServiceLoss, answer: LossAnswer) -> Iterator[tuple[Cell, ...]]:
    service = loss.service
    style = STYLES[loss.state]
    shown = loss.loss if loss.loss is not None else loss.worst
    endpoints = len(service.endpoints)
    yield (
        Span(service.name.text, Style.STRONG),
        proto(service.protocol, service.version),
        f"{len(loss.dead):,} of {endpoints:,} dead" if endpoints else "endpoints unknown",
        "",
        Span(bounds_fraction(shown), style),
        Span(bounds_percent(shown), style),
        _state(loss),
    )
    yield from _endpoints(loss, answer)
    for each in loss.routes:
        if each.loss != shown and each.route.shares:
            route = each.route
            yield (
                "",
                "",
                f"{route.frontend.kind.value} {route.frontend}",
                f"from {networks(route) or route.source.value}",
                bounds_fraction(each.loss),
                bounds_percent(each.loss),
                _LOST if each.loss.upper else _UNTOUCHED,
            )


def _perhaps(endpoint: Endpoint, answer: LossAnswer) -> Cell:
    return Span("dead?", Style.WARNING) if endpoint in answer.dead.uncertain else ""


def _endpoints(loss: ServiceLoss, answer: LossAnswer) -> Iterator[tuple[Cell, ...]]:
    route = loss.service.cluster_route or next(iter(loss.service.routes), None)
    shares = route.shares if route is not None else ()
    dead = set(loss.dead)
    most = len(shares) if answer.every else _MOST_ENDPOINTS
    if len(shares) > most:
        shares = tuple(s for s in shares if s.endpoint in dead)
    for share in shares[:most]:
        is_dead = share.endpoint in dead
        style = Style.BAD if is_dead else Style.PLAIN
        yield (
            "",
            "",
            Span(str(share.endpoint), style),
            answer.cluster.placement(share.endpoint.address).node or Span("?", Style.FAINT),
            bounds_fraction(share.share),
            bounds_percent(share.share),
            Span("DEAD", style) if is_dead else _perhaps(share.endpoint, answer),
            answer.cluster.pods.of(share.endpoint.address, share.endpoint.port) or "",
        )
    if len(shares) > most:
        yield ("", "", Span(f"{len(shares) - most:,} more dead, with --all", Style.FAINT))
    nowhere = loss.cluster.nowhere if loss.cluster is not None else loss.nowhere
    if shares and nowhere.upper:
        name = Span("no endpoint", Style.WARNING)
        lost = "lost anyway" if nowhere.lower else "possibly lost anyway"
        yield ("", "", name, "", bounds_fraction(nowhere), bounds_percent(nowhere), lost)
