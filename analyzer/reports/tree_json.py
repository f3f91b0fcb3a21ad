"""``kubeodds/tree/2``: a tree as a list of nodes, root first.

Node = {"rules": [number], "outcome": number}
     | {"rules", "chance": distribution over the branches, "branches": [number]}
     | {"rules", "either": [number], "because": str}

Numbers are indices: of nodes and outcomes into the lists of the same tree, of rules into that of
the document. A subtree that several branches share is written once, since a tree of n unknown rules
may have 2**n branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from analyzer.kubeproxy.view import Route, ServicePort
from analyzer.model.probability import Bounds
from analyzer.reports import json_values as values
from analyzer.reports.answers import TreeAnswer
from analyzer.reports.json_distributions import distribution
from analyzer.reports.outcomes import describe
from analyzer.reports.route_networks import network_fields
from analyzer.semantics.tree import BySource, Chance, Either, Leaf, Tree


def render(answer: TreeAnswer) -> Iterator[str]:
    """Yield the tree of each selected route, one by one."""
    rules = values.RuleNumbers()
    return values.document(
        "tree",
        {
            "node": values.encode(answer.view.node),
            "trees": (
                _Writer(answer, rules).tree(service, route, tree)
                for service, route, tree in answer.trees
            ),
            "rules": rules.written(),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
    )


class _Writer:
    """Writes one tree."""

    def __init__(self, answer: TreeAnswer, rules: values.RuleNumbers) -> None:
        self._answer = answer
        self._rules = rules
        self._outcomes: dict[str, int] = {}
        # By identity: the tree keeps its nodes alive, and to compare them would take long.
        self._numbers: dict[int, int] = {}
        self._found: list[Tree] = []

    def tree(self, service: ServicePort, route: Route, tree: Tree) -> str:
        """Return the tree of a route, encoded."""
        head = {
            **values.name(service),
            "frontend": values.frontend(route.frontend),
            "source": route.source.value,
            **network_fields(route),
        }
        self._number(tree)
        nodes = [values.encode(self._node(node)) for node in self._found]  # it grows meanwhile
        return (
            f'{values.encode(head)[:-1]},"outcomes":[{",".join(self._outcomes)}],'
            f'"nodes":[{",".join(nodes)}]}}'
        )

    def _number(self, tree: Tree) -> int:
        number = self._numbers.setdefault(id(tree), len(self._found))
        if number == len(self._found):
            self._found.append(tree)
        return number

    def _node(self, tree: Tree) -> dict[str, Any]:
        rules = {"rules": self._rules.of(tree.rules)}
        match tree:
            case Leaf():
                outcome = values.encode(self._outcome(tree))
                number = self._outcomes.setdefault(outcome, len(self._outcomes))
                return {**rules, "outcome": number}
            case Chance(branches):
                shares = [Bounds(weight, weight) for weight, _ in branches]
                chance = distribution(shares, None, len(shares), unresolved=None)
                children = [child for _, child in branches]
                return {**rules, "chance": chance, "branches": self._all(children)}
            case Either(because, branches):
                return {**rules, "because": because, "either": self._all(branches)}
            case BySource():
                raise TypeError("a tree is asked for of one source")
            case _:
                assert_never(tree)

    def _all(self, trees: Sequence[Tree]) -> list[int]:
        return [self._number(tree) for tree in trees]

    def _outcome(self, leaf: Leaf) -> dict[str, Any]:
        found = describe(leaf)
        endpoint, dead = found.endpoint, self._answer.dead
        placement = None if endpoint is None else self._answer.cluster.placement(endpoint.address)
        return {
            "outcome": found.kind,
            "address": None if endpoint is None else str(endpoint.address),
            "port": None if endpoint is None else endpoint.port,
            "node": None if placement is None else placement.node,
            "zone": None if placement is None else placement.zone,
            "dead": None if endpoint in dead.uncertain else endpoint in dead.endpoints,
            "text": found.text,
        }
