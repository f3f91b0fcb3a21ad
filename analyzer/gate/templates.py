"""Pods before they are held against others: those of workloads, and those that run already."""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.gate.labels import Labels
from analyzer.gate.workloads import Workload
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value(kw_only=True)
class Template:
    """Pods before they are held against others.

    Attributes:
        fixed: the nodes on which some run already, and how many.
        is_ready: whether they are endpoints of Services that select them; those are that are
            still to be placed.
    """

    name: str
    namespace: str
    labels: Labels
    spec: Mapping[str, Any]
    number: int | None
    workload: Workload | None = None
    fixed: Mapping[str, int] = {}  # never changed: values are not
    is_ready: bool = True


def template_of(workload: Workload) -> Template:
    """Return the pods of a workload."""
    return Template(
        name=workload.name,
        namespace=workload.namespace,
        labels=workload.labels,
        spec=workload.spec,
        number=workload.replicas,
        workload=workload,
    )
