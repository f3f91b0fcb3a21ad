"""``loss --from-objects``: on every node of a cluster."""

from __future__ import annotations

from analyzer.cluster.from_dumps import FromDumps
from analyzer.errors import UsageError
from analyzer.failure.limits import Threshold, is_broken
from analyzer.failure.loss import in_order
from analyzer.failure.loss_at_every_node import LossAtEveryNode, losses_at_every_node
from analyzer.failure.route_loss import Count
from analyzer.inputs.api_objects import ApiObjects
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.value import replace
from analyzer.output import finish
from analyzer.questions.evaluating import dead_of
from analyzer.questions.overruled import overruled
from analyzer.questions.predicting import Everywhere, Shown, everywhere
from analyzer.reports.cluster_answer import LossClusterAnswer
from analyzer.reports.loss_words import by_harm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import SimpleNamespace

    from analyzer.failure.models import Dead


def loss_everywhere(options: SimpleNamespace) -> int:
    """Show what is lost on every node, and return the exit status."""
    objects = ApiObjects(options)
    return loss_of(options, objects, everywhere(options, objects))


def loss_of(options: SimpleNamespace, objects: ApiObjects, found: Everywhere) -> int:
    """Show what is lost on each of these nodes."""
    together = tuple(each.together for each in found.services)
    # What is dead may be of a Service that is not asked about.
    others = found.view.services if len(together) < len(found.view.services) else ()
    shown = replace(found.view, services=(*together, *others))
    died = dead_of(options, Shown(shown, objects.cluster, objects.pods))
    if not died.is_anything:
        is_read = options.verb.startswith("cluster ")
        else_ = f"cluster whatif {found.file}" if is_read else "whatif --from-objects"
        raise UsageError(
            "nothing is marked dead; add --dead-node, --dead-zone or --dead, or see what every "
            f"failure costs: kubeodds {else_}"
        )
    nodes = found.grounds.nodes
    gone = frozenset(name for name in nodes if died.takes(name, objects.cluster))
    # If all nodes are dead, what their rules would do.
    ignored = gone if len(gone) < len(nodes) else frozenset()
    missing = found.grounds.missing if isinstance(found.grounds, FromDumps) else ()
    unread = {name for name in missing if died.takes(name, objects.cluster)}
    every = found
    if ignored or unread:
        # What the rules of a dead node lack cannot lose anybody's flows.
        found = found.but(ignored | unread)
    grounds = found.grounds
    if isinstance(grounds, FromDumps):
        grounds = grounds.but(unread)
    losses = losses_at_every_node(found.services, died, ignored.__contains__, Count(options.count))
    diagnostics = (*found.diagnostics, *overruled(objects.cluster, shown, found.file))
    diagnostics = (*diagnostics, *_warnings(found, died, all_dead=gone > ignored))
    answer = LossClusterAnswer(
        cluster=objects.cluster,
        view=found.view,
        dead=died,
        losses=_ordered(options, losses),
        every_node=found.services,
        prediction=grounds,
        absent=found.absent,
        alive=tuple(name for name in nodes if name not in ignored),
        gone=tuple(sorted(ignored)),
        diagnostics=diagnostics,
        in_order=options.sort is not None,
        every=options.all,
        brief=options.summary,
        narrowed=bool(options.service or options.namespace),
        only_dead=options.count == Count.DEAD.value,
    )
    if found is not every:
        all_alive = {"view": every.view, "absent": every.absent, "prediction": every.grounds}
        answer = replace(answer, if_alive=replace(answer, **all_alive))
    answer = replace(answer, threshold=_threshold(options, answer))
    return finish(options, "loss-cluster", answer, diagnostics, no=is_broken(answer.threshold))


def _ordered(
    options: SimpleNamespace, losses: Sequence[LossAtEveryNode]
) -> tuple[LossAtEveryNode, ...]:
    at = {id(each.worst): each for each in losses}
    worst = [each.worst for each in losses]
    ordered = by_harm(worst) if options.sort is None else in_order(worst, options.sort)
    return tuple(at[id(each)] for each in ordered)


def _threshold(options: SimpleNamespace, answer: LossClusterAnswer) -> Threshold | None:
    most = options.max_loss
    if most is None:
        return None
    beyond = [
        each.worst
        for each in answer.losses
        if any(route.is_lost_beyond(most) for at in each.at for route in at.loss.routes)
    ]
    return Threshold(most=most, beyond=tuple(by_harm(beyond)), is_whole=answer.is_whole)


def _warnings(found: Everywhere, died: Dead, *, all_dead: bool) -> Iterator[Diagnostic]:
    file = found.file

    def told(code: str, says: str) -> Diagnostic:
        return Diagnostic(severity=Severity.WARNING, code=code, message=says, file=file)

    if all_dead:
        whose = "" if found.grounds.is_whole else " whose rules are known"
        says = f"every node{whose} is dead and sends no flows; the numbers are what their rules "
        yield told("node-is-dead", f"{says}would do")
    for name in died.unseen:
        says = f"--dead {name}: no Service of these objects has that endpoint"
        yield told("dead-not-shown", says)
