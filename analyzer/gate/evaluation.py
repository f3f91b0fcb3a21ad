"""The evaluation of manifests: what the worst placement of each Service loses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from analyzer.failure.thresholds import Breach, breaches
from analyzer.failure.whatif import FailureKind
from analyzer.gate.cases import Case, CaseEvaluator
from analyzer.gate.every import Ended
from analyzer.gate.expected import expected_end
from analyzer.gate.failing import Failing
from analyzer.gate.problem import Problem
from analyzer.gate.scaling import scaled_placements
from analyzer.gate.services import GatedService
from analyzer.gate.worst import Placements, candidates
from analyzer.model.probability import ALWAYS
from analyzer.model.value import value


@value
class Thresholds:
    """What is required: the most that a failure may cost, the node failures to survive."""

    max_loss: Fraction | None = None
    min_survives: int | None = None

    @property
    def are_any(self) -> bool:
        """Whether any threshold was given."""
        return self.max_loss is not None or self.min_survives is not None


@value(kw_only=True)
class WorstCase:
    """The worst placement in one respect.

    Attributes:
        kind: of failure; None for the placement on the fewest nodes, which survives least.
        most: if it is not proven that no other is worse, the highest share of the pods that the
            failing nodes may have; else None.
        surely: if that is not proven, how many nodes it survives in any case.
    """

    kind: FailureKind | None
    case: Case
    most: Fraction | None = None
    surely: int = 0

    @property
    def is_proven(self) -> bool:
        """Whether it is proven that no placement is worse."""
        return self.most is None


@value(kw_only=True)
class Violation:
    """How a Service exceeds a threshold.

    Attributes:
        breach: as `whatif` has it; None if no placement that was found breaks it, and it is not
            proven that none does.
    """

    found: WorstCase
    breach: Breach | None


@value(kw_only=True)
class EvaluatedService:
    """A Service, and its worst placements.

    Attributes:
        worst: for each kind of failure.
        fewest: the placement that survives least.
        expected: the one by the scheduler's scores.
        violations: of the given thresholds.
    """

    service: GatedService
    placements: Placements
    worst: tuple[WorstCase, ...]
    fewest: WorstCase
    expected: Case
    violations: tuple[Violation, ...] = ()

    @property
    def dropping(self) -> int:
        """Nodes that drop its flows without any failure, at the placement with most of them."""
        return max(c.dropping for c in (self.expected, *(each.case for each in self.worst)))

    @property
    def pending(self) -> int:
        """The fewest of its pods that are unschedulable, over all placements."""
        return self.placements.pending[0]


def evaluated(
    problem: Problem,
    services: Sequence[GatedService],
    failing: Failing,
    evaluator: CaseEvaluator,
    thresholds: Thresholds,
) -> list[EvaluatedService]:
    """Return the worst placements of each Service."""
    expected = expected_end(problem)
    known: dict[tuple[int, ...], Placements] = {}
    odd = {each.groups for each in services if each.prefers_places}
    for each in services:
        if each.groups not in known:
            want_every = each.groups in odd
            known[each.groups] = scaled_placements(
                problem, each.groups, failing, want_every=want_every
            )
    asked = [(each, end) for each in services for end in _asked(each, known[each.groups], expected)]
    cases = evaluator.cases(asked)
    of = {id(each): [case for case in cases if case.service is each] for each in services}
    return [
        _evaluated(each, known[each.groups], of[id(each)], failing, thresholds) for each in services
    ]


def evaluated_with(
    service: GatedService,
    found: Placements,
    problem: Problem,
    failing: Failing,
    evaluator: CaseEvaluator,
    thresholds: Thresholds,
) -> EvaluatedService:
    """Return the worst of these placements of one Service."""
    ends = [*_asked(service, found, expected_end(problem))]
    cases = evaluator.cases([(service, end) for end in ends])
    return _evaluated(service, found, cases, failing, thresholds)


def _asked(service: GatedService, found: Placements, expected: Ended) -> Iterator[Ended]:
    """Yield the placements of a Service that are evaluated, the expected one first."""
    yield expected
    if service.prefers_places and found.every is not None:
        yield from found.every
    else:
        yield from candidates(found)


def _evaluated(
    service: GatedService,
    found: Placements,
    cases: Sequence[Case],
    failing: Failing,
    thresholds: Thresholds,
) -> EvaluatedService:
    expected, *others = cases
    worst = tuple(_worst(kind, service, found, [*others, expected]) for kind in failing.kinds)
    fewest = _fewest(service, found, [*others, expected])
    return EvaluatedService(
        service=service,
        placements=found,
        worst=worst,
        fewest=fewest,
        expected=expected,
        violations=tuple(_violations([*worst, fewest], thresholds)),
    )


def _worst(
    kind: FailureKind, service: GatedService, found: Placements, cases: Sequence[Case]
) -> WorstCase:
    """Return the case that loses most by a kind of failure, as `what_if` says it."""
    case = max(cases, key=lambda each: _rank(each, kind))
    known = found.worst[kind]
    if case.found is None or case.loss(kind).lower == ALWAYS:
        return WorstCase(kind=kind, case=case)  # no more can be lost
    if not known.most:
        most = None  # whatever the rules prefer, no pod is on what fails
    elif service.is_local and service.is_inside:
        # Nodes send flows to endpoints of their own: all is well while one of them is alive.
        most = None if known.is_proven or known.most < 1 else known.most
    elif service.prefers_places:
        most = None if found.every is not None else Fraction(1)
    else:
        most = None if known.is_proven else known.most
    return WorstCase(kind=kind, case=case, most=most)


def _rank(case: Case, kind: FailureKind) -> tuple[bool, Fraction]:
    return case.found is None, case.loss(kind).upper.as_fraction()


def _fewest(service: GatedService, found: Placements, cases: Sequence[Case]) -> WorstCase:
    case = min(cases, key=lambda each: each.survives)
    is_known = not service.prefers_places or found.every is not None
    if case.survives <= 0 or (is_known and found.is_fewest_proven):
        return WorstCase(kind=None, case=case)
    return WorstCase(kind=None, case=case, most=Fraction(1), surely=found.surely if is_known else 0)


def _violations(found: Iterable[WorstCase], thresholds: Thresholds) -> Iterator[Violation]:
    for each in found:
        if each.case.found is None:
            # Nothing can be lost if there is nothing to serve.
            if thresholds.are_any:
                yield Violation(found=each, breach=None)
            continue
        if each.kind is None:
            if thresholds.min_survives is None:
                continue
            told = [*breaches(each.case.found, min_survives=thresholds.min_survives)]
            is_open = not each.is_proven and each.surely < thresholds.min_survives
        else:
            if thresholds.max_loss is None:
                continue
            every = breaches(each.case.found, max_loss=thresholds.max_loss)
            told = [breach for breach in every if breach.kind is each.kind]
            is_open = each.most is not None and each.most > thresholds.max_loss
        if told:
            yield Violation(found=each, breach=told[0])
        elif is_open:
            yield Violation(found=each, breach=None)
