from __future__ import annotations

from dataclasses import replace as with_fields

from analyzer.model.value import replace
from analyzer.reports.tree_text import render
from analyzer.reports.unstyled import render_unstyled
from tests.support.answers import Answers, tree_answer
from tests.support.dumps import dump, many_endpoints, two_endpoints


def shown(text: str, *died: str) -> list[str]:
    return render_unstyled(render(tree_answer(text, *died))).splitlines()


def test_a_tree_is_headed_by_its_service_source_and_frontend() -> None:
    head = shown(dump(*two_endpoints()))[0]
    assert head.startswith("ns/a:http tcp, ")
    assert "a pod" in head
    assert "ClusterIP 10.96.0.1:80" in head


def test_each_endpoint_stands_at_the_end_of_its_branch_with_its_node() -> None:
    ends = [line.strip("│ ") for line in shown(dump(*two_endpoints())) if "=>" in line]
    assert ends == ["=> 10.0.0.1:80 on worker1", "=> 10.0.0.2:80"]


def test_a_dead_endpoint_says_so() -> None:
    ends = [line for line in shown(dump(*two_endpoints()), "10.0.0.1") if "=>" in line]
    assert [line.endswith("DEAD") for line in ends] == [True, False]


def test_of_very_many_branches_the_others_are_told_by_node() -> None:
    told = shown(many_endpoints(17), "10.0.0.17")
    assert len([line for line in told if "=>" in line]) == 8
    assert any("9 more branches" in line for line in told)
    assert any("1 endpoint of them DEAD" in line for line in told)
    every = render_unstyled(render(replace(tree_answer(many_endpoints(17)), every=True)))
    assert every.count("=>") == 17


def test_trees_of_several_routes_stand_one_below_the_other() -> None:
    text = with_fields(Answers(), text=dump(*two_endpoints())).plain("tree")
    heads = [line for line in text.splitlines() if line.startswith("ns/a:http")]
    assert len(heads) == text.count("\n\nns/a:http") + 1 > 1
