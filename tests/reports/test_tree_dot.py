from __future__ import annotations

import re

from analyzer.model.packet import Packet
from analyzer.model.value import replace
from analyzer.reports.tree_dot import render
from analyzer.semantics.tree import Either, Leaf, Unresolved
from tests.support.answers import tree_answer
from tests.support.dumps import dump, two_endpoints


def graph(*died: str) -> str:
    return render(tree_answer(dump(*two_endpoints()), *died))


def edges(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^  (\w+) -> (\w+)", text, re.MULTILINE)


def test_each_way_ends_at_a_node_of_the_graph() -> None:
    text = graph()
    assert text.startswith("digraph ")
    assert text.endswith("}\n")
    nodes = re.findall(r"^  (\w+) \[", text, re.MULTILINE)
    assert {node for edge in edges(text) for node in edge} <= set(nodes)
    assert text.count("10.0.0.1:80") == text.count("10.0.0.2:80") > 0


def test_an_edge_says_how_often_it_is_taken() -> None:
    assert graph().count('[label="1/2 50.0%\\l"]') == 2


def test_the_dead_are_marked() -> None:
    assert "DEAD" not in graph()
    (marked,) = re.findall(r'label="([^"]*DEAD[^"]*)"', graph("10.0.0.1"))
    assert "10.0.0.1:80 on worker1 DEAD" in marked


def test_what_several_ways_share_is_one_node() -> None:
    given = tree_answer(dump(*two_endpoints()))
    ((service, route, tree),) = given.trees
    text = render(replace(given, trees=((service, route, Either("x", (tree, tree))),)))
    shared = [to for _, to in edges(text)]
    assert max(map(shared.count, shared)) == 2
    assert text.count("style=dashed") == 2
    assert text.count("10.0.0.1:80 on worker1") == 1


def test_text_of_a_dump_cannot_end_a_label() -> None:
    given = tree_answer(dump(*two_endpoints()))
    ((service, route, _),) = given.trees
    hostile = Leaf(Unresolved('"]; x [label="\x1b\\'), Packet())
    text = render(replace(given, trees=((service, route, hostile),)))
    assert '\\"]; x [label=\\"␛\\\\\\l' in text
    assert "\x1b" not in text
