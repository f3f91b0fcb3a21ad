"""Reads the input of ``gate``: manifests, nodes, and pods that run already."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from analyzer.errors import InputError, ParseError, UsageError
from analyzer.gate.api_shapes import UnknownField, check_manifest, check_of_cluster, explained
from analyzer.gate.compiling import problem_of
from analyzer.gate.labels import labels_of, selects
from analyzer.gate.nodes import SchedulingNode, described, is_description, scheduling_nodes
from analyzer.gate.problem import Problem
from analyzer.gate.services import GatedService, Unjudged, services_of
from analyzer.gate.shapes import MalformedError
from analyzer.gate.templates import PodTemplate, templates_of
from analyzer.gate.unseen import adrift, judged_or_not
from analyzer.gate.workloads import KINDS, OTHERS, Workload, workloads
from analyzer.inputs.files import files_of_objects
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.model.value import replace, value
from analyzer.parsers.api_objects import Object, at, decode, elements, is_ready, text
from analyzer.parsers.manifests import Manifest, manifests
from analyzer.parsers.objects.text import GO_ON
from analyzer.parsers.pods import has_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.gate.labels import Labels

_DEFAULT_SCHEDULER: Final = "default-scheduler"


@value(kw_only=True)
class Given:
    """The input of ``gate``.

    Attributes:
        unknown: fields of manifests that nothing is known of: misspelt ones, or new ones.
        ignored: kinds that say nothing of where pods are, with their number.
        replaced: how many pods that run are those of a workload of the manifests.
        adrift: autoscalers that scale nothing of the manifests, and what they would scale.
    """

    templates: tuple[PodTemplate, ...]
    nodes: tuple[SchedulingNode, ...]
    namespaces: Mapping[str, Labels]
    is_described: bool
    services: tuple[GatedService, ...]
    unjudged: tuple[Unjudged, ...]
    workloads: tuple[Workload, ...]
    replaced: int
    unknown: tuple[UnknownField, ...] = ()
    adrift: tuple[tuple[Manifest, str], ...] = ()
    ignored: Mapping[str, int] = {}  # never changed: values are not

    def problem(self, templates: Sequence[PodTemplate]) -> Problem:
        """Return the problem of placing the templates' pods on these nodes."""
        return problem_of(templates, self.nodes, self.namespaces, is_described=self.is_described)


def read(options: SimpleNamespace) -> Given:
    """Return the input that the options name.

    Raises:
        AnalyzerError: it cannot be read, or is malformed.
        OSError: a file cannot be read.
    """
    files = list(files_of_objects(options.manifests, options.max_input))
    items, is_described = _nodes(options)
    return given_of(files, items, is_described=is_described)


def given_of(
    files: Sequence[tuple[str, bytes]], items: Sequence[Object], *, is_described: bool
) -> Given:
    """Return the input from manifests, as name and content, and objects of a cluster.

    Raises:
        AnalyzerError: they are malformed.
    """
    every = manifests(files)
    found = _unique([each for each in every if _is_looked_at(each)])
    unknown = [field for each in found for field in check_manifest(each)]
    try:
        given = _given(found, items, is_described=is_described)
    except ParseError as error:
        raise _explained(error, unknown) from None
    unseen = [each for each in every if not _is_looked_at(each)]
    told = [judged_or_not(each, unseen, given.templates) for each in given.services]
    return replace(
        given,
        services=tuple(each for each in told if isinstance(each, GatedService)),
        unjudged=(*given.unjudged, *_once(each for each in told if isinstance(each, Unjudged))),
        unknown=tuple(unknown),
        ignored=Counter(map(_kind, unseen)),
        adrift=tuple(adrift(found, given.workloads)),
    )


def _once(given: Iterable[Unjudged]) -> Iterable[Unjudged]:
    """Return each Service once: its ports may lead to other pods, of which one is enough."""
    return {each.manifest.key: each for each in given}.values()


def _explained(error: ParseError, unknown: Iterable[UnknownField]) -> ParseError:
    """Return an error with the unknown fields at its place, one of which may be the cause."""
    paths = [each.path for each in unknown if each.manifest.place == error.location]
    said = explained(error.message, paths)
    return ParseError(said, location=error.location, line=error.line, span=error.span)


def _given(found: list[Manifest], items: Sequence[Object], *, is_described: bool) -> Given:
    try:
        nodes = scheduling_nodes(items)
    except ValueError as error:
        raise InputError(f"--nodes: {error}") from None
    if not nodes:
        raise UsageError(
            "--nodes: it contains no Node; expected the output of kubectl get nodes -o json"
        )
    own = workloads(found)
    running, replaced = _running(items, own)
    others = [each.item for each in found if each.kind == "Service"]
    templates = (
        *templates_of(own, [*others, *(i for i in items if i.get("kind") == "Pod")]),
        *running,
    )
    services: list[GatedService] = []
    unjudged: list[Unjudged] = []
    for each in services_of(found, templates):
        told = _elsewhere(each, templates) if isinstance(each, GatedService) else each
        if isinstance(told, GatedService):
            services.append(told)
        else:
            unjudged.append(told)
    return Given(
        templates=templates,
        nodes=tuple(nodes),
        namespaces=dict(_namespaces([*(m.item for m in found), *items])),
        is_described=is_described,
        services=tuple(services),
        unjudged=tuple(unjudged),
        workloads=tuple(own),
        replaced=replaced,
    )


def _is_looked_at(given: Manifest) -> bool:
    """Return whether it is of a kind that matters; groups of other people's APIs have a dot."""
    return given.kind in KINDS | OTHERS and "." not in given.group


def _kind(given: Manifest) -> str:
    is_other = given.kind in KINDS | OTHERS  # as that of Knative, which is a Service too
    return f"{given.kind}.{given.group}" if is_other else given.kind or "?"


def _unique(found: list[Manifest]) -> list[Manifest]:
    """Return manifests; duplicates are refused, since it is not clear which one counts.

    Raises:
        ParseError: an object is there twice.
    """
    seen: dict[tuple[str, tuple[str, str]], Manifest] = {}
    for each in found:
        if each.is_named:
            first = seen.setdefault((each.kind, each.key), each)
            if first is not each:
                each.fail(f"defined twice; first at {first.place}")
    return found


def _nodes(options: SimpleNamespace) -> tuple[list[Object], bool]:
    """Return the objects of ``--nodes``, and whether they are only described."""
    groups = [each for each in options.nodes if is_description(each)]
    if groups and len(groups) < len(options.nodes):
        other = next(each for each in options.nodes if each not in groups)
        raise UsageError(f"--nodes {other}: give either a file or a description of nodes, not both")
    if groups:
        return described(groups), True
    return [*_of_cluster(files_of_objects(options.nodes, options.max_input))], False


def _of_cluster(files: Iterable[tuple[str, bytes]]) -> Iterator[Object]:
    """Yield the objects of files of a cluster.

    Raises:
        AnalyzerError: they cannot be read, or one of them is malformed.
    """
    for file, data in files:
        for item in _decoded(file, data):
            kind = text(item.get("kind")) or ""
            try:
                check_of_cluster(item, kind)
            except MalformedError as error:
                name = text(at(item, "metadata", "name")) or ""
                namespace = text(at(item, "metadata", "namespace"))
                whole = f"{namespace}/{name}" if namespace else name
                raise InputError(f"{file}: {kind} {whole}: {error}") from None
            yield item


def _decoded(file: str, data: bytes) -> list[Object]:
    """Return the objects of a file; where kubectl had nothing to say nodes may be described."""
    try:
        return decode([(file, data)])
    except ParseError:
        raise
    except InputError as error:
        said = str(error)
        if GO_ON not in said:
            raise
        raise InputError(
            said.replace(GO_ON, "describe the nodes: --nodes 3xzone=a,3xzone=b")
        ) from None


def _namespaces(items: Iterable[Object]) -> Iterator[tuple[str, Labels]]:
    for item in items:
        name = text(at(item, "metadata", "name"))
        if item.get("kind") == "Namespace" and name is not None:
            labels = at(item, "metadata", "labels")
            told = labels if isinstance(labels, dict) else {}
            yield name, {k: each for k, each in told.items() if isinstance(each, str)}


# --- pods that run already ------------------------------------------------------


def _running(items: Sequence[Object], own: Sequence[Workload]) -> tuple[list[PodTemplate], int]:
    """Return pods that run and stay, alike ones once, and how many others will be replaced."""
    selectors = [(w.namespace, at(w.manifest.item, "spec", "selector")) for w in own]
    named = {(w.namespace, w.manifest.name) for w in own if w.kind == "Pod"}
    alike: dict[str, tuple[Object, Counter[str]]] = {}
    replaced = 0
    for item in items:
        node = text(at(item, "spec", "nodeName"))
        if item.get("kind") != "Pod" or node is None or has_ended(item):
            continue
        namespace = text(at(item, "metadata", "namespace")) or "default"
        try:
            labels = labels_of(at(item, "metadata", "labels"), "labels")
        except ValueError as error:
            raise InputError(f"--nodes: pod {namespace}: {error}") from None
        name = text(at(item, "metadata", "name")) or ""
        if (namespace, name) in named or any(
            namespace == of and selects(selector, labels) for of, selector in selectors
        ):
            replaced += 1
            continue
        key = json.dumps([namespace, labels, *_matters(item)], sort_keys=True)
        alike.setdefault(key, (item, Counter()))[1][node] += 1
    return [_template(item, fixed) for item, fixed in alike.values()], replaced


def _matters(pod: Object) -> list[object]:
    """Return what of a pod that runs matters to others."""
    spec = at(pod, "spec")
    kept = [
        {"resources": at(each, "resources"), "ports": at(each, "ports")}
        for each in elements(spec, "containers")
    ]
    anti = at(spec, "affinity", "podAntiAffinity")
    return [kept, anti, at(spec, "hostNetwork"), is_ready(pod)]


def _template(pod: Object, fixed: Counter[str]) -> PodTemplate:
    namespace = text(at(pod, "metadata", "namespace")) or "default"
    labels = at(pod, "metadata", "labels")
    return PodTemplate(
        name=f"pod {namespace}/{text(at(pod, 'metadata', 'name')) or ''}",
        namespace=namespace,
        labels=labels if isinstance(labels, dict) else {},
        spec=at(pod, "spec"),
        number=0,
        fixed=dict(fixed),
        is_ready=is_ready(pod),
    )


def _elsewhere(service: GatedService, templates: Sequence[PodTemplate]) -> GatedService | Unjudged:
    """Return a Service, or the reason why the nodes of its pods are not known."""
    for g in service.groups:
        template = templates[g]
        scheduler = text(template.spec.get("schedulerName")) or _DEFAULT_SCHEDULER
        if template.workload is not None and scheduler != _DEFAULT_SCHEDULER:
            why = f"{template.name}: the scheduler {scheduler} places its pods"
            return Unjudged(service.manifest, why, matters=True)
    return service


def narrowed(given: Given, names: Collection[str], namespaces: Collection[str]) -> Given:
    """Return the selected Services.

    Raises:
        UsageError: there is none of a name.
    """
    from analyzer.kubeproxy.names import service_name
    from analyzer.kubeproxy.select import narrow
    from analyzer.kubeproxy.view import ServicePort, View

    if not names and not namespaces:
        return given
    of: dict[int, GatedService | Unjudged] = {}
    ports = []
    every: list[GatedService | Unjudged] = [*given.services, *given.unjudged]
    for each in every:
        listed = each.ports if isinstance(each, GatedService) else ("",)
        for port in listed:
            told = "/".join(each.manifest.key) + (f":{port}" if port else "")
            made = ServicePort(name=service_name(told), protocol="tcp", frontends=(), routes=())
            of[id(made)] = each
            ports.append(made)
    view = View(services=tuple(ports), mode=ProxyMode.NONE, node=None, diagnostics=())
    kept = [of[id(each)] for each in narrow(view, names, namespaces, "these manifests")]
    return replace(
        given,
        services=tuple(each for each in given.services if any(each is k for k in kept)),
        unjudged=tuple(each for each in given.unjudged if any(each is k for k in kept)),
    )
