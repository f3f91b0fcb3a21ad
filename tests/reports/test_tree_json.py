from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, numgen_weights
from analyzer.model.value import replace
from analyzer.reports import tree_json
from analyzer.reports.answers import TreeAnswer
from analyzer.reports.outcomes import describe
from analyzer.semantics.tree import BySource, Chance, Either, Leaf, Tree
from tests.support.answers import BEFORE, RICH, Answers
from tests.support.json_reader import shares
from tests.support.odds import leaves


def answer_of(text: str) -> TreeAnswer:
    answer = Answers(text).of("tree")
    assert isinstance(answer, TreeAnswer)
    return answer


def with_tree(tree: Tree) -> Any:
    answer = answer_of(RICH)
    service, route, _ = answer.trees[0]
    return rendered(replace(answer, trees=((service, route, tree),)))


def rendered(answer: TreeAnswer) -> Any:
    return json.loads("".join(tree_json.render(answer)))


def drawn(tree: Any, number: int = 0, weight: Fraction = Fraction(1)) -> dict[str, Fraction]:
    """How often each end of a written tree without `either` is reached."""
    node = tree["nodes"][number]
    if "outcome" in node:
        return {tree["outcomes"][node["outcome"]]["text"]: weight}
    found: dict[str, Fraction] = {}
    for child, share in zip(node["branches"], shares(node["chance"]), strict=True):
        assert share is not None
        for text, part in drawn(tree, child, weight * share[0]).items():
            found[text] = found.get(text, Fraction(0)) + part
    return found


def test_a_tree_is_read_again_with_its_probabilities() -> None:
    answer = answer_of(BEFORE)
    known = [
        (told, tree)
        for told, (_, _, tree) in zip(rendered(answer)["trees"], answer.trees, strict=True)
        if not any("either" in node for node in told["nodes"])
    ]
    assert known
    for told, tree in known:
        wanted: dict[str, Fraction] = {}
        for leaf, weight in leaves(tree, ALWAYS):
            text = describe(leaf).text
            wanted[text] = wanted.get(text, Fraction(0)) + weight.as_fraction()
        assert drawn(told) == wanted


@pytest.mark.parametrize("text", [RICH, BEFORE], ids=["unknown", "known"])
def test_the_rules_on_each_way_are_those_that_matched(text: str) -> None:
    answer = answer_of(text)
    document = rendered(answer)
    assert len({json.dumps(rule) for rule in document["rules"]}) == len(document["rules"])
    for told, (_, _, tree) in zip(document["trees"], answer.trees, strict=True):
        same(told, 0, tree, document["rules"])


def same(told: Any, number: int, tree: Tree, rules: Any) -> None:
    node = told["nodes"][number]
    assert [rules[at]["text"] for at in node["rules"]] == [rule.raw for rule in tree.rules]
    match tree:
        case Leaf():
            assert told["outcomes"][node["outcome"]]["text"] == describe(tree).text
        case Chance(branches):
            for child, (_, below) in zip(node["branches"], branches, strict=True):
                same(told, child, below, rules)
        case Either(because, below):
            assert node["because"] == because
            for child, each in zip(node["either"], below, strict=True):
                same(told, child, each, rules)
        case BySource():
            raise AssertionError(tree)


def test_an_outcome_is_written_once() -> None:
    leaf = [Leaf(Drop(), Packet(), ()) for _ in range(7)]
    drop = Chance(tuple(zip(numgen_weights(7), leaf, strict=True)))
    (tree,) = with_tree(drop)["trees"]
    assert [each["text"] for each in tree["outcomes"]] == ["dropped"]
    assert drawn(tree) == {"dropped": 1}


def test_what_several_ways_have_in_common_is_written_once() -> None:
    tree: Tree = Leaf(Drop(), Packet())
    for at in range(60):  # 2**60 ways
        tree = Either(f"reason {at}", (tree, replace(tree)))
    (told,) = with_tree(tree)["trees"]
    assert len(told["nodes"]) < 200
