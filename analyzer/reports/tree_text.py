"""``tree`` for people: from the hook to each endpoint, rule by rule."""

from __future__ import annotations

from functools import partial

from analyzer.reports.answers import TreeAnswer
from analyzer.reports.document import Block, Document, Line, Piece, Span, Style
from analyzer.reports.outcomes import describe
from analyzer.reports.phrases import SOURCES, at_node
from analyzer.reports.tree_lines import lines
from analyzer.semantics.tree import Leaf


def render(answer: TreeAnswer) -> Document:
    """Return each route's tree, the branches with their share of its new flows."""
    blocks: list[Block] = []
    for service, route, tree in answer.trees:
        head = (
            Span(service.name.text, Style.STRONG),
            f" {service.protocol}, a new flow from {SOURCES[route.source]} to "
            f"{route.frontend.kind.value} {route.frontend}{at_node(answer.view)}",
        )
        blocks += [Line(head), Line()]
        blocks += [Line(pieces) for pieces in lines(tree, partial(_leaf, answer))]
        blocks.append(Line())
    return Document(blocks[:-1])


def _leaf(answer: TreeAnswer, leaf: Leaf) -> tuple[Piece, ...]:
    told = describe(leaf)
    if told.endpoint is None:
        return (Span(f"=> {told.text}", Style.WARNING),)
    node = answer.cluster.placement(told.endpoint.address).node
    where = f" on {node}" if node else ""
    if told.endpoint in answer.dead.endpoints:
        return (Span(f"=> {told.text}{where} DEAD", Style.BAD),)
    return (Span(f"=> {told.text}{where}", Style.GOOD),)
