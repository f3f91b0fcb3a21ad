"""``tree`` for people: from the hook to each endpoint, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from analyzer.model.probability import Bounds
from analyzer.model.rules import Rule
from analyzer.parsers.xt.rule import render_target
from analyzer.reports.answers import TreeAnswer
from analyzer.reports.document import Block, Document, Line, Piece, Span, Style
from analyzer.reports.numbers import bounds_percent, fraction
from analyzer.reports.outcomes import chain_of, describe
from analyzer.reports.phrases import SOURCES, at_node
from analyzer.semantics.tree import Chance, Either, Leaf, Tree


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
        blocks += [Line(pieces) for pieces in _lines(tree, "", answer)]
        blocks.append(Line())
    return Document(blocks[:-1])


def _lines(tree: Tree, indent: str, answer: TreeAnswer) -> Iterator[tuple[Piece, ...]]:
    for rule in tree.rules:
        yield (Span(indent, Style.FAINT), *_rule(rule))
    match tree:
        case Leaf():
            yield (Span(indent, Style.FAINT), *_leaf(tree, answer))
        case Chance(branches):
            for at, (weight, child) in enumerate(branches):
                exact = Bounds(weight, weight)
                label = f"{fraction(weight):>8} {bounds_percent(exact):>8}"
                yield from _branch(child, indent, label, at == len(branches) - 1, answer)
        case Either(because, branches):
            yield (
                Span(indent, Style.FAINT),
                Span(f"not known: {because}", Style.WARNING),
            )
            for at, child in enumerate(branches):
                yield from _branch(child, indent, "either", at == len(branches) - 1, answer)
        case _:
            assert_never(tree)


def _branch(
    child: Tree, indent: str, label: str, last: bool, answer: TreeAnswer
) -> Iterator[tuple[Piece, ...]]:
    fork, line = ("└─ ", "   ") if last else ("├─ ", "│  ")
    yield (Span(indent + fork, Style.FAINT), Span(label.strip(), Style.STRONG))
    yield from _lines(child, indent + line, answer)


def _rule(rule: Rule) -> tuple[Piece, ...]:
    says = render_target(rule.target) if rule.target is not None else ""
    return (chain_of(rule), " ", says, Span(f"  line {rule.location.line}", Style.FAINT))


def _leaf(leaf: Leaf, answer: TreeAnswer) -> tuple[Piece, ...]:
    told = describe(leaf)
    if told.endpoint is None:
        return (Span(f"=> {told.text}", Style.WARNING),)
    node = answer.cluster.placement(told.endpoint.address).node
    where = f" on {node}" if node else ""
    if told.endpoint in answer.dead.endpoints:
        return (Span(f"=> {told.text}{where} DEAD", Style.BAD),)
    return (Span(f"=> {told.text}{where}", Style.GOOD),)
