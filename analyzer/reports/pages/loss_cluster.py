"""``loss`` at every node as a page: each ServicePort at the nodes where it loses most."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.loss import Count
from analyzer.failure.models import dead
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.value import replace
from analyzer.reports.cluster_answer import LossClusterAnswer
from analyzer.reports.loss_cluster_text import render as as_text
from analyzer.reports.loss_rows import brief
from analyzer.reports.loss_words import by_harm
from analyzer.reports.pages.explorer import explorer, services
from analyzer.reports.pages.frame import Page, rendered, until_table
from analyzer.reports.pages.incidence import Asked, incidence


def render(answer: LossClusterAnswer) -> Iterator[str]:
    """Give the page in pieces."""
    head, rest = until_table(as_text(answer).blocks)
    ends: frozenset[Endpoint] = frozenset()
    if answer.dead.named:
        view = replace(answer.view, services=tuple(each.together for each in answer.every_node))
        ends = dead(view, answer.cluster, endpoints=answer.dead.named).endpoints
    asked = Asked(
        services=[[(at.service, at.nodes) for at in each.at] for each in answer.every_node],
        cluster=answer.cluster,
        dead=answer.dead,
        named=ends,
        count=Count.DEAD if answer.only_dead else Count.ALL,
        is_whole=answer.is_whole,
    )
    yield from rendered(
        Page(
            title="New flows that are lost at every node",
            head=head,
            figures=explorer(services(brief(by_harm([e.worst for e in answer.losses])))),
            rest=rest,
            diagnostics=answer.diagnostics,
            data={"incidence": incidence(asked)},
        )
    )
