"""``loss`` as a page: which Services lose how much, and the effect of more dead nodes."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.models import dead
from analyzer.failure.route_loss import Count
from analyzer.kubeproxy.view import Endpoint
from analyzer.reports.affinity import affinity_note
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Block, Line
from analyzer.reports.loss_nowhere import nowhere
from analyzer.reports.loss_rows import brief, whole
from analyzer.reports.loss_steps import steps
from analyzer.reports.loss_summary import summary
from analyzer.reports.loss_words import by_harm
from analyzer.reports.not_judged import lines
from analyzer.reports.pages.explorer import explorer, services
from analyzer.reports.pages.frame import Page, rendered
from analyzer.reports.pages.incidence import LossInput, incidence
from analyzer.reports.phrases import assumed, at_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: ServicePorts whose endpoints stand in the page one by one.
_MOST: Final = 20


def render(answer: LossAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    losses = list(answer.losses) if answer.in_order else by_harm(answer.losses)
    hit = [loss for loss in losses if loss.worst.upper]
    rest: list[Block] = []
    if hit:
        rest += [whole(hit if answer.every else hit[:_MOST], answer)]
    rest += [
        *lines(answer.view, answer.absent),
        *nowhere(answer, hit),
        *assumed(answer.diagnostics),
        Line(),
        *(() if answer.quiet else steps(answer)),
        *affinity_note([each.service for each in hit], answer.view.mode, lost=True),
    ]
    asked = LossInput(
        services=[[(each.service, None)] for each in losses],
        cluster=answer.cluster,
        dead=answer.dead,
        named=named(answer),
        count=Count.DEAD if answer.only_dead else Count.ALL,
        is_whole=answer.is_whole,
        own=answer.view.node,
    )
    yield from rendered(
        Page(
            title=f"New flows that are lost{at_node(answer.view)}",
            head=[*summary(answer, by_harm(losses))],
            figures=explorer(services(brief(losses))),
            rest=rest,
            diagnostics=answer.diagnostics,
            data={"incidence": incidence(asked)},
        )
    )


def named(answer: LossAnswer) -> frozenset[Endpoint]:
    """Return the endpoints that are marked dead individually."""
    if not answer.dead.named:
        return frozenset()
    return dead(answer.view, answer.cluster, endpoints=answer.dead.named).endpoints
