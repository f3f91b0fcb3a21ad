"""The pods that call a Service, by name or by labels, and the node of each.

Source: Kubernetes API reference: core/v1 Pod; equality-based label selectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from analyzer.parsers.api_objects import Object, at, text
from analyzer.parsers.pods import has_ended


def callers_of(objects: Sequence[Object], namespace: str, selector: str) -> dict[str, str | None]:
    """Return the pods that a selector matches, by ``ns/name``, each with its node if it has one.

    It is a name, in which ``*`` represents anything; or ``key=value``, ``key!=value`` and more of
    these with ``&`` between.
    """
    found: dict[str, str | None] = {}
    for item in objects:
        name = text(at(item, "metadata", "name"))
        own = text(at(item, "metadata", "namespace"))
        if item.get("kind") != "Pod" or name is None or own != namespace or has_ended(item):
            continue
        labels = at(item, "metadata", "labels")
        if _selects(selector, name, labels if isinstance(labels, dict) else {}):
            found[f"{own}/{name}"] = text(at(item, "spec", "nodeName"))
    return found


def _selects(selector: str, name: str, labels: dict[str, object]) -> bool:
    if "=" not in selector:
        return fnmatchcase(name, selector)
    return all(_holds(each, labels) for each in selector.split("&"))


def _holds(requirement: str, labels: dict[str, object]) -> bool:
    key, _, value = requirement.partition("=")
    if key.endswith("!"):
        return labels.get(key[:-1]) != value
    return labels.get(key) == value.removeprefix("=")
