"""Which pods a pod's affinity and topology spread constraints refer to, and where they are.

Source: Kubernetes, pkg/scheduler/framework/plugins/interpodaffinity; API reference, core/v1
PodAffinityTerm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from analyzer.gate.labels import Labels, selects
from analyzer.gate.nodes import SchedulingNode
from analyzer.gate.problem import Term
from analyzer.gate.templates import PodTemplate
from analyzer.parsers.api_objects import at, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_METADATA_NAME: Final = "kubernetes.io/metadata.name"


class PodRelations:
    """Templates, nodes and namespaces that selectors and topology keys are matched against.

    Attributes:
        domains: by topologyKey, the domain of each node; -1: it has no such label.
    """

    def __init__(
        self,
        templates: Sequence[PodTemplate],
        nodes: Sequence[SchedulingNode],
        namespaces: Mapping[str, Labels],
    ) -> None:
        """Begin without any domains: they are numbered when a key is first used."""
        self.templates = templates
        self.nodes = nodes
        self.domains: dict[str, list[int]] = {}
        self._namespaces = namespaces

    def terms(self, template: PodTemplate, kind: str) -> tuple[Term, ...]:
        """Return the required terms of ``podAffinity`` or ``podAntiAffinity``."""
        return tuple(
            Term(self.domains_of(term["topologyKey"]), self.meant(template, term))
            for term in elements(template.spec.get("affinity"), kind, _REQUIRED)
        )

    def meant(self, template: PodTemplate, term: object) -> frozenset[int]:
        """Return the groups whose pods a term of (anti)affinity matches."""
        within = self._within(template, term)
        return frozenset(
            number
            for number, other in enumerate(self.templates)
            if within(other.namespace)
            and selects(at(term, "labelSelector"), other.labels)
            and alike(template, other, elements(term, "matchLabelKeys"))
            and not _any_alike(template, other, elements(term, "mismatchLabelKeys"))
        )

    def _within(self, template: PodTemplate, term: object) -> Callable[[str], bool]:
        """Return a function that says whether a term applies to a namespace."""
        named, selector = elements(term, "namespaces"), at(term, "namespaceSelector")
        if not named and selector is None:
            return lambda name: name == template.namespace

        def within(name: str) -> bool:
            labels = {_METADATA_NAME: name, **self._namespaces.get(name, {})}
            return name in named or selects(selector, labels)

        return within

    def domains_of(self, key: str) -> list[int]:
        """Return the domain of each node by a topologyKey; -1 if it lacks the label."""
        if key not in self.domains:
            numbers: dict[str, int] = {}
            told = (node.labels.get(key) for node in self.nodes)
            self.domains[key] = [
                -1 if value is None else numbers.setdefault(value, len(numbers)) for value in told
            ]
        return self.domains[key]


def alike(one: PodTemplate, other: PodTemplate, keys: Iterable[str]) -> bool:
    """Return whether pods have the same values of one's labels; keys that it lacks do not count."""
    return all(one.labels[k] == other.labels.get(k) for k in keys if k in one.labels)


def _any_alike(one: PodTemplate, other: PodTemplate, keys: Iterable[str]) -> bool:
    return any(one.labels[k] == other.labels.get(k) for k in keys if k in one.labels)
