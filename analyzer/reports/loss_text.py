"""``loss`` for people: the worst first, and a verdict in one line at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from analyzer.failure.loss import ServiceLoss, State, in_order
from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, Table
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.phrases import at_node, count

_COLUMNS = (
    Column("SERVICE PORT", foldable=True),
    Column("PROTO", spare=2),
    Column("ENDPOINT", begins=True),
    Column("NODE"),
    Column("SHARE", right=True, spare=1),
    Column("OF NEW FLOWS", right=True),
    Column(""),
)

STATE_STYLES = {
    State.UNTOUCHED: Style.GOOD,
    State.DEGRADED: Style.WARNING,
    State.SILENCED: Style.BAD,
    State.NO_ENDPOINTS: Style.FAINT,
}


def render(answer: LossAnswer) -> Document:
    """Return a table of what is hit, each dead endpoint marked, and the verdict."""
    losses = answer.losses if answer.in_order else in_order(answer.losses, "loss")
    hit = [loss for loss in losses if loss.worst.upper]
    rows = [row for loss in hit for row in _rows(loss, answer)]
    head = f"Dead{at_node(answer.view)}: {_dead(answer.dead)}"
    blocks: list[Block] = [Line((head,)), Line()]
    if answer.dead.uncertain:
        number = count(len(answer.dead.uncertain), "endpoint")
        says = f"Nobody says where {number} of this dump are: they count as dead or alive."
        blocks += [Line((Span(says, Style.WARNING),)), Line()]
    if rows:
        blocks += [Table(_COLUMNS, tuple(rows)), Line()]
    return Document([*blocks, *verdict(answer, hit)])


def _dead(dead: Dead) -> str:
    named = [f"node {n}" for n in dead.nodes] + [f"zone {z}" for z in dead.zones]
    named += [f"endpoint {e}" for e in dead.named]
    addresses = len({e.address for e in dead.endpoints})
    listed = ", ".join(named) or "nothing"
    return f"{listed} ({count(addresses, 'endpoint address', 'endpoint addresses')})"


def _rows(loss: ServiceLoss, answer: LossAnswer) -> Iterator[tuple[Cell, ...]]:
    service = loss.service
    style = STATE_STYLES[loss.state]
    shown = loss.loss if loss.loss is not None else loss.worst
    yield (
        Span(service.name.text, Style.STRONG),
        service.protocol,
        f"{len(loss.dead)} of {len(service.endpoints)} dead",
        "",
        Span(bounds_fraction(shown), style),
        Span(bounds_percent(shown), style),
        Span(f"lost: {loss.state.value}", style),
    )
    yield from _endpoints(loss, answer)
    for each in loss.routes:
        if each.loss != shown and each.route.shares:
            route = each.route
            yield (
                "",
                "",
                f"{route.frontend.kind.value} {route.frontend}",
                f"from {route.source.value if route.network is None else route.network}",
                bounds_fraction(each.loss),
                bounds_percent(each.loss),
                Span("lost", STATE_STYLES[State.DEGRADED] if each.loss.upper else Style.GOOD),
            )


#: A Service with more endpoints than this shows its dead ones only.
_MOST_ENDPOINTS = 10


def _perhaps(endpoint: Endpoint, answer: LossAnswer) -> Cell:
    return Span("dead?", Style.WARNING) if endpoint in answer.dead.uncertain else ""


def _endpoints(loss: ServiceLoss, answer: LossAnswer) -> Iterator[tuple[Cell, ...]]:
    route = loss.service.cluster_route or next(iter(loss.service.routes), None)
    shares = route.shares if route is not None else ()
    dead = set(loss.dead)
    if len(shares) > _MOST_ENDPOINTS:
        shares = tuple(s for s in shares if s.endpoint in dead)
    for share in shares[:_MOST_ENDPOINTS]:
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
        )
    if len(shares) > _MOST_ENDPOINTS:
        yield ("", "", Span(f"... and {len(shares) - _MOST_ENDPOINTS} more dead", Style.FAINT))


#: Distinct losses that get a sentence, the highest first.
_MOST_SENTENCES = 3


def verdict(answer: LossAnswer, hit: list[ServiceLoss]) -> Iterator[Line]:
    """Give the totals, and the worst losses as sentences."""
    counts = Counter(loss.state for loss in answer.losses)
    totals = [f"{counts[state]} {state.value}" for state in State if counts[state]]
    yield Line((f"{count(len(answer.losses), 'ServicePort')}: {', '.join(totals) or 'none'}.",))
    if answer.view.cut:
        says = "The dump ends before all ServicePorts are told: what others lose is not known."
        yield Line((Span(says, Style.WARNING),))
    if not hit:
        what = " to those that it tells" if answer.view.cut else ""
        yield Line((Span(f"No new flow{what} lands on a dead endpoint.", Style.GOOD),))
        return
    groups: dict[tuple[Bounds, bool], list[ServiceLoss]] = {}
    for loss in hit:
        groups.setdefault((loss.worst, loss.loss == loss.worst), []).append(loss)
    for (share, everywhere), lost in list(groups.items())[:_MOST_SENTENCES]:
        name = lost[0].service.name.text + (f" and {len(lost) - 1} more" if lost[1:] else "")
        route = "" if everywhere else ", on the worst route,"
        style = Style.BAD if share.upper == ALWAYS else Style.WARNING
        sentence = f"{bounds_percent(share)} of new flows to {name}{route} land on dead endpoints"
        yield Line((Span(sentence, style),))
