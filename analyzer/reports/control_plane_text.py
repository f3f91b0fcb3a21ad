"""The control plane in reports of `whatif`: a word for each failure, and a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.whatif import Failure, FailureKind
from analyzer.model.ternary import Ternary
from analyzer.outage.control_plane import (
    ApiState,
    ControlPlaneState,
    ControlPlaneTopology,
    Etcd,
    LoadBalancer,
    control_plane_after,
    survives,
)
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_WORDS: Final = {
    ApiState.UP: ("up", Style.GOOD),
    ApiState.READ_ONLY: ("no writes", Style.BAD),
    ApiState.DOWN: ("down", Style.BAD),
    ApiState.UNKNOWN: ("?", Style.WARNING),
}


def word(plane: ControlPlaneState | None) -> Span | str:
    """Return how much of the API still works, in a word; nothing if not known."""
    if plane is None:
        return ""
    text, style = _WORDS[plane.state]
    return Span(text, style)


def lines(answer: WhatIfAnswer, shown: Sequence[Failure]) -> Iterator[Line]:
    """Yield what the control plane survives, and the cost of its failure."""
    found = answer.topology
    if found is None:
        says = "Control plane: not known, since no node has its role label. Pass --control-plane."
        yield Line((Span(says, Style.WARNING),))
        return
    yield Line((f"Control plane: {made_of(found)}; {survival(found)}.",))
    yield from _doubts(answer, shown)
    yield from _processes(answer)
    for each in found.assumed:
        yield Line((Span(f"  Assumed: {each}.", Style.FAINT),))


def _doubts(answer: WhatIfAnswer, shown: Sequence[Failure]) -> Iterator[Line]:
    """Yield why the API is neither up nor down, of the first failure of each such kind."""
    told: set[ApiState] = set()
    for failure in shown:
        plane = answer.control_plane_after(failure)
        if plane is None or plane.state not in {ApiState.READ_ONLY, ApiState.UNKNOWN}:
            continue
        if plane.state not in told:
            told.add(plane.state)
            text, _ = _WORDS[plane.state]
            zone = "zone " if failure.kind is FailureKind.ZONE else ""
            who = f"{zone}{' + '.join(failure.names)}"
            yield Line((f"  {text} with {who} gone: {'; '.join(plane.reasons)}.",))


def made_of(found: ControlPlaneTopology) -> str:
    """Return the components of a control plane, in a few words."""
    parts = [f"{count(len(found.api), 'API server')} ({listed(found.api)})"]
    match found.etcd:
        case Etcd.NODES:
            where = "there" if found.members == found.api else listed(found.members)
            parts.append(f"{count(len(found.members), 'etcd member')} {where}")
        case Etcd.EXTERNAL:
            parts.append("etcd outside the cluster")
        case Etcd.UNKNOWN:
            parts.append("location of etcd not known")
    match found.load_balancer:
        case LoadBalancer.NONE:
            pass
        case LoadBalancer.CLIENT_SIDE:
            parts.append("a load balancer on each node")
        case LoadBalancer.EXTERNAL:
            parts.append("one load balancer in front")
        case LoadBalancer.NODES:
            parts.append(f"load balancers on {listed(found.balancers)}")
        case LoadBalancer.UNKNOWN:
            parts.append("load balancer not known")
    return ", ".join(parts)


def survival(found: ControlPlaneTopology) -> str:
    """Return which failures a control plane survives, as a clause."""
    number = survives(found)
    if number > 0:
        return f"it survives the loss of any {count(number, 'node')}"
    open_ends = found.load_balancer is LoadBalancer.UNKNOWN or found.etcd is Etcd.UNKNOWN
    if open_ends and len(found.api) > 1:
        return "it is not known to survive the loss of any node"
    points = [
        name for name in found.nodes if control_plane_after(found, (name,)).heals is Ternary.FALSE
    ]
    return f"it does not survive the loss of {listed(points)}"


def _processes(answer: WhatIfAnswer) -> Iterator[Line]:
    """Yield the cost of the death of one API server's process alone: the worst of them."""
    worst = max(
        answer.api_processes,
        key=lambda each: (each.loss.worst.upper, each.loss.worst.lower),
        default=None,
    )
    if worst is None:
        return
    where = f"on {worst.node}" if worst.node else f"at {worst.endpoint}"
    says = (
        f"  Losing only the API server's process {where}, with its node alive, costs "
        f"{worst.loss.service.name.text} {bounds_percent(worst.loss.worst)}, and no other Service"
    )
    only = answer.topology is not None and len(answer.topology.api) == 1
    yield Line((f"{says}; nothing heals in the meantime." if only else f"{says}.",))
