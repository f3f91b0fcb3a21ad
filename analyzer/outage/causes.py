"""Why an endpoint is dead, and so when rules drop it and when a pod replaces it."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction

from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint, ServicePort
from analyzer.model.cluster import Cluster
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.model.workloads import ManagedPod, NodeFacts, ServiceFacts, Workloads
from analyzer.outage.api_servers import is_api
from analyzer.outage.clocks import ANY_TIME, NEVER, Clocks, TimeBounds
from analyzer.outage.eviction import Rates, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@enum.unique
class Cause(enum.Enum):
    """The owner of a dead endpoint, which decides how it is replaced."""

    REPLACED = "pods that are replaced elsewhere"
    DAEMON_SET = "DaemonSet: not moved"
    STATEFUL_SET = "StatefulSet: not moved while its Node object exists"
    STATIC = "static pods: not moved"
    BARE = "pods without a controller: not replaced"
    BOUND = "pods with a volume of their node: not moved"
    UNREADY = "publishNotReadyAddresses: stays while the pod's object does"
    BY_HAND = "manually managed endpoints: stay"
    OTHERS = "endpoints managed by another controller: not known"
    API = "API servers: a lease of their own"
    ALONE = "dead on a living node: its readiness probe decides"
    WITH_API = "dies with the API, and comes back after it"
    UNLISTED = "pods that no object lists: possibly replaced"
    UNKNOWN = "not known what manages them, or where they are"


@enum.unique
class Reconciler(enum.Enum):
    """How API servers maintain the endpoints of default/kubernetes.

    MASTER_COUNT: by a configured number of API servers; dead ones stay. The default up to 1.8.
    Source: Kubernetes, pkg/controlplane/reconcilers/instancecount.go.
    """

    LEASE = "lease"
    MASTER_COUNT = "master-count"


@value(kw_only=True)
class Replacement:
    """When one dead endpoint leaves the rules and is replaced, in seconds from the start.

    Attributes:
        removed: rules no longer lead to it.
        replaced: rules lead to a pod in its place.
        returns: it is alive again itself.
    """

    cause: Cause
    removed: TimeBounds
    replaced: TimeBounds
    returns: TimeBounds = NEVER


@value(kw_only=True)
class Outage:
    """What happens, besides which nodes are dead.

    Attributes:
        writes: the API is written: default/kubernetes goes on.
        heals: and controllers work.
        replaces: and the scheduler does.
        may_elect: a controller may have to be elected first.
        is_stuck: a node of the control plane is dead that others may wait for.
        api_back: seconds until the control plane is whole again; None: not as long as this is
            looked at.
        proxy_dead: kube-proxy of the dump's node is dead: its rules stay as they are.
        with_api: endpoints that die with the API.
    """

    writes: Ternary
    heals: Ternary
    replaces: Ternary
    may_elect: bool = False
    is_stuck: bool = False
    api_back: TimeBounds = NEVER
    proxy_dead: bool = False
    with_api: frozenset[Endpoint] = frozenset()
    reconciler: Reconciler = Reconciler.LEASE


#: Seconds that pods tolerate which do not say it themselves: what ``--toleration`` is about.
#: Source: plugin/pkg/admission/defaulttolerationseconds/admission.go.
_BY_DEFAULT: Final = 300
#: Kinds of owners that replace a pod that is gone.
_REPLACING: Final = ("ReplicaSet", "ReplicationController")


class Causes:
    """Determines the fate of each dead endpoint."""

    def __init__(
        self,
        died: Dead,
        cluster: Cluster,
        workloads: Workloads,
        clocks: Clocks,
        rates: Rates,
        outage: Outage,
    ) -> None:
        self._died = died
        self._cluster = cluster
        self._workloads = workloads
        self._clocks = clocks
        self._outage = outage
        self.rates = rates
        self.nodes = dead_nodes(died, cluster)
        self._waits = waits(self.nodes, workloads.nodes, rates)
        self.all_dead = bool(workloads.nodes) and set(workloads.nodes) <= self.nodes
        stuck = outage.is_stuck
        normal = clocks.not_ready(may_elect=outage.may_elect, is_stuck=stuck)
        #: When pods of dead nodes are marked not ready, and when default/kubernetes changes.
        self.not_ready = self._healing(outage.heals, normal, clocks.after_outage())
        # By the time the API is back leases may have expired, or the API servers are back.
        gone = TimeBounds(Fraction(0), clocks.api_removed().latest)
        self.api_removed = self._healing(outage.writes, clocks.api_removed(is_stuck=stuck), gone)

    def fates(self, service: ServicePort, dead: Iterable[Endpoint]) -> dict[Endpoint, Replacement]:
        """Return the fates of dead endpoints of a ServicePort."""
        return {end: self._frozen_by_proxy(self._fate(service, end)) for end in dead}

    def evicted(self, node: str | None, tolerates: TimeBounds) -> TimeBounds:
        """Return when pods of a dead node are deleted, given their tolerationSeconds."""
        facts = self._workloads.nodes.get(node or "")
        waiting = self._waits.get(node or "", ANY_TIME)
        found = self.not_ready + self._clocks.tainted(waiting) + tolerates
        found += TimeBounds(ANY_TIME.earliest, self._clocks.of("latency").latest)
        if facts is None or facts.may_be_deleted:
            # The Node may be deleted with its machine, and its pods with it.
            return found | TimeBounds(self.not_ready.earliest, found.latest)
        return found

    def _healing(self, holds: Ternary, normal: TimeBounds, after: TimeBounds) -> TimeBounds:
        """Return when something happens that takes a control plane."""
        match holds:
            case Ternary.TRUE:
                return normal
            case Ternary.FALSE:
                return self._outage.api_back + after
            case Ternary.UNKNOWN:
                late = (self._outage.api_back + after) | normal
                # A controller that was never away is as fast as ever.
                return TimeBounds(normal.earliest, late.latest)

    def _frozen_by_proxy(self, fate: Replacement) -> Replacement:
        """Return what the rules show if kube-proxy no longer writes them."""
        if not self._outage.proxy_dead:
            return fate
        return Replacement(cause=fate.cause, removed=NEVER, replaced=NEVER, returns=fate.returns)

    def _fate(self, service: ServicePort, end: Endpoint) -> Replacement:
        if end in self._outage.with_api:
            back = self._outage.api_back.perhaps()
            return Replacement(cause=Cause.WITH_API, removed=back, replaced=NEVER, returns=back)
        if is_api(service):
            return self._of_api()
        facts = self._workloads.services.get(f"{service.name.namespace}/{service.name.service}")
        if facts is None:
            return self._open(Cause.UNKNOWN)
        if not facts.has_selector or end.address in facts.by_hand:
            return Replacement(cause=Cause.BY_HAND, removed=NEVER, replaced=NEVER)
        if end.address in facts.by_others:
            return self._open(Cause.OTHERS)
        node = self._cluster.placement(end.address).node
        if node not in self.nodes:
            alone = node is not None and end in self._died.endpoints
            return self._open(Cause.ALONE if alone else Cause.UNKNOWN)
        return self._of_pod(facts, end, node)

    def _of_api(self) -> Replacement:
        """Return what happens to an API server; those that are back are endpoints again."""
        lease = self._outage.reconciler is Reconciler.LEASE
        removed = self.api_removed if lease else NEVER
        returns = self._outage.api_back + TimeBounds(Fraction(0), self._clocks.api_removed().latest)
        if self._outage.writes is Ternary.FALSE and returns != NEVER:
            return Replacement(cause=Cause.API, removed=NEVER, replaced=NEVER, returns=returns)
        return Replacement(
            cause=Cause.API, removed=removed, replaced=NEVER, returns=returns.perhaps()
        )

    def _open(self, cause: Cause) -> Replacement:
        """Return the replacement if nothing is known: any time, except while nothing is written."""
        earliest = ANY_TIME
        if self._outage.writes is Ternary.FALSE:
            earliest = TimeBounds(self._outage.api_back.earliest, None)
        return Replacement(cause=cause, removed=earliest, replaced=earliest)

    def _of_pod(self, facts: ServiceFacts, end: Endpoint, node: str | None) -> Replacement:
        removed = self.not_ready + self._clocks.reaches_rules
        name = self._cluster.pods.of(end.address, end.port)
        pod = self._workloads.pods.get(name or "")
        cause, replaced = self._replaced(pod, node)
        if facts.publishes_not_ready:
            stays = self._node(node)
            deleted = self.not_ready.earliest if stays is None or stays.may_be_deleted else None
            return Replacement(
                cause=Cause.UNREADY, removed=TimeBounds(deleted, None), replaced=replaced
            )
        return Replacement(cause=cause, removed=removed, replaced=replaced)

    def _node(self, name: str | None) -> NodeFacts | None:
        return self._workloads.nodes.get(name or "")

    def _replaced(self, pod: ManagedPod | None, node: str | None) -> tuple[Cause, TimeBounds]:
        if self.all_dead:
            return Cause.UNLISTED if pod is None else _cause(pod), NEVER
        tolerates = self._clocks.of("toleration")
        if pod is None:
            return Cause.UNLISTED, self._comes(TimeBounds(self.not_ready.earliest, None))
        if pod.tolerates is None:
            tolerates = NEVER
        elif pod.tolerates != _BY_DEFAULT:
            tolerates = TimeBounds(Fraction(pod.tolerates), Fraction(pod.tolerates))
        comes = self._comes(self.evicted(node, tolerates))
        cause = _cause(pod)
        match cause:
            case Cause.REPLACED:
                known = pod.owner in _REPLACING and pod.is_bound is Ternary.FALSE
                return cause, comes if known else comes.perhaps()
            case Cause.STATEFUL_SET:
                facts = self._node(node)
                stays = facts is not None and not facts.may_be_deleted
                return cause, NEVER if stays else comes.perhaps()
            case _:
                return cause, NEVER

    def _comes(self, evicted: TimeBounds) -> TimeBounds:
        """Return when rules lead to a pod in the place of one that is evicted."""
        if self._outage.replaces is not Ternary.TRUE:
            later = self._outage.api_back if self._outage.replaces is Ternary.FALSE else ANY_TIME
            evicted = TimeBounds(_later(evicted.earliest, later.earliest), None)
        latency = TimeBounds(ANY_TIME.earliest, self._clocks.of("latency").latest)
        return evicted + latency + self._clocks.of("start-up") + self._clocks.reaches_rules


def dead_nodes(died: Dead, cluster: Cluster) -> frozenset[str]:
    """Return the nodes that are dead, alone or with their zone."""
    of_zones = [name for name in cluster.node_names if cluster.zone_of(name) in died.zones]
    return frozenset([*died.nodes, *(of_zones if died.zones else ())])


def by_cause(
    fates: Mapping[Endpoint, Replacement],
) -> Iterator[tuple[Replacement, Collection[Endpoint]]]:
    """Yield each fate with its endpoints, those with most endpoints first."""
    found: dict[tuple[object, ...], tuple[Replacement, list[Endpoint]]] = {}
    for end, fate in fates.items():
        spans = fate.removed, fate.replaced, fate.returns
        key = fate.cause, *((span.earliest, span.latest) for span in spans)
        found.setdefault(key, (fate, []))[1].append(end)
    yield from sorted(found.values(), key=lambda each: (-len(each[1]), each[0].cause.value))


def _cause(pod: ManagedPod) -> Cause:
    match pod.owner:
        case "DaemonSet":
            return Cause.DAEMON_SET
        case "StatefulSet":
            return Cause.BOUND if pod.is_bound is Ternary.TRUE else Cause.STATEFUL_SET
        case "Node":
            return Cause.STATIC
        case None:
            return Cause.BARE
        case _:
            return Cause.BOUND if pod.is_bound is Ternary.TRUE else Cause.REPLACED


def _later(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    """Return the later of two times, of which None is never."""
    return None if one is None or other is None else max(one, other)
