"""``kubeodds/tree/1``: a tree is a node with the rules that led to it.

Node = {"rules": [...], "outcome": {...}} | {"rules", "chance": [{"probability", "node"}]}
     | {"rules", "either": [node], "because": str}
"""

from __future__ import annotations

from typing import Any, assert_never

from analyzer.reports import json_values as values
from analyzer.reports.answers import TreeAnswer
from analyzer.reports.outcomes import describe
from analyzer.reports.rules import chain_of
from analyzer.semantics.tree import AnyRule, Chance, Either, Leaf, Tree


def render(answer: TreeAnswer) -> str:
    """Return the tree of each route that was asked for."""
    trees = [
        {**values.name(service), **values.route(route), "tree": _node(tree, answer)}
        for service, route, tree in answer.trees
    ]
    fields = {
        "node": answer.view.node,
        "trees": trees,
        "diagnostics": values.diagnostics(answer.diagnostics),
    }
    return values.document("tree", 1, fields)


def _node(tree: Tree, answer: TreeAnswer) -> dict[str, Any]:
    rules = {"rules": [_rule(r) for r in tree.rules]}
    match tree:
        case Leaf():
            return {**rules, "outcome": _outcome(tree, answer)}
        case Chance(branches):
            drawn = [
                {"probability": values.probability(weight), "node": _node(child, answer)}
                for weight, child in branches
            ]
            return {**rules, "chance": drawn}
        case Either(because, branches):
            either = [_node(child, answer) for child in branches]
            return {**rules, "because": because, "either": either}
        case _:
            assert_never(tree)


def _rule(rule: AnyRule) -> dict[str, Any]:
    return values.rule(rule, rule.location.table, chain_of(rule))


def _outcome(leaf: Leaf, answer: TreeAnswer) -> dict[str, Any]:
    found = describe(leaf)
    address = None if found.endpoint is None else found.endpoint.address
    placement = None if address is None else answer.cluster.placement(address)
    return {
        "outcome": found.kind,
        "address": None if address is None else str(address),
        "port": None if found.endpoint is None else found.endpoint.port,
        "node": None if placement is None else placement.node,
        "dead": found.endpoint in answer.dead.endpoints,
        "text": found.text,
    }
