"""``loss``: from one node's dumps, or those of several nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer.errors import InputError, UsageError
from analyzer.failure.limits import Threshold, is_broken
from analyzer.failure.loss import LossState, ServiceLoss, in_order, losses
from analyzer.failure.loss_at_nodes import WorstLoss, by_service_port, worst_of
from analyzer.failure.route_loss import Count
from analyzer.inputs.files import Member
from analyzer.inputs.nodes import read_nodes
from analyzer.kubeproxy.untold import JudgedInPart
from analyzer.model.addresses import VERSIONS
from analyzer.model.value import replace
from analyzer.output import finish, say
from analyzer.questions.evaluating import (
    check_marked,
    concerning,
    dead_of,
    evaluated_services,
    freshness,
    mismatches,
    warnings_of_dead,
)
from analyzer.questions.next_command import command, dumps_of, joined, words_of_dead
from analyzer.reports.answers import LossAnswer, LossNode, LossNodesAnswer
from analyzer.reports.loss_words import by_harm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.failure.models import Dead
    from analyzer.inputs.nodes import NodeInput
    from analyzer.inputs.recognised import Input
    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.view import ServicePort
    from analyzer.model.diagnostics import Diagnostic

    #: What `evaluated_services` returns.
    AbsentAndEvaluated = tuple[Absent, tuple[ServicePort, ...]]

#: Files that commands to run next read in place of standard input.
_SAVED_DUMP: Final = "dump.txt"
_SAVED_BUNDLE: Final = "bundle.tgz"
#: Why a Service is not judged.
_ONLY_DEAD: Final = "Not judged, since only dumps of dead nodes show it"


def loss(options: SimpleNamespace) -> int:
    """Show what is lost, and return the exit status."""
    if options.from_objects:
        from analyzer.questions.predicting import is_everywhere, predicted_node

        if is_everywhere(options):
            from analyzer.verbs.loss_everywhere import loss_everywhere

            return loss_everywhere(options)
        nodes: Sequence[NodeInput] = (predicted_node(options),)
    else:
        nodes = read_nodes(options)
    if len(nodes) > 1:
        return _at_several(options, nodes)
    (node,) = nodes
    options, given = node.options, node.given
    found = evaluated_services(options, given)
    died = dead_of(options, given)
    check_marked(options, died)
    if not died.is_anything and options.conntrack:
        _propose(options, given)
    diagnostics = (*given.view.diagnostics, *warnings_of_dead(options, given, died))
    answer = _answer(options, given, died, found, diagnostics)
    answer = replace(
        answer,
        typed=_typed(options),
        is_of_bundle=any(isinstance(each, Member) for each in options.dumps),
        threshold=_threshold(options, answer, [answer]),
    )
    return finish(options, options.verb, answer, diagnostics, no=is_broken(answer.threshold))


def _propose(options: SimpleNamespace, given: Input) -> None:
    """Suggest endpoints that look dead in a bundle's conntrack, if none were given as dead."""
    from analyzer.questions.tracking import suggested

    found = suggested(options, given)
    if found:
        say(
            "some endpoints look dead in conntrack (kubeodds suspects); to see what they cost: "
            f"{found}"
        )


def _answer(
    options: SimpleNamespace,
    given: Input,
    died: Dead,
    found: AbsentAndEvaluated,
    diagnostics: tuple[Diagnostic, ...],
) -> LossAnswer:
    absent, services = found
    lost = losses(services, died, Count(options.count))
    why = _unrepairable(options, given, died)
    return LossAnswer(
        cluster=given.cluster,
        view=concerning(options, given.view, absent, services),
        dead=died,
        losses=lost if options.sort is None else in_order(lost, options.sort),
        absent=absent,
        diagnostics=diagnostics,
        in_order=options.sort is not None,
        every=options.all,
        brief=options.summary,
        narrowed=bool(options.service or options.namespace),
        only_dead=options.count == Count.DEAD.value,
        rulesets=tuple(part.ruleset for part in given.parts or (given,)),
        quiet=options.quiet,
        repairs=() if why else _repairs(options, given, lost),
        unrepairable=why,
        saved=_saved(options),
        freshness=freshness(options, given),
    )


def _threshold(
    options: SimpleNamespace, answer: LossAnswer | LossNodesAnswer, at: Iterable[LossAnswer]
) -> Threshold | None:
    """Return ``--max-loss`` and what exceeds it, at any of the nodes."""
    most = options.max_loss
    if most is None:
        return None
    beyond = {
        (each.service.name.text, each.service.protocol, each.service.version): each
        for node in at
        for each in node.losses
        if any(route.is_lost_beyond(most) for route in each.routes)
    }
    return Threshold(most=most, beyond=tuple(by_harm(beyond.values())), is_whole=answer.is_whole)


def _typed(options: SimpleNamespace) -> str:
    """Return the words that ask the same of standard input."""
    # Of a bundle, whose name is what was typed.
    given = {e.bundle if isinstance(e, Member) else e: isinstance(e, Member) for e in options.dumps}
    name, is_bundle = next(iter(given.items()), ("", False))
    alone = len(given) == 1 and (is_bundle or len(options.dumps) == 1)
    if (
        options.format != "text"
        or not alone
        or name not in options.typed
        or any(not isinstance(each, Member) for each in options.others)
    ):
        return ""
    words = [*options.typed]
    if words[:1] != [options.verb]:
        words = [options.verb, *words]
    at = words.index(name, 1)
    # Without an API a new bundle has no objects.
    again = any(isinstance(each, Member) for each in options.objects)
    objects = ["--objects", _SAVED_BUNDLE if name == "-" else name] if again else []
    return joined([*words[:at], "-", *objects, *words[at + 1 :]])


def _saved(options: SimpleNamespace) -> str:
    """Return the name of a file for standard input, which `repair` cannot read again, or nothing.

    Repair and undo need the same dump, and so that of before the repair.
    """
    if "-" not in dumps_of(options):
        return ""
    return _SAVED_BUNDLE if any(isinstance(e, Member) for e in options.dumps) else _SAVED_DUMP


def _unrepairable(options: SimpleNamespace, given: Input, died: Dead) -> str:
    """Return why a repair of these rules is refused, or of no use; or nothing."""
    if options.format != "text" or options.from_objects:
        return ""
    if died.takes(given.view.node, given.cluster):
        return f"this one is from {given.view.node}, which you declared dead"
    from analyzer.questions.repairable import why_not

    return next(filter(None, (why_not(part.ruleset) for part in given.parts or (given,))), "")


def _repairs(options: SimpleNamespace, given: Input, lost: Sequence[ServiceLoss]) -> Sequence[str]:
    """Return the commands that take out what is dead here, one for each dump to change.

    Of dumps of both IP versions, those in which something is to be gained.
    """
    if options.format != "text" or options.from_objects:
        return ()
    dumps = [_saved(options) if each == "-" else each for each in dumps_of(options)]
    hurt = {each.service.version for each in lost if each.state is LossState.DEGRADED}
    families: Sequence[Sequence[str]] = [[]]
    if len(given.parts) > 1:
        families = [["--family", name] for name, of in VERSIONS.items() if of in hurt]
    dead = words_of_dead(options)
    return tuple(command(options, "repair", dumps, [*dead, *each]) for each in families)


# --- several nodes -----------------------------------------------------------------


def _at_several(options: SimpleNamespace, nodes: Sequence[NodeInput]) -> int:
    tried = [_judged_or_why(each) for each in nodes]
    if all(isinstance(each, (InputError, UsageError)) for each in tried):
        raise next(each for each in tried if isinstance(each, (InputError, UsageError)))
    everywhere = _together([each.given for each in nodes])
    died = dead_of(options, everywhere)
    check_marked(options, died)
    # Dead nodes send no flows, unless there are only their dumps.
    living = [each for each in nodes if not died.takes(each.of.node, everywhere.cluster)]
    told = [
        *dict.fromkeys(each for node in nodes for each in node.given.view.diagnostics),
        *(each for node in nodes for each in mismatches(node.given)),
        *warnings_of_dead(options, everywhere, died),
    ]
    if not living:
        for each in nodes:
            told += warnings_of_dead(each.options, each.given, died)
    diagnostics = tuple(dict.fromkeys(told))
    told_of = tuple(
        _node(each, died, found, is_dead=bool(living) and each not in living)
        for each, found in zip(nodes, tried, strict=True)
    )
    only_dead = () if any(each.given.services() for each in nodes) else _only_dead(told_of)
    if only_dead:
        told_of = tuple(_lacking(each, only_dead) for each in told_of)
    answer = LossNodesAnswer(
        nodes=told_of,
        worst=_worst(options, told_of),
        dead=died,
        cluster=everywhere.cluster,
        diagnostics=diagnostics,
        in_order=options.sort is not None,
        every=options.all,
        brief=options.summary,
        narrowed=bool(options.service or options.namespace),
        quiet=options.quiet,
    )
    answer = replace(answer, threshold=_threshold(options, answer, answer.answers.values()))
    return finish(options, "loss-nodes", answer, diagnostics, no=is_broken(answer.threshold))


def _worst(options: SimpleNamespace, nodes: Sequence[LossNode]) -> tuple[WorstLoss, ...]:
    """Return the worst loss of each ServicePort, the greatest harm first or in the given order."""
    told = (each for each in nodes if not each.is_dead)
    found = worst_of({e.name: e.answer.losses for e in told if e.answer is not None})
    at = {id(each.loss): each for each in found}
    lost = [each.loss for each in found]
    ordered = by_harm(lost) if options.sort is None else in_order(lost, options.sort)
    return tuple(at[id(each)] for each in ordered)


def _only_dead(nodes: Sequence[LossNode]) -> tuple[ServicePort, ...]:
    """Return what only dumps of dead nodes show: the rules of the living may just lack it.

    Without objects, which say whether there is such a Service.
    """
    losses = {each.name: each.answer.losses for each in nodes if each.answer is not None}
    living = {each.name for each in nodes if not each.is_dead}
    shown = (each for each in by_service_port(losses) if living.isdisjoint(each))
    found = (next(iter(each.values())).service for each in shown)
    return tuple(each for each in found if not each.is_host_port)


def _lacking(node: LossNode, only_dead: Iterable[ServicePort]) -> LossNode:
    """Return a living node with what its dump lacks as not judged."""
    answer = node.answer
    if node.is_dead or answer is None:
        return node
    lacking = (JudgedInPart(each.name.text, _ONLY_DEAD) for each in only_dead)
    view = replace(answer.view, in_part=(*answer.view.in_part, *lacking))
    return replace(node, answer=replace(answer, view=view))


def _judged_or_why(node: NodeInput) -> AbsentAndEvaluated | InputError | UsageError:
    """Return the plane of a node's dumps, or why there is none: other nodes may have one."""
    try:
        return evaluated_services(node.options, node.given)
    except (InputError, UsageError) as error:
        return error


def _together(given: Sequence[Input]) -> Input:
    """Return what shows all that any of the dumps shows, to ask what can be dead."""
    first = given[0]
    views = [each.view for each in given]
    view = replace(
        first.view,
        node=None,
        services=tuple(service for each in views for service in each.services),
        cut=tuple(version for each in views for version in each.cut),
        untold=tuple(dict.fromkeys(table for each in views for table in each.untold)),
    )
    return replace(first, view=view)


def _node(
    node: NodeInput,
    died: Dead,
    found: AbsentAndEvaluated | InputError | UsageError,
    *,
    is_dead: bool,
) -> LossNode:
    answer = why = None
    if isinstance(found, (InputError, UsageError)):
        why = str(found)
    else:
        of_it = node.given.view.diagnostics
        answer = replace(_answer(node.options, node.given, died, found, of_it), place=node.of.name)
    return LossNode(
        name=node.of.name,
        node=node.of.node,
        files=node.of.files,
        is_dead=is_dead,
        answer=answer,
        why=why,
    )
