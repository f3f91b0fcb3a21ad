"""``tree`` for people: from the hook to each endpoint, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from analyzer.kubeproxy.view import ServicePort
from analyzer.model.probability import Bounds, Dyadic, capped_sum
from analyzer.reports.affinity import affinity_note, duration
from analyzer.reports.answers import TreeAnswer
from analyzer.reports.document import Block, Document, Line, Piece, Span, Style
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.outcomes import describe
from analyzer.reports.phrases import SOURCES, assumed, at_node, count
from analyzer.reports.route_networks import networks
from analyzer.reports.tree_lines import ALL, lines
from analyzer.semantics.tree import Leaf, Tree, every_node

#: Of more than twice as many branches only these are shown.
_MOST: Final = 8


def render(answer: TreeAnswer) -> Document:
    """Return each route's tree, each branch with its share of new flows."""
    blocks: list[Block] = []
    for service, route, tree in answer.trees:
        within = "" if route.network is None else f" ({networks(route)})"
        head = (
            Span(service.name.text, Style.STRONG),
            f" {service.protocol}, a new flow from {SOURCES[route.source]}{within} to "
            f"{route.frontend.kind.value} {route.frontend}{at_node(answer.view)}",
            *_affinity(service),
        )
        blocks += [Line(head), Line()]
        most = ALL if answer.every else _MOST
        told = lines(
            tree,
            partial(end_of, answer),
            tables=_meets_several(tree),
            most=most,
            rest=partial(_rest, answer),
        )
        blocks += [Line(pieces) for pieces in told]
        blocks.append(Line())
    services = list({id(service): service for service, _, _ in answer.trees}.values())
    said = [
        *affinity_note(services, answer.view.mode, lost=answer.dead.is_anything),
        *assumed(answer.diagnostics),
    ]
    return Document([*blocks, *said] if said else blocks[:-1])


def _affinity(service: ServicePort) -> tuple[Piece, ...]:
    if service.affinity is None:
        return ()
    return (Span(f", session affinity {duration(service.affinity)}", Style.WARNING),)


def _meets_several(tree: Tree) -> bool:
    """Return whether rules of several tables are shown, so that each needs its table."""
    return len({rule.location.table for node in every_node(tree) for rule in node.rules}) > 1


def end_of(answer: TreeAnswer, leaf: Leaf) -> tuple[Piece, ...]:
    """Return how a path ends; the style shows whether new flows are lost there."""
    told = describe(leaf)
    if told.endpoint is None:
        return (Span(f"=> {told.text}", Style.WARNING),)
    node = answer.cluster.placement(told.endpoint.address).node
    pod = answer.cluster.pods.of(told.endpoint.address, told.endpoint.port)
    where = (f" on {node}" if node else "") + (f" ({pod})" if pod else "")
    if told.endpoint in answer.dead.endpoints:
        return (Span(f"=> {told.text}{where} DEAD", Style.BAD),)
    return (Span(f"=> {told.text}{where}", Style.GOOD),)


def _rest(
    answer: TreeAnswer, branches: Sequence[tuple[Dyadic, Tree]]
) -> Iterator[tuple[Piece, ...]]:
    """Say of branches on which nodes they end, those with most first."""
    by_node: dict[str, list[Dyadic]] = {}
    dead: list[Dyadic] = []
    for weight, branch in branches:
        endpoint = describe(branch).endpoint if isinstance(branch, Leaf) else None
        if endpoint is not None and endpoint in answer.dead.endpoints:
            dead.append(weight)
        node = None if endpoint is None else answer.cluster.placement(endpoint.address).node
        by_node.setdefault(node or "", []).append(weight)
    if dead:
        share = capped_sum(dead)
        chance = bounds_percent(Bounds(share, share))
        yield (Span(f"{count(len(dead), 'endpoint')} of them DEAD: {chance}", Style.BAD),)
    known = sorted((n for n in by_node if n), key=lambda n: (-len(by_node[n]), n))
    for node in known[:_MOST]:
        share = capped_sum(by_node[node])
        chance = bounds_percent(Bounds(share, share))
        yield (Span(f"{count(len(by_node[node]), 'endpoint')} on {node}: {chance}", Style.FAINT),)
    others = known[_MOST:]
    if others:
        weights = [weight for node in others for weight in by_node[node]]
        share = capped_sum(weights)
        chance = bounds_percent(Bounds(share, share))
        more = f"{count(len(weights), 'endpoint')} on {count(len(others), 'more node')}: {chance}"
        yield (Span(more, Style.FAINT),)
