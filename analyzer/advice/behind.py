"""The workload behind a Service's endpoints, as far as the objects include its pods."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.advice.measure import NamespacedName
from analyzer.advice.objects import is_usable, slices_of
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.parsers.api_objects import Object, at, elements, text
from analyzer.parsers.workloads import workloads_of


@value(kw_only=True)
class Behind:
    """Pods behind ready endpoints.

    Attributes:
        endpoints: how many ready endpoints there are.
        listed: for how many the pod is among the objects.
        owners: the kinds of their controllers, each once; "no controller" for pods without one.
        held: how many of them volumes, claims or affinity may hold on their nodes.
    """

    endpoints: int
    listed: int
    owners: tuple[str, ...]
    held: int


def behind(items: Sequence[Object], key: NamespacedName) -> Behind:
    """Return what is known of the pods behind a Service."""
    names: dict[str, None] = {}
    endpoints = 0
    for item in slices_of(items, key):
        for each in elements(item, "endpoints"):
            if not is_usable(each):
                continue
            endpoints += 1
            if at(each, "targetRef", "kind") == "Pod":
                namespace = text(at(each, "targetRef", "namespace")) or key[0]
                names[f"{namespace}/{at(each, 'targetRef', 'name')}"] = None
    pods = workloads_of(items).pods
    known = [pods[name] for name in names if name in pods]
    owners = dict.fromkeys(each.owner or "no controller" for each in known)
    return Behind(
        endpoints=endpoints,
        listed=len(known),
        owners=tuple(sorted(owners)),
        held=sum(each.is_bound is not Ternary.FALSE for each in known),
    )
