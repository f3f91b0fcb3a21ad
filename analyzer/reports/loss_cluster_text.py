"""``loss`` on every node for people: each ServicePort's worst node and its mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.loss_at_every_node import LossAtEveryNode
from analyzer.model.probability import Bounds, Dyadic
from analyzer.reports.affinity import affinity_note
from analyzer.reports.cluster_answer import LossClusterAnswer
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.loss_summary import doubts, harm, threshold
from analyzer.reports.loss_words import STYLES, WORDS, by_harm, dead_words, worst_routes
from analyzer.reports.not_judged import lines as not_judged
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count, listed, proto
from analyzer.reports.predicted_text import at_nodes, dropped, grounds, head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final

_COLUMNS: Final = (
    Column("SERVICE PORT", shortens=True),
    Column("PROTO", spare=1),
    Column("DEAD", right=True),
    Column("LOST", right=True),
    Column(""),
    Column("AT", shortens=True),
    Column("MEAN OVER NODES", right=True, spare=3),
    Column("WORST ROUTE", spare=2),
)
#: ServicePorts that leave room for the rest on a screen of 24 lines.
_MOST: Final = 8
#: Bits of a mean that is shown.
_BITS: Final = 64


def render(answer: LossClusterAnswer) -> Document:
    """Return the summary over all nodes, then a line for each ServicePort that is hit."""
    losses = answer.losses
    blocks: list[Block] = [*summary(answer)]
    hit = [each for each in losses if each.worst.worst.upper]
    rows = losses if answer.brief else hit
    shown = rows if answer.brief or answer.every or answer.narrowed else rows[:_MOST]
    if shown:
        blocks += [Line(), service_ports(shown, len(answer.alive))]
    if len(rows) > len(shown):
        which = " hit" if answer.in_order else ", none worse"
        says = f"{count(len(rows) - len(shown), 'more ServicePort')}{which}: --summary"
        blocks.append(Line((Span(says, Style.FAINT),)))
    notes = [*ending(answer)]
    return Document([*blocks, *([Line(), *notes] if notes else [])])


def summary(answer: LossClusterAnswer) -> Iterator[Line]:
    """Yield what is dead, which nodes are evaluated, and how much is lost."""
    losses = answer.losses
    at = {id(each.worst): _nodes(each, len(answer.alive)) for each in losses}
    yield Line(("Dead: ", Span(dead_words(answer.dead), Style.STRONG)))
    yield from doubts(answer.dead, answer.cluster)
    yield from _seen(answer)
    everywhere = {id(each.worst) for each in losses if each.is_silenced_everywhere}
    worst = by_harm([each.worst for each in losses])
    yield from harm(worst, is_whole=answer.is_whole, at=at, everywhere=everywhere)
    yield from threshold(answer.threshold)
    yield from dropped(answer.every_node)
    yield from not_judged(answer.view, answer.absent)
    yield from head(answer.prediction)


def service_ports(losses: Sequence[LossAtEveryNode], alive: int) -> TextTable:
    """Return a line for each ServicePort; `alive` nodes live."""
    return TextTable(_COLUMNS, tuple(_row(each, alive) for each in losses))


def ending(answer: LossClusterAnswer) -> Iterator[Line]:
    """Yield which clients stay with an endpoint, and what the answer is based on."""
    hit = [each.worst.service for each in answer.losses if each.worst.worst.upper]
    yield from affinity_note(hit, answer.view.mode, lost=True)
    yield from grounds(answer.prediction)


def _seen(answer: LossClusterAnswer) -> Iterator[Line]:
    of = f" of {len(answer.alive) + len(answer.gone):,}" if answer.gone else ""
    known = "" if answer.knows_every_node else " whose rules are known"
    if answer.are_all_dead:
        yield Line((f"Judged at every node{known}, all of them dead: {len(answer.alive):,}.",))
        return
    yield Line((f"Judged at every living node{known}: {len(answer.alive):,}{of}.",))
    if answer.gone:
        verb = "is dead and sends" if len(answer.gone) == 1 else "are dead and send"
        yield Line((Span(f"Left out: {listed(answer.gone)}, which {verb} no flows.", Style.FAINT),))


def _nodes(each: LossAtEveryNode, alive: int) -> str:
    """Return where it loses most; every node are all live ones, whether they show it or not."""
    return at_nodes(sorted(each.worst_at), alive) or "every node"


def _row(each: LossAtEveryNode, alive: int) -> tuple[Cell, ...]:
    loss = each.worst
    endpoints = len(loss.service.endpoints)
    return (
        Span(loss.service.name.text, Style.STRONG),
        proto(loss.service.protocol, loss.service.version),
        f"{len(loss.dead):,} of {endpoints:,}" if endpoints else "",
        Span(bounds_percent(loss.worst), STYLES[loss.state]),
        Span(WORDS[loss.state], STYLES[loss.state]),
        _nodes(each, alive),
        bounds_percent(Bounds(*map(_share, each.mean))),
        worst_routes(loss) if loss.worst.upper else "",
    )


def _share(number: Fraction) -> Dyadic:
    return Dyadic.of((number.numerator << _BITS) // number.denominator, _BITS)
