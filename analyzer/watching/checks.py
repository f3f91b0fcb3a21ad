"""One check of a node's rules: losses, and differences from the objects.

Theory of operation
===================

Rules are read as a whole at each check that finds them changed. Each ServicePort then has a digest
(`cluster.content`); as long as that and what is dead stay the same, so does its loss, and the last
result is reused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from analyzer.cluster.content import Encoder
from analyzer.cluster.reference import service_port_key
from analyzer.errors import AnalyzerError, InputError, UsageError
from analyzer.failure.limits import allowed
from analyzer.failure.loss import service_losses
from analyzer.failure.models import Dead
from analyzer.inputs.whole import read_whole, rules_of
from analyzer.model.probability import Bounds, capped_sum
from analyzer.model.value import replace, value
from analyzer.questions.evaluating import dead_of, evaluated_services
from analyzer.reports.json_values import family
from analyzer.reports.not_judged import not_judged
from analyzer.reports.watch_answer import CheckResult, Seen, numbered
from analyzer.watching.drifting import Drifting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace

    from analyzer.cluster.reference import ServicePortKey
    from analyzer.failure.loss import ServiceLoss
    from analyzer.failure.route_loss import RouteLoss
    from analyzer.inputs.api_objects import ApiObjects
    from analyzer.inputs.files import Member
    from analyzer.inputs.recognised import Input
    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.grouping import NameAndProtocol
    from analyzer.kubeproxy.view import ServicePort


class LookError(AnalyzerError):
    """A check that failed; `failure` is one of `reports.watch_answer.FAILURES`."""

    def __init__(self, failure: str, why: str) -> None:
        super().__init__(why)
        self.failure = failure


@value
class LastResult:
    """A ServicePort at the last check: its digest, and its result."""

    digest: str
    seen: Seen


class Checker:
    """Repeatedly evaluates rules with the same options and objects.

    Attributes:
        known: the result of each ServicePort at the last check.
        died: what was dead then.
    """

    def __init__(
        self,
        options: SimpleNamespace,
        objects: ApiObjects,
        known: Mapping[ServicePortKey, LastResult],
        died: Dead | None,
    ) -> None:
        self._options = options
        self._objects = objects
        self._drifting = Drifting(options, objects)
        self.known = known
        self.died = died

    def check(
        self, found: Sequence[Member], dead: Mapping[str, Sequence[str]], at: float
    ) -> CheckResult:
        """Return the result for rules; `dead` are values of the options that mark as dead.

        Raises:
            LookError: nothing can be judged.
        """
        options = type(self._options)(**{**vars(self._options), "dumps": [*found], **dead})
        try:
            given = read_whole(options, self._objects)
        except (AnalyzerError, OSError) as error:
            raise LookError("rules", str(error)) from None
        try:
            absent, services = evaluated_services(options, given)
        except (InputError, UsageError) as error:
            raise LookError("no-services", str(error)) from None
        try:
            is_said = any(dead.values())
            died = dead_of(options, given, may_be_gone=True) if is_said else _NONE_DEAD
        except (InputError, UsageError) as error:
            raise LookError("dead", str(error)) from None
        encoder = Encoder()
        digests = {service_port_key(each): encoder.encode(each) for each in given.view.services}
        seen = self._seen(services, digests, died, at)
        return self._with_drift(given, absent, seen, digests, died)

    def _seen(
        self,
        services: Sequence[ServicePort],
        digests: Mapping[ServicePortKey, str],
        died: Dead,
        at: float,
    ) -> tuple[Seen, ...]:
        """Return the results of each ServicePort, except for drift."""
        most = Fraction(0) if self._options.max_loss is None else self._options.max_loss
        is_same = self.died == died
        before = self.known
        known: dict[ServicePortKey, LastResult] = {}
        anew: list[ServicePort] = []
        for each in services:
            key = service_port_key(each)
            old = before.get(key)
            if is_same and old is not None and old.digest == digests[key] and key not in known:
                known[key] = old
            else:
                anew.append(each)
        for lost in service_losses(anew, died):
            key = service_port_key(lost.service)
            old = before.get(key)
            digest = digests[key]
            since = old.seen.since if old is not None and old.digest == digest else at
            unread = () if died.is_anything else _unread(lost)
            known[key] = LastResult(digest, _of(lost, most, since, unread))
        self.known, self.died = known, died
        return tuple([known[key].seen for key in dict.fromkeys(map(service_port_key, services))])

    def _with_drift(
        self,
        given: Input,
        absent: Absent,
        seen: Sequence[Seen],
        digests: Mapping[ServicePortKey, str],
        died: Dead,
    ) -> CheckResult:
        of_names: dict[NameAndProtocol, dict[int | None, str]] = {}
        for (name, protocol, version), digest in digests.items():
            of_names.setdefault((name, protocol), {})[version] = digest
        found = self._drifting.of(given, of_names)
        kinds: Counter[str] = Counter()
        drifted: dict[NameAndProtocol, int] = {}
        unknown: tuple[str, ...] = ()
        if not isinstance(found, str):
            shown = {each.name for each in seen} | {each.name.text for each in absent.lacking}
            every = not (self._options.service or self._options.namespace)
            kinds.update(each.drift.value for each in found.of_node)
            for whose, of_service in found.of_services.items():
                if every or whose[0] in shown:
                    kinds.update(each.drift.value for each in of_service)
                    drifted[whose] = len(of_service)
            unknown = tuple(each for each in found.not_judged if every or each in shown)
        left_out = not_judged(given.view, absent)
        return CheckResult(
            rules=rules_of(given),
            services=tuple(
                [
                    replace(each, drift=number)
                    if (number := drifted.get((each.name, each.protocol), 0))
                    else each
                    for each in seen
                ]
            ),
            not_judged=left_out,
            is_whole=not left_out and not given.view.lacks_some,
            drift=None if isinstance(found, str) else kinds,
            drifted=drifted,
            why_no_drift=found if isinstance(found, str) else "",
            drift_unknown=unknown,
            dead=len(died.endpoints),
            gone=died.unseen,
            number=numbered(),
        )


_NONE_DEAD = Dead(endpoints=frozenset())


def _unread(lost: ServiceLoss) -> Sequence[RouteLoss]:
    """Return the routes of which the rules leave open where some flows end.

    If anything is dead, their losses contain what may be lost there. If nothing is, they do not:
    but flows that may end anywhere are not known to be answered.
    """
    return [each for each in lost.routes if each.route.unresolved]


def _of(
    lost: ServiceLoss, most: Fraction, since: float | None, unread: Sequence[RouteLoss]
) -> Seen:
    service, loss = lost.service, lost.worst
    uppers = [capped_sum((each.loss.upper, each.route.unresolved)) for each in unread]
    return Seen(
        name=service.name.text,
        namespace=service.name.namespace or "",
        protocol=service.protocol,
        family=family(service.version) or "",
        state=lost.state,
        endpoints=len(service.endpoints),
        dead=len(lost.dead),
        loss=Bounds(loss.lower, max(loss.upper, *uppers)) if uppers else loss,
        beyond=any(each.is_lost_beyond(most) for each in lost.routes)
        or any(upper.as_fraction() > most for upper in uppers),
        surely=any(
            each.loss.lower.as_fraction() > allowed(most, len(each.route.shares))
            for each in lost.routes
            if each.loss.lower
        ),
        since=since,
    )


def names_of_dead(text: str) -> Iterator[tuple[str, str]]:
    """Yield option and value for each line of a file of dead marks.

    A line is a value of ``--dead``, or ``node NAME`` or ``zone NAME``; ``#`` begins a comment.

    Raises:
        UsageError: a line is none of these.
    """
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        match words:
            case []:
                continue
            case ["node", name]:
                yield "dead_node", name
            case ["zone", name]:
                yield "dead_zone", name
            case [name]:
                yield "dead", name
            case _:
                raise UsageError(
                    f"line {number}: {line.strip()!r} is not IP[:PORT], CIDR, ns/pod, `node NAME` "
                    "or `zone NAME`"
                )
