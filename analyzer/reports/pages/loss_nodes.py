"""``loss`` of several nodes' dumps as a page: each ServicePort on its worst node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.loss_at_nodes import by_service_port, worst_of
from analyzer.failure.route_loss import Count
from analyzer.kubeproxy.view import Endpoint
from analyzer.reports.answers import LossNode, LossNodesAnswer
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.loss_nodes_text import render as as_text
from analyzer.reports.loss_rows import brief
from analyzer.reports.loss_words import by_harm
from analyzer.reports.pages.explorer import explorer, services
from analyzer.reports.pages.frame import Page, rendered, until_table
from analyzer.reports.pages.incidence import LossInput, Variant, incidence
from analyzer.reports.pages.loss import named
from analyzer.reports.phrases import count, listed


def render(answer: LossNodesAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    head, rest = until_table(as_text(answer).blocks)
    aside = [] if not answer.is_whole else [*_aside(answer)]
    told = [each.answer for each in answer.nodes if each.answer is not None]
    ends: frozenset[Endpoint] = frozenset().union(*map(named, told))
    asked = LossInput(
        services=_variants(answer),
        cluster=answer.cluster,
        dead=answer.dead,
        named=ends,
        count=Count.DEAD if told[0].only_dead else Count.ALL,
        is_together=True,
        is_whole=answer.is_whole and not aside,
    )
    yield from rendered(
        Page(
            title=f"New flows that are lost at {count(len(answer.answers), 'node')}",
            head=[*head, *_if_alive(aside)],
            figures=explorer(services(brief(by_harm([each.loss for each in answer.worst])))),
            rest=rest,
            diagnostics=answer.diagnostics,
            data={"incidence": incidence(asked)},
        )
    )


def _aside(answer: LossNodesAnswer) -> Iterator[str]:
    """Yield the nodes that are dead at which not everything is judged: readers may revive them."""
    known = {each.name: each.answer for each in answer.nodes if each.answer is not None}
    every = worst_of({name: each.losses for name, each in known.items()})
    missing = {name for each in every for name in each.missing}
    for each in answer.nodes:
        whole = each.answer is not None and each.answer.is_whole
        if each.is_dead and (not whole or each.name in missing):
            yield each.name


def _if_alive(aside: Sequence[str]) -> Iterator[Line]:
    if aside:
        says = f"If alive, not everything is judged at {listed(aside)}."
        yield Line((Span(says, Style.WARNING),))


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
