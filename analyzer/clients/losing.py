"""Which ServicePort each client connects to where none is named: the one it fails most often.

Clients fail differently: retries help against silence but not if session affinity holds them to one
endpoint, and some clients go to the pods themselves, whatever the rules draw. So each is evaluated
on its own; ServicePorts that draw alike are evaluated once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from analyzer.clients.connect import ResponseCounts, connect, connect_to_pods
from analyzer.clients.connectors import Connector, To
from analyzer.clients.plan import Finished, OperationResult, Plan
from analyzer.clients.target import ClientTarget, Pins
from analyzer.clients.walk import Walk
from analyzer.clients.world import World
from analyzer.kubeproxy.view import FrontendKind, ServicePort, Source
from analyzer.model.ternary import Ternary
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final, TypeAlias

    from analyzer.clients.responses import Lot

    #: How often it fails at most and at least, and then how long it waits at most and at least.
    _Harm: TypeAlias = tuple[Fraction, Fraction, Fraction, Fraction]

#: Most endpoints of which it is evaluated whether rules end flows to them; a walk takes 1 ms.
_MOST_WALKED: Final = 2_000


@value(kw_only=True)
class LosingMost:
    """The choice.

    Attributes:
        reached: for each client the ServicePort that it fails most often to reach, and of several
            that for which it waits longest.
        number: among how many.
        others: those of which clients that rules single out may lose more than any other.
        beyond: those that were left out: from outside, a ClusterIP is reached only by an extra
            route to it.
        walks_all: whether it is known of all pods if rules end flows to them.
    """

    reached: Sequence[tuple[Connector, ServicePort]]
    number: int
    others: Sequence[ServicePort]
    beyond: Sequence[ServicePort]
    walks_all: bool


def losing_most(
    connectors: Sequence[Connector], services: Sequence[ServicePort], world: World
) -> LosingMost:
    """Return which of the ServicePorts, of which there are some, each client fails most often."""
    beyond = [each for each in services if _is_inside(each, world)]
    if len(beyond) < len(services):
        left_out = set(map(id, beyond))
        services = [each for each in services if id(each) not in left_out]
    else:
        beyond = []
    services = sorted(services, key=lambda each: each.name.text)
    lost = world.lost(services)
    most = max(own for own, _ in lost)
    losing = [each for each, (own, _) in zip(services, lost, strict=True) if own]
    to_pods = any(each.to is To.PODS for each in connectors)
    # Neither the rules nor the objects have an endpoint of the others, whatever is dead.
    served = [each for each in services if to_pods and (each.endpoints or world.ready(each))]
    walks_all = sum(len(each.endpoints) for each in served) <= _MOST_WALKED
    pods = [world.pods(each, walks=walks_all or world.is_stopped(each)) for each in served]
    targets = world.targets(losing) if any(each.to is To.SERVICE for each in connectors) else []
    reached = []
    for each in connectors:
        among = losing if each.to is To.SERVICE else served
        found = _of_targets(each, targets) if each.to is To.SERVICE else _of_pods(each, pods)
        worst = max(range(len(among)), key=found.__getitem__, default=None)
        reached.append((each, services[0] if worst is None else among[worst]))
    return LosingMost(
        reached=reached,
        number=len(services),
        others=[each for each, (_, of) in zip(services, lost, strict=True) if of > most],
        beyond=beyond,
        walks_all=walks_all,
    )


def _is_inside(service: ServicePort, world: World) -> bool:
    """Return whether a client outside the cluster would have to call a ClusterIP."""
    is_outside = world.source is Source.EXTERNAL
    return is_outside and world.route(service).frontend.kind is FrontendKind.CLUSTER_IP


def _of_targets(connector: Connector, targets: Sequence[ClientTarget]) -> list[_Harm]:
    """Return what a client suffers that connects to each of these."""
    known: dict[tuple[Lot, Ternary], _Harm] = {}
    for each in targets:
        if (each.lot, each.affine) not in known:
            known[each.lot, each.affine] = _harm(connect(connector, each, (), _ends))
    return [known[each.lot, each.affine] for each in targets]


def _of_pods(
    connector: Connector, pods: Sequence[tuple[ResponseCounts, ResponseCounts]]
) -> list[_Harm]:
    """Return the same of pods of which some are certainly, and some perhaps, dead."""
    keys = [tuple(frozenset(each.items()) for each in both) for both in pods]
    known: dict[Hashable, _Harm] = {}
    for key, (sure, perhaps) in zip(keys, pods, strict=True):
        if key not in known:
            known[key] = _harm(connect_to_pods(connector, sure, perhaps, (), _ends))
    return [known[key] for key in keys]


def _harm(plan: Plan) -> _Harm:
    walk = Walk(plan)
    return *walk.fails()[::-1], *walk.delay()[::-1]


def _ends(result: OperationResult, _: Pins) -> Plan:
    return Finished(result)
