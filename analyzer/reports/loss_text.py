"""``loss`` for people: a short summary, then the worst Services one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.loss import ServiceLoss
from analyzer.reports.affinity import affinity_note
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Block, Document, Line, Span, Style
from analyzer.reports.loss_nowhere import nowhere
from analyzer.reports.loss_overview import overview
from analyzer.reports.loss_rows import brief, height, whole
from analyzer.reports.loss_steps import steps
from analyzer.reports.loss_summary import summary
from analyzer.reports.loss_words import by_harm
from analyzer.reports.not_judged import lines
from analyzer.reports.phrases import assumed, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Most lines of a table that leave room for the rest on a screen of 24 lines.
_MOST: Final = 6
_FEWER: Final = 4


def render(answer: LossAnswer) -> Document:
    """Return the summary, then as many losses as fit on a screen or as the options select."""
    if not answer.dead.is_anything:
        return overview(answer)
    losses = list(answer.losses) if answer.in_order else by_harm(answer.losses)
    hit = [loss for loss in losses if loss.worst.upper]
    blocks: list[Block] = [*summary(answer, by_harm(losses))]
    shown = list(table(answer, losses, hit))
    if shown:
        blocks += [Line(), *shown]
    notes = [
        *lines(answer.view, answer.absent),
        *nowhere(answer, hit),
        *assumed(answer.diagnostics),
    ]
    if notes:
        blocks += [Line(), *notes]
    told = () if answer.quiet else tuple(steps(answer))
    pinned = tuple(affinity_note([each.service for each in hit], answer.view.mode, lost=True))
    for more in (told, pinned):
        if more:
            blocks += [Line(), *more]
    return Document(blocks)


def table(
    answer: LossAnswer, losses: Sequence[ServiceLoss], hit: Sequence[ServiceLoss]
) -> Iterator[Block]:
    """Yield as many losses as the options select, or as fit on a screen."""
    if answer.brief:
        yield brief(losses)
        return
    if not hit:
        return
    if answer.every or answer.narrowed or sum(map(height, hit)) <= _MOST:
        yield whole(hit, answer)
        return
    shown = hit if len(hit) <= _MOST else hit[:_FEWER]
    yield brief(shown)
    more = len(hit) - len(shown)
    which = ", none worse" if not answer.in_order else " hit"
    rest = f"{count(more, 'more ServicePort')}{which}: --summary. " if more else ""
    each = "Endpoints" if rest else "Each with its endpoints"
    yield Line((Span(f"{rest}{each}: --all, --service, -n", Style.FAINT),))
