"""``advise``: what measures gain the Services that lose most."""

from __future__ import annotations

import json

from analyzer.advice.advise import Adviser, Failures, keys_of
from analyzer.advice.measure import ClusterState, Refused, is_for
from analyzer.advice.measures import MEASURES, USUAL, measure_of
from analyzer.advice.scores import found_of, of_service
from analyzer.errors import InputError, UsageError, suggestion
from analyzer.inputs.api_objects import ApiObjects
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.output import DONE, finish, say, show
from analyzer.questions.predicting import everywhere
from analyzer.reports.advise_answer import AdviseAnswer
from analyzer.reports.not_judged import not_judged
from analyzer.reports.phrases import listed
from analyzer.reports.progress import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import SimpleNamespace

    from analyzer.advice.advise import Advice
    from analyzer.advice.measure import Measure, NamespacedName
    from analyzer.outage.topologies import GivenTopology
    from analyzer.questions.predicting import Everywhere


def advise(options: SimpleNamespace) -> int:
    """Show what measures would gain, or print the objects after one of them."""
    if options.node is not None and not options.dumps:
        raise UsageError("--node: advise covers every node; --node only names the node of a DUMP")
    if options.node_of:
        raise UsageError("--node-of: advise takes nodes from the objects; add pods to them")
    measures = [_measure(name) for name in options.measure or USUAL]
    objects = ApiObjects(options)
    every = everywhere(options, objects)
    situation = ClusterState(
        items=tuple(objects.items),
        said=_said(options, objects),
        minor=every.prediction.settings.version.minor,
    )
    keys = [*keys_of(every.services, objects.items)]
    if options.objects_of is not None:
        return _objects_of(options, situation, keys)
    fitting = [key for key in keys if any(is_for(each, key) for each in measures)]
    ordered = _worst_first(every, objects, fitting)
    shown = ordered if options.all else ordered[: options.top]
    adviser, found = _advice(options, objects, every, situation, shown, measures)
    diagnostics = [*every.diagnostics, *_differing(options, adviser, found)]
    judged = {each.key for each in found}
    answer = AdviseAnswer(
        advice=tuple(found),
        not_judged=tuple(
            [*not_judged(every.view, every.absent), *_unknown(every, keys)]
            + ["/".join(key) for key in shown if key not in judged]
        ),
        without=tuple("/".join(key) for key in fitting if key not in ordered),
        failures=_failures(options, objects),
        prediction=every.prediction,
        more=len(ordered) - len(shown),
        checked=adviser.checked,
        diagnostics=tuple(diagnostics),
        every=options.all or bool(options.measure),
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=False)


def _advice(
    options: SimpleNamespace,
    objects: ApiObjects,
    every: Everywhere,
    situation: ClusterState,
    keys: Sequence[NamespacedName],
    measures: Sequence[Measure],
) -> tuple[Adviser, list[Advice]]:
    """Return what judged, and what it found for these Services."""
    settings, seed = every.prediction.settings, _seed(every)
    with progress("measures") as advance:
        adviser = Adviser(situation, settings, _failures(options, objects), seed, advance)
        judged = [
            adviser.advice(key, [*of_service(every.services, key)], objects.cluster, measures)
            for key in keys
        ]
    return adviser, [each for each in judged if each is not None]


def _unknown(every: Everywhere, keys: Sequence[NamespacedName]) -> list[str]:
    """Return the names of ServicePorts whose Service is not among the objects."""
    names = [each.service.name for each in every.services]
    return [n.text for n in names if (n.namespace or "", n.service or "") not in keys]


def _worst_first(
    every: Everywhere, objects: ApiObjects, keys: Sequence[NamespacedName]
) -> list[NamespacedName]:
    """Return the Services that have endpoints, those first that survive least and lose most."""
    found = found_of(every.services, objects.cluster)
    ranks: dict[NamespacedName, tuple[int, int]] = {}
    for at, each in enumerate(every.services):
        name = each.service.name
        key = name.namespace or "", name.service or ""
        survives = found.survives(at)
        if survives is None:
            continue
        lost = max(
            (max(row.upper.values(), default=0) for row in found.nodes.services[at]), default=0
        )
        ranks[key] = min(ranks.get(key, (survives, -lost)), (survives, -lost))
    return sorted((key for key in keys if key in ranks), key=lambda key: (ranks[key], key))


def _seed(every: Everywhere) -> int:
    """Return the number that the checks of this run are drawn by."""
    return next((each.seed for each in every.prediction.walked), 0)


def _measure(name: str) -> Measure:
    found = measure_of(name)
    if found is None:
        raise UsageError(
            f"--measure {name}: no such measure, or they cannot be combined"
            + suggestion(name, MEASURES)
        )
    return found


def _said(options: SimpleNamespace, objects: ApiObjects) -> GivenTopology:
    from analyzer.verbs.failures import said_of, topology_of

    topology_of(options, objects)  # names that are no node's are refused
    return said_of(options)


def _failures(options: SimpleNamespace, objects: ApiObjects) -> Failures:
    zones = objects.cluster.zones
    names = dict.fromkeys(options.dead_node)
    for zone in options.dead_zone:
        if zone not in zones:
            raise UsageError(f"--dead-zone {zone}: no such zone" + suggestion(zone, zones))
        known = sorted(objects.cluster.node_names)
        names.update(dict.fromkeys(n for n in known if objects.cluster.zone_of(n) == zone))
    if names and options.depth > 1:
        raise UsageError("--depth: not with --dead-node or --dead-zone, which name a set")
    return Failures(dead=tuple(names), depth=options.depth)


def _objects_of(
    options: SimpleNamespace, situation: ClusterState, keys: Iterable[NamespacedName]
) -> int:
    """Print the objects as a measure leaves them."""
    name = options.objects_of
    measure = _measure(name)
    fitting = [key for key in keys if is_for(measure, key)]
    if not fitting:
        raise UsageError(f"--objects-of {name}: it applies to none of these Services")
    refused = []
    for key in fitting:
        changed = measure.change(situation, key)
        if isinstance(changed, Refused):
            refused.append(f"{'/'.join(key)}: {changed.why}")
        else:
            situation = changed
    if len(refused) == len(fitting):
        raise InputError(f"--objects-of {name}: it changes nothing: {listed(refused)}")
    if situation.client is not None:
        raise UsageError(
            f"--objects-of {name}: it changes clients, not objects; kubeodds client DUMP --client "
            f"{situation.client}"
        )
    for each in refused:
        say(f"kubeodds: --objects-of {name}: it changes nothing of {each}")
    document = {"apiVersion": "v1", "kind": "List", "items": [*situation.items]}
    show(json.dumps(document, indent=1) + "\n", options)
    return DONE


def _differing(
    options: SimpleNamespace, adviser: Adviser, found: Iterable[Advice]
) -> Iterable[Diagnostic]:
    file = ", ".join(options.from_objects)
    if adviser.differing:
        says = (
            "after a measure, the generated rules give other results than predicted for "
            f"{listed([*dict.fromkeys(adviser.differing)])}: a bug in kubeodds, please report it"
        )
        yield _told(file, says, partial=True)
    for each in found:
        if each.predicted is not None:
            says = (
                f"{each.name}: a dump and the objects disagree; the results of measures are "
                "predicted from the objects, at every node"
            )
            yield _told(", ".join(options.dumps), says, partial=False)


def _told(file: str, says: str, *, partial: bool) -> Diagnostic:
    return Diagnostic(
        severity=Severity.WARNING, code="prediction", message=says, file=file, partial=partial
    )
