"""The answer of ``gate``, independent of the output format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analyzer.errors import suggestion
from analyzer.failure.whatif import FailureKind
from analyzer.gate.api_shapes import UnknownField
from analyzer.gate.cases import Case
from analyzer.gate.evaluation import EvaluatedService, Thresholds, Violation, WorstCase
from analyzer.gate.failing import Failing
from analyzer.gate.fixes import Fix
from analyzer.gate.problem import PodGroup, Problem
from analyzer.gate.reasons import why_allowed
from analyzer.gate.services import GatedService, Unjudged
from analyzer.gate.workloads import Workload
from analyzer.kubeproxy.predict.cluster import Prediction
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.value import value
from analyzer.parsers.manifests import Manifest
from analyzer.reports.numbers import bounds_percent, limit_percent, most_percent, percent
from analyzer.reports.phrases import count, listed

_NODES_SHOWN = 6


@value
class Pending:
    """Pods that are unschedulable.

    Attributes:
        least: the fewest that are, wherever the others are.
        expected: how many are if the scheduler follows its scores.
    """

    group: PodGroup
    least: int
    expected: int
    why: str

    @property
    def manifest(self) -> Manifest:
        """The manifest of the workload."""
        assert self.group.workload is not None  # what runs is not Pending
        return self.group.workload.manifest


@value(kw_only=True)
class GateAnswer:
    """The answer of ``gate``: what the worst placements lose, and the thresholds exceeded.

    Attributes:
        fixes: what would help, by the index of a Service in `evaluated`.
        unjudged: Services without an answer, with or without rules.
        unknown: fields of manifests that are not known.
        ignored: kinds of objects that have no bearing on where pods are, with their number.
        assumed: what the answer assumes, in words.
        checked: number of predictions that were compared with generated rules.
        is_faulty: whether generated rules contradict a prediction.
        every: whether each Service is shown, in full.
    """

    evaluated: tuple[EvaluatedService, ...]
    fixes: Mapping[int, Fix]
    unjudged: tuple[Unjudged, ...]
    pending: tuple[Pending, ...]
    thresholds: Thresholds
    problem: Problem
    failing: Failing
    unknown: tuple[UnknownField, ...]
    ignored: Mapping[str, int]
    assumed: tuple[str, ...]
    prediction: Prediction
    checked: int
    diagnostics: tuple[Diagnostic, ...]
    is_faulty: bool = False
    every: bool = False

    @property
    def not_judged(self) -> tuple[Unjudged, ...]:
        """Services whose rules are not known."""
        return tuple(each for each in self.unjudged if each.matters)

    @property
    def is_broken(self) -> bool:
        """Whether a threshold is exceeded, or may be; or pods stay Pending."""
        if any(each.violations for each in self.evaluated) or any(p.least for p in self.pending):
            return True
        return self.thresholds.are_any and (
            bool(self.not_judged or self.unknown) or self.is_faulty or self.is_empty
        )

    @property
    def is_empty(self) -> bool:
        """Whether there are no Services at all, for example if a chart was not rendered."""
        return not self.evaluated and not self.unjudged


# --- words that several formats use ------------------------------------------


def failing_names(case: Case, kind: FailureKind) -> str:
    """Return what fails, in words: ``node a-1 fails``."""
    failure = case.failure(kind)
    if failure is None:
        return ""
    if kind is FailureKind.CONTROL_PLANE:
        return f"the control plane fails ({listed(failure.names)})"
    if kind is FailureKind.SET:
        return f"{listed(failure.names)} fail"
    return f"{kind.value} {failure.names[0]} fails"


def loss_words(found: WorstCase) -> str:
    """Return the worst loss of a kind: ``50.0%``, ``33.3 to 100.0%`` if it is not proven."""
    assert found.kind is not None  # of a failure
    if found.case.found is None:
        return "no pods"
    loss = found.case.loss(found.kind)
    if found.most is None:
        return bounds_percent(loss)
    return f"{percent(loss.lower, up=False).rstrip('%')} to {most_percent(found.most)}"


def placed_words(answer: GateAnswer, case: Case, most: int = _NODES_SHOWN) -> str:
    """Return where the pods are: ``a-1 (3), b-1``, the fullest nodes first."""
    places = sorted(case.places(answer.problem), key=lambda each: -each[1])
    told = [name if number == 1 else f"{name} ({number:,})" for name, number in places[:most]]
    more = len(places) - most
    return ", ".join(told) + (f" and {count(more, 'more node')}" if more > 0 else "")


def replicas_of(answer: GateAnswer, case: Case) -> list[tuple[Workload, int]]:
    """Return the replica counts of scaled workloads at a placement."""
    told = answer.problem.replicas(case.end.counts, case.end.left)
    return [(scale.workload, number) for scale, number in told]


def replicas_words(answer: GateAnswer, case: Case) -> str:
    """Return the replica counts that an autoscaler chose, if any; else nothing."""
    found = replicas_of(answer, case)
    if not found:
        return ""
    if len(found) == 1 and len(workloads_of(answer, case.service)) == 1:
        return f" at {count(found[0][1], 'replica')}"
    told = [f"{count(number, 'replica')} of {workload.name}" for workload, number in found]
    return f" at {listed(told)}"


def workloads_of(answer: GateAnswer, service: GatedService) -> list[Workload]:
    """Return the workloads behind a Service, each once."""
    known = (answer.problem.groups[g].workload for g in service.groups)
    return [*{id(each): each for each in known if each is not None}.values()]


def violation_words(answer: GateAnswer, evaluated: EvaluatedService, violation: Violation) -> str:
    """Return a violation as a clause."""
    found, limits = violation.found, answer.thresholds
    name = evaluated.service.name
    if found.case.found is None:
        return f"{name} may have no running pod"
    if found.kind is None:
        survives = found.case.survives if violation.breach else found.surely
        surely = "" if violation.breach else "is only known to "
        verb = "survives" if violation.breach else "survive"
        many = f"the loss of any {count(survives, 'node')}" if survives else "no node failure"
        many += replicas_words(answer, found.case) if violation.breach else ""
        wanted = f"the loss of any {count(limits.min_survives or 0, 'node')}"
        return f"{name} {surely}{verb} {many}; required: {wanted}"
    assert limits.max_loss is not None  # it is broken
    most = limit_percent(limits.max_loss)
    if violation.breach is None:
        assert found.most is not None  # else it is proven
        return (
            f"{name} may lose up to {most_percent(found.most)} if a {found.kind.value} fails: "
            f"the worst placement is not known; allowed: {most}"
        )
    what = failing_names(found.case, found.kind)
    at = replicas_words(answer, found.case)
    loss = bounds_percent(found.case.loss(found.kind))
    return f"{name} loses {loss} if {what}{at}; allowed: {most}"


def allowed_words(answer: GateAnswer, evaluated: EvaluatedService) -> Iterator[str]:
    """Yield why the placement is allowed, for each workload behind a Service."""
    for each in workloads_of(answer, evaluated.service):
        if each.kind == "DaemonSet":
            says = "one pod on each node that takes one"
        elif _most_of(answer, evaluated.service, each) == 1:
            says = "a single pod"
        else:
            says = why_allowed(each.spec)
        yield f"{each.name}: {says}"


def _most_of(answer: GateAnswer, service: GatedService, workload: Workload) -> int:
    """Return how many pods of a workload the Service has at most."""
    groups = answer.problem.fullest.groups
    own = [groups[g] for g in service.groups]
    return sum(each.asked for each in own if each.workload is workload)


def fix_words(fix: Fix) -> str:
    """Return a fix as a clause, with the loss that remains."""
    told = [
        f"{loss_words(each)} if {_one(each.kind)} fails"
        for each in fix.then.worst
        if each.kind is not None and each.case.loss(each.kind).upper
    ]
    left = f"then loses {', '.join(told)}" if told else "then loses nothing"
    nodes = fix.then.fewest.case.survives
    survives = f"survives the loss of any {count(nodes, 'node')}"
    survives = survives if nodes > 0 else "survives no node failure"
    enough = "" if fix.is_enough else " (not enough)"
    return f"{fix.says}{enough}: {left}; {survives}"


def _one(kind: FailureKind) -> str:
    return {
        FailureKind.NODE: "a node",
        FailureKind.ZONE: "a zone",
        FailureKind.CONTROL_PLANE: "the control plane",
        FailureKind.SET: "the set of nodes",
    }[kind]


def unknown_words(each: UnknownField) -> str:
    """Return that a field is unknown, and which may be meant."""
    last = each.path.rpartition(".")[2]
    return f"{each.manifest.title}: {each.path}: unknown field{suggestion(last, each.known)}"


def pending_words(each: Pending) -> str:
    """Return that pods are unschedulable, as a clause."""
    number, whole = each.least or each.expected, each.group.number
    surely = "stay" if each.least else "may stay"
    return f"{each.group.name}: {number:,} of {count(whole, 'pod')} {surely} Pending: {each.why}"
