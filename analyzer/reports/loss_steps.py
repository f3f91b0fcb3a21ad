"""The next steps after a loss ("What now"), each with its command, greatest loss first.

When a dead node's endpoints leave the rules is said as ``timeline`` says it (analyzer/outage). A
readiness probe fails after 30 s unless it says otherwise (``periodSeconds`` 10,
``failureThreshold`` 3; Kubernetes, pkg/apis/core/v1/defaults.go). conntrack keeps a flow at its
endpoint for as long as it keeps trying: retries from one port never help (docs/semantics.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.conntrack_command import delete_command
from analyzer.failure.loss import LossState, ServiceLoss, service_loss
from analyzer.model.addresses import network_from_text as network
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import value
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.loss_words import by_harm
from analyzer.reports.phrases import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_API: Final = "default/kubernetes"
#: Most names that are shown unless all are requested.
_MOST: Final = 2


@value
class _Step:
    """What to do, the commands that do it, and notes on these.

    Attributes:
        alone: whether the commands go on lines of their own.
        all: whether all commands are needed, so that none is left to ``--all``.
        open: whether the list of commands is incomplete.
    """

    says: str
    commands: tuple[str, ...] = ()
    behind: str = ""
    alone: bool = False
    all: bool = False
    open: bool = False


def steps(answer: LossAnswer) -> Iterator[Line]:
    """Yield the steps for ServicePorts that certainly lose flows; nothing if none do."""
    hurt = [
        e for e in by_harm(answer.losses) if e.state in {LossState.SILENCED, LossState.DEGRADED}
    ]
    if not hurt:
        return
    yield Line((Span("What now", Style.STRONG),))
    dying = [e for e in hurt if any(route.on_dead.lower for route in e.routes)]
    # Nothing takes a dead pod out of the rules of its hostPorts, which are not kube-proxy's.
    heals = () if all(each.service.is_host_port for each in dying) else _heals(answer)
    told = [*heals, *_take_out(answer, dying), *_pinned(dying), *_taken(hurt), *_again(answer)]
    for number, step in enumerate(told, 1):
        yield from _lines(number, step, every=answer.every)


def _lines(number: int, step: _Step, *, every: bool) -> Iterator[Line]:
    """Yield the lines of a step: its first command, or all of them."""
    every = every or step.all
    first, others = step.commands[:1], step.commands[1:]
    number_of = "" if step.open else f"{len(others):,} "
    more = f"{number_of}more with --all" if others and not every else ""
    head = f"{number}. {step.says}"
    if step.alone and more and not step.behind:  # a first screen has few lines
        head, more = f"{head.removesuffix(':')} ({more}):", ""
    behind = "; ".join(each for each in (step.behind, more) if each)
    commands = [Span(each, Style.STRONG) for each in (step.commands if every else first)]
    if step.alone or len(commands) > 1:
        yield Line((head,))
        for command in commands:
            yield Line((command,), whole=True)
        if behind:
            yield Line((Span(f"   ({behind})", Style.FAINT),))
        return
    told = Span(f"  ({behind})" if behind else "", Style.FAINT)
    yield Line((f"{head} ", *commands, told) if commands else (head,), whole=bool(commands))


def _heals(answer: LossAnswer) -> Iterator[_Step]:
    """Say what heals by itself, and when."""
    if _without_api(answer):
        says = "No API server left, so nothing heals by itself:"
        yield _Step(says, ("kubectl get --raw /readyz",))
    elif answer.dead.nodes or answer.dead.zones:
        from analyzer.outage.scenario import leave_rules
        from analyzer.reports.times import span

        when = span(leave_rules(answer.dead, answer.view.services, answer.cluster))
        says = f"If the API is up, wait {when}; watch:"
        yield _Step(says, ("kubectl get nodes",))
    else:
        pods = [each for each in answer.dead.named if "/" in each and network(each) is None]
        commands = tuple(f"kubectl -n {ns} delete pod {pod}" for ns, _, pod in _parted(pods))
        removes = (
            "If the API is up, a dead pod's readiness probe, if it has one, removes it in 30 s"
        )
        if commands:
            yield _Step(f"{removes}; without one:", commands, alone=True)
        else:
            yield _Step(f"{removes}; watch:", ("kubectl get pods -A -o wide",), alone=True)


def _parted(pods: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    return (each.partition("/") for each in pods)


def _without_api(answer: LossAnswer) -> bool:
    """Return whether every API server that pods can reach is dead."""
    api = [e for e in answer.view.services if f"{e.name.text}:".startswith(f"{_API}:")]
    return any(service_loss(each, answer.dead).state is LossState.SILENCED for each in api)


def _take_out(answer: LossAnswer, hurt: Sequence[ServiceLoss]) -> Iterator[_Step]:
    """Say how to do without an API: who needs a pod elsewhere, and what takes the dead out."""
    silenced = [
        each.service
        for each in hurt
        if each.state is LossState.SILENCED
        and len(each.dead) == len(each.service.endpoints)
        and not f"{each.service.name.text}:".startswith(f"{_API}:")
    ]
    # The rules of a node send flows to its hostPorts to its own pods, and to no other's.
    own = [each for each in silenced if each.is_host_port]
    others = [each for each in silenced if not each.is_host_port]
    for lost, where in ((others, "another node"), (own, "the same node")):
        names = list(dict.fromkeys(map(named, lost)))
        if not names:
            continue
        more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
        namespaces = {each.name.namespace for each in lost}
        namespace = namespaces.pop() if len(namespaces) == 1 else None
        # kubectl takes -n before its verb, and -A only after it.
        listed = f"kubectl -n {namespace} get pods" if namespace else "kubectl get pods -A"
        says = (
            f"No living endpoint: {', '.join(names[:_MOST])}{more}. Start a pod on {where}; where "
            "they are now:"
        )
        yield _Step(says, (f"{listed} -o wide",), alone=True)
    at = f"; this is {answer.place}'s" if answer.place else ""
    if not any(each.state is LossState.DEGRADED for each in hurt):
        return
    if answer.unrepairable:
        yield _Step(f"API down: kubeodds repair needs another dump: {answer.unrepairable}.")
    if answer.repairs:
        save = f"first save as {answer.saved} what you passed to standard input; "
        each = "each " if answer.repairs[1:] else ""
        yield _Step(
            "API down: remove dead endpoints from each node's rules, using its own dump:",
            tuple(answer.repairs),
            f"{save if answer.saved else ''}{each}prints what to apply, and how to undo it{at}",
            alone=True,
            all=True,
        )


def _pinned(hurt: Sequence[ServiceLoss]) -> Iterator[_Step]:
    """Say which flows stay pinned, and how to free them, where a living endpoint is left.

    UDP first: its retries come from one port, as those of DNS do, so it never ends by timeout.
    """
    degraded = [each for each in hurt if each.state is LossState.DEGRADED]
    udp_first = sorted(degraded, key=lambda each: each.service.protocol != "udp")
    commands = dict.fromkeys(
        delete_command(each.service.protocol, end) for each in udp_first for end in each.dead
    )
    if commands:
        yield _Step("Free pinned flows on each node:", tuple(commands), alone=True)


def _taken(hurt: Sequence[ServiceLoss]) -> Iterator[_Step]:
    """Say which ServicePorts lose flows that nothing of the above brings back."""
    losing = [
        named(each.service)
        for each in hurt
        if any(share.lower for route in each.routes for _, share in route.otherwise)
    ]
    names = list(dict.fromkeys(losing))
    if names:
        more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
        told = ", ".join(names[:_MOST])
        yield _Step(f"{told}{more}: flows are lost to the rules named above until these change.")


def _again(answer: LossAnswer) -> Iterator[_Step]:
    """Say how to see what is left."""
    if not answer.typed:
        return
    if answer.is_of_bundle:
        take = f"kubeodds collect | ssh {answer.view.node or 'NODE'} 'sudo sh -s -- -'"
        yield _Step("Check again:", (f"{take} | kubeodds {answer.typed}",), alone=True)
        return
    if len(answer.rulesets) != 1:
        return
    (ruleset,) = answer.rulesets
    take = ruleset.save if isinstance(ruleset, Ruleset) else "nft list ruleset"
    yield _Step("Check again:", (f"{take} | kubeodds {answer.typed}",))
