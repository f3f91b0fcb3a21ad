"""``gate``: evaluates manifests before they are deployed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from analyzer.errors import UsageError, suggestion
from analyzer.failure.thresholds import check_counted
from analyzer.failure.whatif import FailureKind
from analyzer.gate.bounds import most_on
from analyzer.gate.cases import CaseEvaluator
from analyzer.gate.evaluation import EvaluatedService, Thresholds, evaluated
from analyzer.gate.expected import expected_end
from analyzer.gate.failing import Failing, failing_of
from analyzer.gate.fixes import fix_of
from analyzer.gate.problem import PodGroup, Problem
from analyzer.gate.reasons import why_pending
from analyzer.kubeproxy.predict.assumptions import GivenSettings
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.output import DONE, finish, show
from analyzer.parsers.api_objects import at, elements
from analyzer.parsers.roles import roles_of
from analyzer.questions.gating import Given, narrowed, read
from analyzer.reports.gate_answer import GateAnswer, Pending, unknown_words
from analyzer.reports.phrases import count, listed
from analyzer.reports.progress import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace


def gate(options: SimpleNamespace) -> int:
    """Evaluate manifests, or print the objects of a placement."""
    given = narrowed(read(options), options.service, options.namespace)
    if options.objects_of is not None:
        return _objects_of(options, given)
    answer = answer_of(options, given)
    return finish(options, "gate", answer, answer.diagnostics, no=answer.is_broken)


def answer_of(options: SimpleNamespace, given: Given) -> GateAnswer:
    """Return the verdict on the input.

    Raises:
        AnalyzerError: a manifest is malformed, or a selected name is not there.
    """
    check_counted(options.only, options.min_survives)
    problem, failing, evaluator = _world(options, given)
    thresholds = Thresholds(options.max_loss, options.min_survives)
    with progress("Services") as advance:
        found = evaluated(problem, given.services, failing, evaluator, thresholds)
        fixes = {}
        for number, each in enumerate(found):
            if each.violations or each.pending:
                fix = fix_of(each, given.templates, given.problem, failing, evaluator, thresholds)
                if fix is not None:
                    fixes[number] = fix
            if advance is not None:
                advance(1, len(found))
    return GateAnswer(
        evaluated=tuple(found),
        fixes=fixes,
        unjudged=given.unjudged,
        pending=tuple(_pending(problem, found)),
        thresholds=thresholds,
        problem=problem,
        failing=failing,
        unknown=given.unknown,
        ignored=given.ignored,
        assumed=tuple(_assumed(given, problem)),
        prediction=evaluator.prediction,
        checked=evaluator.checked,
        diagnostics=tuple(_diagnostics(given, evaluator)),
        is_faulty=bool(evaluator.differing),
        every=options.all,
    )


def _world(options: SimpleNamespace, given: Given) -> tuple[Problem, Failing, CaseEvaluator]:
    problem = given.problem(given.templates)
    failing = _failing(options, given, problem)
    return problem, failing, _evaluator(options, given, problem, failing)


def _failing(options: SimpleNamespace, given: Given, problem: Problem) -> Failing:
    """Return the failures to judge.

    Raises:
        UsageError: a node or zone given by name is not there.
    """
    names = [node.name for node in given.nodes]
    for name in options.control_plane:
        if name not in names:
            raise UsageError(f"--control-plane {name}: no such node" + suggestion(name, names))
    labelled = roles_of([node.item for node in given.nodes]).control_plane
    kinds = frozenset(map(FailureKind, options.only)) or frozenset(FailureKind)
    found = failing_of(problem, options.control_plane or labelled, kinds, options.depth)
    for kind in map(FailureKind, options.only):
        if kind not in found.kinds:
            raise UsageError(f"--only {kind.value}: {_LACKING[kind]}")
    if options.depth > 1 and options.depth >= len(names):
        raise UsageError(
            f"--depth {options.depth}: there are {count(len(names), 'node')}, and one must be left"
        )
    return found


_LACKING = {
    FailureKind.NODE: "there is only one node",
    FailureKind.ZONE: "the nodes are not in two or more zones",
    FailureKind.CONTROL_PLANE: "no node has its role label; name its nodes with --control-plane",
    FailureKind.SET: "give the number of nodes with --depth",
}


def _evaluator(
    options: SimpleNamespace, given: Given, problem: Problem, failing: Failing
) -> CaseEvaluator:
    control_plane = [problem.nodes[v].name for v in sorted(failing.control_plane)]
    said = GivenSettings(
        version=options.kube_proxy,
        mode=options.mode,
        local_mode=options.detect_local_mode,
        cluster_cidrs=tuple(options.cluster_cidr),
    )
    seed = options.seed
    if seed is None:
        from random import SystemRandom

        seed = SystemRandom().randrange(1 << 32)
    try:
        return CaseEvaluator(
            problem, given.templates, given.services, failing, control_plane, said, seed
        )
    except ValueError as error:
        raise UsageError(f"--kube-proxy: {error}") from None


def _objects_of(options: SimpleNamespace, given: Given) -> int:
    """Print the objects of the worst placement of each Service, or of the expected one."""
    problem, failing, evaluator = _world(options, given)
    thresholds = Thresholds(options.max_loss, options.min_survives)
    asked = []
    for each in evaluated(problem, given.services, failing, evaluator, thresholds):
        case = each.expected
        if options.objects_of == "worst":
            broken = [v.found for v in each.violations]
            case = (broken or [*each.worst, each.fewest])[0].case
        asked.append((each.service, case.end))
    document = {"apiVersion": "v1", "kind": "List", "items": evaluator.objects(asked)}
    show(json.dumps(document, indent=1) + "\n", options)
    return DONE


def _pending(problem: Problem, found: Sequence[EvaluatedService]) -> Iterator[Pending]:
    """Yield the workloads whose pods find no node, certainly or where the scores lead.

    Of those that an autoscaler makes more of also how many more of these find none.
    """
    known = {each.service.groups: each.placements.pending[0] for each in found}
    told = set()
    for g, group, least, left in _waiting(problem):
        certain = max(least, known.get((g,), 0))
        if certain or left:
            told.add(g)
            yield Pending(group, certain, left, why_pending(problem, group))
    if problem.scales:
        fullest = problem.fullest
        scaled = {g for each in problem.scales for g in each.groups}
        for g, group, least, left in _waiting(fullest):
            if g in scaled - told and (least or left):
                yield Pending(group, 0, max(least, left), why_pending(fullest, group))


def _waiting(problem: Problem) -> Iterator[tuple[int, PodGroup, int, int]]:
    """Yield groups of pods with how many find no node for sure, and where the scores lead."""
    expected = expected_end(problem)
    every = range(len(problem.nodes))
    for g, group in enumerate(problem.groups):
        if group.workload is not None:
            least = max(0, group.asked - most_on(problem, g, every))
            yield g, group, least, group.number if group.stuck is not None else expected.left[g]


def _assumed(given: Given, problem: Problem) -> Iterator[str]:
    """Yield what the answer rests on, in words."""
    yield "new pods are ready, and no pods of an older revision are left"
    for each in given.workloads:
        if each.scaler is not None and each.most > (each.replicas or 0):
            yield (
                f"{each.name} has {each.replicas:,} to {count(each.most, 'pod')}, as its "
                "autoscaler allows; losses are those of the worst number"
            )
    bound = [each.name for each in given.workloads if _has_claims(each.manifest.item, each.spec)]
    if bound:
        yield f"volumes do not restrict where pods run ({listed(bound)})"
    if given.is_described:
        known = frozenset(key for room in problem.room for key in room)
        asked = {key for t in problem.groups for key in t.requests} - {"pods"}
        if asked - known:
            yield (
                f"nodes have enough {listed(sorted(asked - known))} for all requests; --nodes "
                "gives no amounts"
            )
    if given.replaced:
        says = count(given.replaced, "running pod is", "running pods are")
        yield f"{says} replaced by those of the manifests"
    yield "no pod is preempted or evicted"


def _has_claims(item: object, spec: object) -> bool:
    if elements(item, "spec", "volumeClaimTemplates"):
        return True
    volumes = elements(spec, "volumes")
    return any(at(v, "persistentVolumeClaim") or at(v, "ephemeral") for v in volumes)


def _diagnostics(given: Given, evaluator: CaseEvaluator) -> Iterator[Diagnostic]:
    for each in given.unjudged:
        if each.matters:
            name = "/".join(each.manifest.key)
            yield Diagnostic(
                severity=Severity.INFO,
                code="not-judged",
                message=f"{name} was not judged: {each.why}",
                file=each.manifest.place.file,
                line=each.manifest.place.line,
                partial=True,
            )
    for scaler, target in given.adrift:
        yield Diagnostic(
            severity=Severity.WARNING,
            code="autoscaler-without-target",
            message=f"{scaler.title} scales {target}, which is not in these manifests",
            file=scaler.place.file,
            line=scaler.place.line,
            partial=True,
        )
    for field in given.unknown:
        place = field.manifest.place
        yield Diagnostic(
            severity=Severity.WARNING,
            code="unknown-field",
            message=unknown_words(field),
            file=place.file,
            line=place.line,
            partial=True,
        )
    if evaluator.differing:
        yield Diagnostic(
            severity=Severity.WARNING,
            code="prediction",
            message=(
                "the generated rules give other results than predicted for "
                f"{listed(evaluator.differing)}: a bug in kubeodds, please report it"
            ),
            file="rules",
            partial=True,
        )
