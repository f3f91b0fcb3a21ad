"""Services of manifests: which pods each port forwards to, and what gets no rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.gate.labels import labels_of, selects
from analyzer.gate.ports import ports_of
from analyzer.gate.templates import PodTemplate
from analyzer.kubeproxy.generate.objects import is_name
from analyzer.model.value import value
from analyzer.parsers.api_objects import Object, at, elements, text
from analyzer.parsers.manifests import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_NOT_OURS: Final = (
    "service.kubernetes.io/service-proxy-name",
    "service.kubernetes.io/headless",
)
_MODES: Final = (
    "service.kubernetes.io/topology-aware-hints",
    "service.kubernetes.io/topology-mode",
)


@value(kw_only=True)
class GatedService:
    """Ports of a Service that forward to the same pods.

    Attributes:
        ports: their names; of a port without one the empty name.
        groups: the groups of pods that are endpoints of these ports.
    """

    manifest: Manifest
    item: Object
    ports: tuple[str, ...]
    groups: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.manifest.key

    @property
    def name(self) -> str:
        """Namespace and name, and the ports if these are not all."""
        whole = len(elements(self.item, "spec", "ports"))
        ports = "" if len(self.ports) == whole else f":{','.join(self.ports)}"
        return "/".join(self.key) + ports

    @property
    def is_local(self) -> bool:
        """Whether flows from inside the cluster stay on their node."""
        return bool(at(self.item, "spec", "internalTrafficPolicy") == "Local")

    @property
    def prefers_places(self) -> bool:
        """Whether its rules prefer near endpoints, and use others if there are none."""
        return not self.is_local and bool(at(self.item, "spec", "trafficDistribution"))

    @property
    def is_inside(self) -> bool:
        """Whether it can be reached through its ClusterIP only."""
        spec = at(self.item, "spec")
        return at(spec, "type") in (None, "ClusterIP") and not elements(spec, "externalIPs")


@value
class Unjudged:
    """A Service that is not evaluated.

    Attributes:
        matters: whether it has rules that nothing is known of; else it has none, as a headless one.
    """

    manifest: Manifest
    why: str
    matters: bool


def services_of(
    given: Iterable[Manifest], templates: Sequence[PodTemplate]
) -> Iterator[GatedService | Unjudged]:
    """Yield the Services of manifests, split if not all ports forward to the same pods.

    Raises:
        ParseError: one of them is malformed.
    """
    for each in given:
        if each.kind != "Service":
            continue
        # The API appends five letters and digits to generateName.
        if not is_name(each.name if each.is_named else f"{each.name[:-1]}x") or not is_name(
            each.namespace
        ):
            each.fail("its name or namespace is not one that the API allows")
        why = _without_rules(each.item)
        if why:
            yield Unjudged(each, why, matters=False)
            continue
        try:
            selector = labels_of(at(each.item, "spec", "selector"), "selector")
        except ValueError as error:
            each.fail(str(error))
        found = _unknown(each.item, selector)
        if found:
            yield Unjudged(each, found, matters=True)
            continue
        yield from _parts(each, selector, templates)


def _parts(
    given: Manifest, selector: dict[str, str], templates: Sequence[PodTemplate]
) -> Iterator[GatedService | Unjudged]:
    selected = [
        g
        for g, template in enumerate(templates)
        if template.namespace == given.namespace
        and selects({"matchLabels": selector}, template.labels)
    ]
    if not selected:
        yield Unjudged(given, "its selector selects no pods of these manifests", matters=True)
        return
    if at(given.item, "spec", "publishNotReadyAddresses") is not True:
        selected = [g for g in selected if templates[g].is_ready]
        if not selected:
            yield Unjudged(given, "all pods that its selector selects are not ready", matters=True)
            return
    by_pods: dict[tuple[int, ...], list[str]] = {}
    for port in elements(given.item, "spec", "ports"):
        name = text(at(port, "name")) or ""
        groups = tuple(g for g in selected if name in dict(ports_of(given.item, templates[g].spec)))
        by_pods.setdefault(groups, []).append(name)
    if not by_pods:
        given.fail("it has no ports")
    for groups, names in by_pods.items():
        if groups:
            yield GatedService(manifest=given, item=given.item, ports=tuple(names), groups=groups)
        else:
            named = ", ".join(names)
            yield Unjudged(given, f"no pod has the target port of {named or 'it'}", matters=True)


def _without_rules(item: Object) -> str:
    spec, labels = at(item, "spec"), at(item, "metadata", "labels")
    if at(spec, "type") == "ExternalName":
        return "ExternalName: kube-proxy has no rules for it"
    if at(spec, "clusterIP") == "None":
        return "headless: kube-proxy has no rules for it"
    if isinstance(labels, dict) and any(each in labels for each in _NOT_OURS):
        return "its labels assign it to another proxy"
    return ""


def _unknown(item: Object, selector: dict[str, str]) -> str:
    if not selector:
        return "no selector: its endpoints are managed by hand"
    annotations = at(item, "metadata", "annotations")
    mode = next((text(at(annotations, key)) for key in _MODES if at(annotations, key)), None)
    if mode is not None and mode.lower() != "disabled":
        return f"topology-mode {mode}: the controller allots hints by CPUs"
    return ""
