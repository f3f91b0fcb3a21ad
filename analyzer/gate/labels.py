"""Label selectors: which labels each matches.

Source: Kubernetes, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go,
``LabelSelectorAsSelector``; staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.api_objects import at, elements, text

Labels = Mapping[str, str]


def labels_of(given: object, what: str) -> dict[str, str]:
    """Return labels, or the ``matchLabels`` of a selector.

    Raises:
        ValueError: they are no texts by texts; `what` they are.
    """
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(f"{what} is not a map")  # noqa: TRY004  # data of a file, no argument
    for key, each in given.items():
        if not isinstance(each, str):
            says = f"{what}: {key} is not text; put quotes around it"
            raise ValueError(says)  # noqa: TRY004  # as above
    return given


def selects(selector: object, labels: Labels) -> bool:
    """Return whether a LabelSelector matches labels: a missing one matches nothing, {} everything.

    Raises:
        ValueError: it is malformed.
    """
    if selector is None:
        return False
    wanted = labels_of(at(selector, "matchLabels"), "matchLabels")
    if any(labels.get(key) != each for key, each in wanted.items()):
        return False
    return all(meets(each, labels) for each in elements(selector, "matchExpressions"))


def is_empty(selector: object) -> bool:
    """Return whether a LabelSelector is present and empty: {}."""
    return (
        isinstance(selector, dict)
        and not selector.get("matchLabels")
        and not selector.get("matchExpressions")
    )


def meets(expression: object, labels: Labels) -> bool:
    """Return whether labels match one of ``matchExpressions``, of pods or of nodes.

    Raises:
        ValueError: it is malformed.
    """
    key, operator = text(at(expression, "key")), at(expression, "operator")
    values = elements(expression, "values")
    if key is None:
        raise ValueError("an expression without a key")
    if not all(isinstance(each, str) for each in values):
        raise ValueError(f"values of {key}: not all are text; put quotes around them")
    has = key in labels
    match operator:
        case "In":
            return has and labels[key] in values
        case "NotIn":
            return not has or labels[key] not in values
        case "Exists":
            return has
        case "DoesNotExist":
            return not has
        case "Gt" | "Lt":
            return has and _compared(labels[key], operator, values, key)
        case _:
            raise ValueError(
                f"{key}: the operator {operator!r} is not one of In, NotIn, Exists, DoesNotExist, "
                "Gt and Lt"
            )


def _compared(label: str, operator: str, values: list[str], key: str) -> bool:
    if len(values) != 1 or not is_integer(values[0]):
        raise ValueError(f"{key}: {operator} takes one value, an integer")
    if not is_integer(label):
        return False
    return int(label) > int(values[0]) if operator == "Gt" else int(label) < int(values[0])


def is_integer(given: str) -> bool:
    """Return whether a text is a 64-bit integer of the API."""
    digits = given.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 19  # noqa: PLR2004  # of int64


def meets_node_selector(terms: object, name: str, labels: Labels) -> bool:
    """Return whether a node matches one of ``nodeSelectorTerms``; an empty term matches none.

    Raises:
        ValueError: a term is malformed.
    """
    return any(meets_term(each, name, labels) for each in elements(terms, "nodeSelectorTerms"))


def meets_term(term: object, name: str, labels: Labels) -> bool:
    """Return whether a node matches a term: all its expressions, and those on its fields."""
    expressions, fields = elements(term, "matchExpressions"), elements(term, "matchFields")
    if not expressions and not fields:
        return False
    for each in fields:
        if at(each, "key") != "metadata.name":
            raise ValueError(f"matchFields: {at(each, 'key')!r} is not metadata.name")
        if not meets(each, {"metadata.name": name}):
            return False
    # Not short-circuited: a malformed expression is reported wherever it is.
    return all([meets(each, labels) for each in expressions])  # noqa: C419  # as said above
