from __future__ import annotations

from typing import Any

import pytest

from analyzer.gate.labels import meets_node_selector, selects

LABELS = {"app": "web", "tier": "front", "cores": "8"}


def _expression(key: str, operator: str, *values: str) -> Any:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        (_expression("app", "In", "web", "api"), True),
        (_expression("app", "In", "api"), False),
        (_expression("app", "NotIn", "api"), True),
        (_expression("app", "NotIn", "web"), False),
        (_expression("none", "NotIn", "web"), True),
        (_expression("app", "Exists"), True),
        (_expression("none", "Exists"), False),
        (_expression("none", "DoesNotExist"), True),
        (_expression("app", "DoesNotExist"), False),
        ({"matchLabels": {"app": "web"}, **_expression("tier", "In", "back")}, False),
    ],
)
def test_a_selector_means_what_the_api_says(selector: Any, meant: bool) -> None:
    assert selects(selector, LABELS) is meant


@pytest.mark.parametrize(
    ("operator", "value", "meant"),
    [("Gt", "7", True), ("Gt", "8", False), ("Lt", "9", True), ("Lt", "-1", False)],
)
def test_nodes_are_compared_by_numbers(operator: str, value: str, meant: bool) -> None:
    terms = {"nodeSelectorTerms": [_expression("cores", operator, value)]}
    assert meets_node_selector(terms, "n1", LABELS) is meant


def test_of_terms_one_is_enough_and_an_empty_one_is_none() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    by_name = {"matchFields": [field]}
    assert meets_node_selector({"nodeSelectorTerms": [{}, by_name]}, "n1", {})
    assert not meets_node_selector({"nodeSelectorTerms": [by_name]}, "n2", {})
    assert not meets_node_selector({"nodeSelectorTerms": [{}]}, "n1", LABELS)
    both = {**by_name, **_expression("app", "In", "api")}
    assert not meets_node_selector({"nodeSelectorTerms": [both]}, "n1", LABELS)


@pytest.mark.parametrize(
    "selector",
    [
        _expression("app", "in", "web"),
        {"matchExpressions": [{"operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
        {"matchLabels": {"on": True}},
        {"matchLabels": ["app"]},
        _expression("cores", "Gt", "many"),
    ],
)
def test_a_malformed_selector_is_refused(selector: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        selects(selector, LABELS)
