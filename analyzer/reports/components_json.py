"""``kubeodds/components/1``: what still works and what stops when a component is down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from analyzer.outage.components import Component, Effect
from analyzer.reports import json_values as values

_VERSION: Final = 1


def render(components: Sequence[Component]) -> Iterator[str]:
    """Yield the components one by one."""
    return values.document("components", {"components": map(_component, components)}, _VERSION)


def _component(each: Component) -> str:
    return values.encode(
        {
            "name": each.name,
            "down": each.down,
            "works": _effect(each.works),
            "stops": _effect(each.stops),
            "since": _effect(each.since),
        }
    )


def _effect(effect: Effect) -> dict[str, Any]:
    return {"what": effect.what, "why": effect.why, "sources": effect.source.split("; ")}
