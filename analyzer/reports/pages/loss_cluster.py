"""``loss`` on every node as a page: each ServicePort on the nodes where it loses most."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.models import dead
from analyzer.failure.route_loss import Count
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.value import replace
from analyzer.reports.cluster_answer import LossClusterAnswer
from analyzer.reports.document import Column, Line, Span, Style, TextTable
from analyzer.reports.loss_cluster_text import ending, service_ports, summary
from analyzer.reports.not_judged import lines as not_judged
from analyzer.reports.pages.explorer import explorer, services
from analyzer.reports.pages.frame import Page, rendered
from analyzer.reports.pages.incidence import LossInput, incidence
from analyzer.reports.predicted_text import head


def render(answer: LossClusterAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    ends: frozenset[Endpoint] = frozenset()
    if answer.dead.named:
        view = replace(answer.view, services=tuple(each.together for each in answer.every_node))
        ends = dead(view, answer.cluster, endpoints=answer.dead.named).endpoints
    asked = LossInput(
        services=[[(at.service, at.nodes) for at in each.at] for each in answer.every_node],
        cluster=answer.cluster,
        dead=answer.dead,
        named=ends,
        count=Count.DEAD if answer.only_dead else Count.ALL,
        is_whole=(answer.if_alive or answer).is_whole,
    )
    yield from rendered(
        Page(
            title="New flows that are lost at every node",
            head=[*summary(answer), *_if_alive(answer)],
            figures=explorer(services(_table(answer))),
            rest=[*ending(answer)],
            diagnostics=answer.diagnostics,
            data={"incidence": incidence(asked)},
        )
    )


def _if_alive(answer: LossClusterAnswer) -> Iterator[Line]:
    """Yield what is not judged at nodes that are dead: readers may declare others dead."""
    every = answer.if_alive
    if every is not None and answer.is_whole and not every.is_whole:
        yield Line((Span("If these nodes are alive:", Style.WARNING),))
        yield from not_judged(every.view, every.absent)
        yield from head(every.prediction)


def _table(answer: LossClusterAnswer) -> TextTable:
    """Return a line for each ServicePort, and at how many of the nodes that have it any is lost."""
    found = service_ports(answer.losses, len(answer.alive))
    hit = [sum(len(at.nodes) for at in e.at if at.loss.worst.upper) for e in answer.losses]
    rows = [
        (*row, f"{number:,} of {each.nodes:,}")
        for row, number, each in zip(found.rows, hit, answer.losses, strict=True)
    ]
    return TextTable((*found.columns, Column("NODES HIT", right=True)), tuple(rows))
