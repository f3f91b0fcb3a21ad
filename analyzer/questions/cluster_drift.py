"""``cluster drift``: nodes whose rules differ from those of their cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analyzer.cluster.drift import Drifted, drift
from analyzer.cluster.drift_services import ObjectFacts
from analyzer.cluster.store import NodeRow, Store
from analyzer.errors import InputError, UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.kubeproxy.predict.every_node import EveryNode
from analyzer.kubeproxy.predict.settings import GENERATED
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.value import replace
from analyzer.output import finish
from analyzer.questions.predicting import assumed_of
from analyzer.reports.cluster_drift_answer import DriftAnswer
from analyzer.reports.phrases import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.kubeproxy.view import Endpoint
    from analyzer.model.addresses import Address
    from analyzer.model.services import ApiServicePort

#: Modes whose rules can be predicted.
_MODES: Final = frozenset(each.value for each in GENERATED)
#: Selects the predictions that are compared with generated rules.
_SEED: Final = 1


def drift_of(options: SimpleNamespace) -> int:
    """Show the differences, and return the exit status."""
    store = Store.open(options.folder)
    if not options.objects and store.objects:
        options.objects = [store.objects]
    objects = ApiObjects(options)
    nodes, services = store.nodes(), store.every_node()
    store.close()
    done = [each for each in nodes if each.is_done]
    if not done:
        raise InputError(f"{options.folder}: the rules of no node are known")
    modes = [each.mode for each in done]
    wanted, words, left_out = wanted_of(options, objects, modes)
    known = objects.cluster.node_names
    if wanted is not None and not any(each.node in known for each in done):
        raise InputError(
            f"{options.folder}: the objects have no node named {done[0].node}, nor any other that "
            "was read; see --name-from of cluster build, or --against majority"
        )
    own = {a for node in objects.cluster.nodes.values() for a in node.addresses}
    found = drift(done, services, wanted, told_of(objects), own.__contains__, left_out)
    found = replace(found, not_judged=(*found.not_judged, *left_out))
    found = _narrowed(found, options)
    answer = DriftAnswer(
        folder=options.folder,
        drifted=found,
        rows=tuple(nodes),
        objects_taken=objects.taken(),
        assumed=words,
        diagnostics=_diagnostics(options.folder, nodes, objects, found.cut),
        every=options.all,
    )
    return finish(options, "cluster drift", answer, answer.diagnostics, no=bool(found.findings))


def wanted_of(
    options: SimpleNamespace, objects: ApiObjects, found: Sequence[str]
) -> tuple[tuple[EveryNode, ...] | None, tuple[str, ...], tuple[str, ...]]:
    """Return what kube-proxy would write, its basis, and what of it is not known.

    `found` are the modes of the nodes that were read. None if most nodes are the reference.

    Raises:
        AnalyzerError: the objects do not determine it, although they should.
    """
    if options.against == "majority" or (not objects.items and options.against is None):
        return None, (), ()
    if not objects.items:
        raise UsageError("--against objects: the build had none; pass --objects")
    modes = Counter(each for each in found if each in _MODES).most_common(1)
    if options.mode is None and modes:
        options.mode = modes[0][0]
    options.from_objects = options.objects
    from analyzer.kubeproxy.predict.cluster import predict

    assumed = assumed_of(options, objects)
    services, prediction = predict(objects.items, objects.cluster, assumed.settings, _SEED)
    wrong = set(prediction.left_out)
    kept = tuple(each for each in services if each.service.name.text not in wrong)
    return kept, assumed.words, tuple(wrong)


def told_of(objects: ApiObjects) -> ObjectFacts:
    """Return what objects say about endpoints."""
    services: dict[tuple[str, str, int | None], ApiServicePort] = {
        (each.name, each.protocol, version): each
        for version in (4, 6)
        for each in objects.services(version)
    }

    def owner(end: Endpoint) -> str | None:
        return objects.cluster.pods.of(end.address, end.port)

    def place(address: Address) -> str | None:
        return objects.cluster.placement(address).node

    return ObjectFacts(services=services, owner=owner, place=place, is_told=objects.lists_endpoints)


def _narrowed(found: Drifted, options: SimpleNamespace) -> Drifted:
    """Return the selected findings; findings on a node count for each of its Services."""
    names, spaces = options.service, options.namespace
    kept = [
        each
        for each in found.findings
        if (not options.only or each.drift.value in options.only)
        and (not each.service or not names or any(name in each.service for name in names))
        and (not each.service or not spaces or each.service.partition("/")[0] in spaces)
    ]
    return replace(found, findings=tuple(kept))


def _diagnostics(
    folder: str, nodes: Sequence[NodeRow], objects: ApiObjects, cut: Sequence[str]
) -> tuple[Diagnostic, ...]:
    told = []
    failed = [each.node for each in nodes if not each.is_done]
    if failed:
        says = f"not judged, since they were not read: {listed(failed)}"
        told.append(partial_warning("node-failed", says, folder))
    if cut:
        says = f"rules that are missing are not judged, since dumps are incomplete: {listed(cut)}"
        told.append(partial_warning("incomplete-dump", says, folder))
    there = {each.node for each in nodes}
    without = sorted(name for name in objects.cluster.nodes if name not in there)
    if without:
        says = f"not judged, since there is no dump: {listed(without)}"
        told.append(partial_warning("node-without-dump", says, folder))
    known = objects.cluster.node_names
    unknown = sorted(each.node for each in nodes if each.node not in known)
    if unknown and objects.items:
        says = f"not compared with the objects, which have no such node: {listed(unknown)}"
        told.append(partial_warning("unknown-node", says, folder))
    return tuple(told)
