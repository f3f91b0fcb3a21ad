"""The outage to simulate: what options say, and what follows from the dead nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from analyzer.errors import UsageError
from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint, ServicePort
from analyzer.model.cluster import Cluster
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value
from analyzer.model.workloads import Workloads
from analyzer.outage.api_servers import is_api
from analyzer.outage.causes import Causes, Outage, Reconciler, dead_nodes
from analyzer.outage.clocks import AT_ONCE, NEVER, Clocks, TimeBounds
from analyzer.outage.control_plane import (
    ApiState,
    ControlPlaneState,
    ControlPlaneTopology,
    control_plane_after,
)
from analyzer.outage.eviction import Rates
from analyzer.outage.timeline import Reboot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: If nothing is known of the control plane.
_NOT_KNOWN: Final = (
    "it is not known whether the control plane is alive; pass --control-plane, or --frozen or "
    "--healing"
)


@value(kw_only=True)
class OutageOptions:
    """The options of an outage, besides what is dead.

    Attributes:
        heals: whether the control plane is alive; None: depends on what is dead.
        api_back: seconds until it is back; None if it does not come back.
        reboots_after: seconds after which the dump's node restarts; None if it does not.
        with_api: endpoints that die with the API.
    """

    heals: bool | None = None
    api_back: Fraction | None = None
    proxy_dead: bool = False
    reboots_after: Fraction | None = None
    with_api: frozenset[Endpoint] = frozenset()
    reconciler: Reconciler = Reconciler.LEASE
    rates: Rates = Rates()
    said: Mapping[str, TimeBounds]


@value
class OutageEvent:
    """What happens in an outage, and when."""

    what: str
    when: TimeBounds


@value(kw_only=True)
class Scenario:
    """An outage to simulate.

    Attributes:
        died: what is dead, including what dies with the API.
        plane: what is left of the control plane; None if not known, or if the options say it.
        unsettled: from when to when living nodes may count as not ready, and their endpoints be
            missing from the rules.
        why: why it does not heal, or is not known to; empty if it does.
        assumed: assumptions about the control plane that this depends on.
    """

    died: Dead
    outage: Outage
    causes: Causes
    clocks: Clocks
    plane: ControlPlaneState | None
    reboot: Reboot | None
    unsettled: tuple[TimeBounds, ...]
    why: tuple[str, ...]
    assumed: tuple[str, ...]
    events: tuple[OutageEvent, ...]


def scenario(
    asked: OutageOptions,
    died: Dead,
    services: Sequence[ServicePort],
    cluster: Cluster,
    topology: ControlPlaneTopology | None,
    workloads: Workloads,
) -> Scenario:
    """Return the outage to simulate.

    Raises:
        UsageError: what was said needs an API that is gone, and it is not.
    """
    nodes = dead_nodes(died, cluster)
    plane = None
    if topology is not None:
        processes = _processes(services, died, cluster)
        plane = control_plane_after(topology, nodes, processes)
    outage, why = _outage(asked, plane, services, died)
    _check(asked, outage)
    carrying = _api_nodes(services, cluster) if topology is None else topology.nodes
    stuck = outage.writes is not Ternary.FALSE and bool(nodes)
    stuck = stuck and (carrying is None or not nodes.isdisjoint(carrying))
    outage = replace(outage, is_stuck=stuck)
    clocks = Clocks(said=asked.said, newest_kubelet=_newest(workloads))
    died = _with_api(died, asked.with_api, outage)
    causes = Causes(died, cluster, workloads, clocks, asked.rates, outage)
    reboot = None
    if asked.reboots_after is not None:
        # Without the API there are no rules; with it, how long a restart takes is not known.
        back = outage.api_back.earliest
        has_rules = None if back is None else max(back, asked.reboots_after)
        reboot = Reboot(at=asked.reboots_after, rules=TimeBounds(has_rules, None))
    return Scenario(
        died=died,
        outage=outage,
        causes=causes,
        clocks=clocks,
        plane=plane,
        reboot=reboot,
        unsettled=_unsettled(outage, clocks),
        why=why,
        assumed=() if topology is None else topology.assumed,
        events=tuple(_events(outage, causes, clocks, services, died.endpoints, reboot)),
    )


def leave_rules(died: Dead, services: Sequence[ServicePort], cluster: Cluster) -> TimeBounds:
    """Return when endpoints of dead nodes leave the rules if the API is up, with all defaults.

    A dead node may have run the active controller manager, unless all API servers are on others.
    """
    ends = [end for each in services if is_api(each) for end in each.endpoints]
    carrying = {cluster.placement(end.address).node for end in ends}
    is_apart = carrying and None not in carrying and carrying.isdisjoint(dead_nodes(died, cluster))
    clocks = Clocks(said={})
    found = clocks.not_ready(may_elect=not is_apart, is_stuck=not is_apart)
    return found + clocks.reaches_rules


def _outage(
    asked: OutageOptions,
    plane: ControlPlaneState | None,
    services: Sequence[ServicePort],
    died: Dead,
) -> tuple[Outage, tuple[str, ...]]:
    back = NEVER if asked.api_back is None else TimeBounds(asked.api_back, asked.api_back)
    outage = Outage(
        writes=Ternary.TRUE,
        heals=Ternary.TRUE,
        replaces=Ternary.TRUE,
        may_elect=plane.may_elect if plane is not None else bool(died.nodes or died.zones),
        api_back=back,
        proxy_dead=asked.proxy_dead,
        with_api=asked.with_api,
        reconciler=asked.reconciler,
    )
    api = [end for each in services if is_api(each) for end in each.endpoints]
    is_gone = bool(api) and died.endpoints.issuperset(api)
    if asked.heals is True:
        if is_gone:
            raise UsageError("--healing: every endpoint of default/kubernetes is dead")
        return outage, ()
    if asked.heals is False:
        return _with(outage, Ternary.FALSE), ("--frozen says so",)
    if plane is not None:
        found = replace(
            outage,
            writes=plane.writes,
            heals=plane.heals,
            replaces=plane.replaces,
        )
        # Without an API the rest does not matter.
        is_down = plane.state is ApiState.DOWN
        return found, plane.reasons[:1] if is_down else plane.reasons
    if is_gone:
        return _with(outage, Ternary.FALSE), ("every endpoint of default/kubernetes is dead",)
    return _with(outage, Ternary.UNKNOWN), (_NOT_KNOWN,)


def _with(outage: Outage, holds: Ternary) -> Outage:
    return replace(outage, writes=holds, heals=holds, replaces=holds)


def _check(asked: OutageOptions, outage: Outage) -> None:
    if outage.replaces is not Ternary.TRUE and outage.writes is not Ternary.TRUE:
        return
    lives = "the API stays up in this outage; --frozen says that it does not"
    for option, is_said in (
        ("--dies-with-api", bool(asked.with_api)),
        ("--reboots-after", asked.reboots_after is not None),
    ):
        if is_said and outage.writes is Ternary.TRUE:
            raise UsageError(f"{option}: {lives}")
    if asked.api_back is not None and outage.replaces is Ternary.TRUE:
        raise UsageError(f"--api-back-after: {lives}")


def _with_api(died: Dead, ends: frozenset[Endpoint], outage: Outage) -> Dead:
    if outage.writes is Ternary.FALSE:
        return replace(died, endpoints=died.endpoints | ends)
    return replace(died, uncertain=died.uncertain | (ends - died.endpoints))


def _processes(services: Iterable[ServicePort], died: Dead, cluster: Cluster) -> list[str]:
    """Return the nodes whose API server alone is dead."""
    dead = [
        end for each in services if is_api(each) for end in each.endpoints if end in died.endpoints
    ]
    found = [cluster.placement(end.address).node for end in dead]
    return [node for node in found if node is not None]


def _api_nodes(services: Iterable[ServicePort], cluster: Cluster) -> tuple[str, ...] | None:
    """Return the nodes of API servers, by their Service; None: not known."""
    ends = [end for each in services if is_api(each) for end in each.endpoints]
    if not ends:
        return None
    found = [cluster.placement(end.address).node for end in ends]
    return tuple(node for node in found if node is not None)


def _unsettled(outage: Outage, clocks: Clocks) -> tuple[TimeBounds, ...]:
    """Return when living nodes may count as not ready: they could not renew their leases."""
    found = []
    if outage.is_stuck and outage.heals is not Ternary.FALSE:
        found.append(clocks.unsettled())
    back = outage.api_back
    if back.earliest is not None and outage.heals is not Ternary.TRUE:
        found.append(TimeBounds(back.earliest, (back + clocks.of("settle")).latest))
    return tuple(each for each in found if each is not None)


def _newest(workloads: Workloads) -> tuple[int, int] | None:
    found = [facts.kubelet for facts in workloads.nodes.values() if facts.kubelet is not None]
    return max(found, default=None)


def _events(
    outage: Outage,
    causes: Causes,
    clocks: Clocks,
    services: Iterable[ServicePort],
    dead: frozenset[Endpoint],
    reboot: Reboot | None,
) -> Iterator[OutageEvent]:
    """Yield what happens to nodes and the control plane, in the order in which it may begin."""
    yield OutageEvent("what is marked dead is dead", AT_ONCE)
    found = []
    if reboot is not None:
        found.append(
            OutageEvent("the dump's node restarts, without rules", TimeBounds(reboot.at, reboot.at))
        )
    if outage.api_back.earliest is not None:
        found.append(OutageEvent("the control plane is back", outage.api_back))
    found += [
        OutageEvent("living nodes too may count as not ready, for a while", each)
        for each in _unsettled(outage, clocks)
    ]
    if outage.may_elect and outage.heals is not Ternary.FALSE:
        found.append(
            OutageEvent("another controller manager is elected, if necessary", clocks.election)
        )
    if causes.nodes:
        ready, tolerates = causes.not_ready, clocks.of("toleration")
        found.append(OutageEvent("pods of dead nodes are marked not ready", ready))
        leave = NEVER if outage.proxy_dead else ready + clocks.reaches_rules
        found.append(OutageEvent("their endpoints leave this node's rules", leave))
        evicted = [causes.evicted(node, tolerates) for node in sorted(causes.nodes)]
        first = evicted[0]
        for each in evicted[1:]:
            first = first | each
        found.append(OutageEvent("they are evicted, and replaced where they can be", first))
    if any(is_api(each) and not dead.isdisjoint(each.endpoints) for each in services):
        lease = outage.reconciler is Reconciler.LEASE and not outage.proxy_dead
        when = causes.api_removed if lease else NEVER
        # Without an API that does not happen; by the time it could they are back.
        if outage.writes is not Ternary.FALSE:
            found.append(OutageEvent("dead API servers leave default/kubernetes", when))
    yield from sorted(found, key=lambda each: _order(each.when))


def _order(when: TimeBounds) -> tuple[bool, Fraction, bool, Fraction]:
    """Return what sorts times: those that never come last."""
    return (
        when.earliest is None,
        when.earliest or Fraction(0),
        when.latest is None,
        when.latest or Fraction(0),
    )
