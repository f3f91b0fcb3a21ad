"""``loss`` of several nodes' dumps as a page: each ServicePort on its worst node."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.loss_at_nodes import by_service_port
from analyzer.failure.route_loss import Count
from analyzer.kubeproxy.view import Endpoint
from analyzer.reports.answers import LossNode, LossNodesAnswer
from analyzer.reports.loss_nodes_text import render as as_text
from analyzer.reports.loss_rows import brief
from analyzer.reports.loss_words import by_harm
from analyzer.reports.pages.explorer import explorer, services
from analyzer.reports.pages.frame import Page, rendered, until_table
from analyzer.reports.pages.incidence import LossInput, Variant, incidence
from analyzer.reports.pages.loss import named
from analyzer.reports.phrases import count


def render(answer: LossNodesAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    head, rest = until_table(as_text(answer).blocks)
    told = [each.answer for each in answer.nodes if each.answer is not None]
    ends: frozenset[Endpoint] = frozenset().union(*map(named, told))
    asked = LossInput(
        services=_variants(answer),
        cluster=answer.cluster,
        dead=answer.dead,
        named=ends,
        count=Count.DEAD if told[0].only_dead else Count.ALL,
        is_together=True,
        is_whole=answer.is_whole,
    )
    yield from rendered(
        Page(
            title=f"New flows that are lost at {count(len(answer.answers), 'node')}",
            head=head,
            figures=explorer(services(brief(by_harm([each.loss for each in answer.worst])))),
            rest=rest,
            diagnostics=answer.diagnostics,
            data={"incidence": incidence(asked)},
        )
    )


def _variants(answer: LossNodesAnswer) -> list[list[Variant]]:
    """Return each ServicePort as the nodes have it, also those that are dead now."""
    nodes = {each.name: each for each in answer.nodes}
    losses = {n: each.answer.losses for n, each in nodes.items() if each.answer is not None}
    return [
        [(loss.service, _who(nodes[name])) for name, loss in found.items()]
        for found in by_service_port(losses)
    ]


def _who(node: LossNode) -> frozenset[str] | None:
    return None if node.node is None else frozenset([node.node])
