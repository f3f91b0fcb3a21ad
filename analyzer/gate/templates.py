"""Pods before placement: those of workload templates, and those that run already.

Pods of a StatefulSet have labels with their names and numbers. Those that a selector means by such
a label are a template of their own, all others are alike.

Source: Kubernetes, pkg/controller/statefulset/stateful_set_utils.go, ``updateIdentity``;
staging/src/k8s.io/api/apps/v1/types.go, ``StatefulSetPodNameLabel``, ``PodIndexLabel``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from analyzer.gate.labels import Labels
from analyzer.gate.workloads import Workload
from analyzer.model.value import value
from analyzer.parsers.api_objects import Object, at, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
#: Most pods of one StatefulSet that are distinguished, if a selector distinguishes all of them.
_MOST_APART: Final = 32


@value(kw_only=True)
class PodTemplate:
    """Pods before placement.

    Attributes:
        number: of a DaemonSet None: one on each node that takes one.
        place: of the one pod of a StatefulSet that this is, from 0; None if there may be others.
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
    place: int | None = None
    fixed: Mapping[str, int] = {}  # never changed: values are not
    is_ready: bool = True


def templates_of(workloads: Iterable[Workload], others: Iterable[Object] = ()) -> list[PodTemplate]:
    """Return the pods of workloads.

    `others` have selectors too: Services, and pods that run.

    Raises:
        ParseError: too many pods would have to be distinguished.
    """
    own = [*workloads]
    named: set[str] = set()
    is_each = False
    for selector in _selectors([*own, *others]):
        values = {*_values(selector)}
        is_each |= None in values
        named |= values - {None}  # type: ignore[arg-type]  # mypy: None is taken away
    return [made for each in own for made in _of(each, named, is_each=is_each)]


def remade(
    templates: Sequence[PodTemplate], workload: Workload, changed: Workload
) -> list[PodTemplate]:
    """Return templates with one workload changed, in the same order."""
    places = {t.place for t in templates if t.workload is workload and t.place is not None}
    return [_template(changed, t.place, places) if t.workload is workload else t for t in templates]


def _of(workload: Workload, named: set[str], *, is_each: bool) -> Iterator[PodTemplate]:
    """Yield the pods of a workload, those that selectors distinguish first."""
    places: list[int] = []
    if workload.kind == "StatefulSet":
        every = range(workload.most)
        if is_each and len(every) > _MOST_APART:
            workload.manifest.fail(
                f"matchLabelKeys distinguish more than {_MOST_APART} of its pods"
            )
        places = [
            n for n in every if is_each or named.intersection(_identity(workload, n).values())
        ]
    for n in places:
        yield _template(workload, n, places)
    yield _template(workload, None, places)


def _template(workload: Workload, place: int | None, apart: Collection[int]) -> PodTemplate:
    labels, number = dict(workload.labels), workload.replicas
    name = workload.name
    if workload.kind == "StatefulSet":
        number = numbered(place, apart, number or 0)
        others = (n for n in range(workload.most) if n not in apart)
        one = next(others, None) if place is None else place
        identity = {POD_NAME: "", POD_INDEX: ""} if one is None else _identity(workload, one)
        labels.update(identity)
        if place is not None:
            name += f" ({identity[POD_NAME]})"
    return PodTemplate(
        name=name,
        namespace=workload.namespace,
        labels=labels,
        spec=workload.spec,
        number=number,
        workload=workload,
        place=place,
    )


def numbered(place: int | None, apart: Collection[int], replicas: int) -> int:
    """Return how many of `replicas` pods have this ordinal, or one that is not singled out."""
    if place is not None:
        return int(place < replicas)
    return replicas - sum(each < replicas for each in apart)


def _identity(workload: Workload, place: int) -> dict[str, str]:
    start = at(workload.manifest.item, "spec", "ordinals", "start") or 0
    number = str(start + place)
    return {POD_NAME: f"{workload.manifest.name}-{number}", POD_INDEX: number}


def _selectors(given: Iterable[Workload | Object]) -> Iterator[object]:
    """Yield all that selects pods by labels: of pods' specs, and of Services."""
    for each in given:
        if isinstance(each, Workload):
            spec: object = each.spec
        else:
            spec = at(each, "spec")
            yield at(spec, "selector")
        yield at(spec, "affinity")
        yield elements(spec, "topologySpreadConstraints")


def _values(selector: object) -> Iterator[str | None]:
    """Yield the names and ordinals of pods in a selector; None if it distinguishes all of them."""
    waiting = [selector]
    while waiting:
        given = waiting.pop()
        if isinstance(given, list):
            waiting += given
        elif isinstance(given, dict):
            for key in (POD_NAME, POD_INDEX):
                if isinstance(given.get(key), str):
                    yield given[key]
                if given.get("key") == key:
                    yield from elements(given, "values")
                if key in [
                    *elements(given, "matchLabelKeys"),
                    *elements(given, "mismatchLabelKeys"),
                ]:
                    yield None
            waiting += given.values()
