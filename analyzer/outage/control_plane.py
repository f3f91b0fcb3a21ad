"""Whether the control plane survives node failures: etcd, API, controllers, scheduler.

Theory of operation
===================

etcd answers writes, and linearizable reads, while more than half of its members are alive; without
that kube-apiserver may still answer reads from its cache, but nothing is written. A living API
server helps only if clients can reach it: a load balancer in front may be dead, or be a single
point of failure. Controllers and the scheduler are active on one node at a time; another takes over
when the lease of the election has expired. Endpoints are removed from EndpointSlices, and pods are
replaced, only if all of this holds: `ControlPlaneState.heals`.

What is not known is `Ternary.UNKNOWN`, never an all-clear. Losing more nodes never improves an
answer.

Source: etcd, raft/quorum/majority.go; Kubernetes, staging/src/k8s.io/client-go/tools/
leaderelection/leaderelection.go.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator

from analyzer.model.ternary import Ternary
from analyzer.model.value import value


@enum.unique
class Etcd(enum.Enum):
    """Where etcd members run.

    NODES: on nodes that are known. EXTERNAL: on machines that are no nodes of the cluster, which do
    not fail with them. UNKNOWN: stacked on the control plane's nodes, or external.
    """

    NODES = "nodes"
    EXTERNAL = "external"
    UNKNOWN = "unknown"


@enum.unique
class LoadBalancer(enum.Enum):
    """How clients, foremost kubelets and kube-proxy, reach an API server.

    NONE: there is one API server, which they contact directly. CLIENT_SIDE: each node tries all of
    them. EXTERNAL: something that is not a node. NODES: some nodes, of which one is enough.
    UNKNOWN: there are several API servers, and it is not known what is in front of them.
    """

    NONE = "none"
    CLIENT_SIDE = "client-side"
    EXTERNAL = "external"
    NODES = "nodes"
    UNKNOWN = "unknown"


@enum.unique
class ApiState(enum.Enum):
    """How much of the API still works.

    READ_ONLY: nothing is written, and at best reads from a cache continue. UNKNOWN: it may be up.
    """

    UP = "up"
    READ_ONLY = "read-only"
    DOWN = "down"
    UNKNOWN = "unknown"


@value(kw_only=True)
class ControlPlaneTopology:
    """Which node runs which component.

    Attributes:
        api: nodes with an API server.
        etcd: where its members are; for NODES `members`, for UNKNOWN `members` if it is stacked.
        controllers: nodes with a kube-controller-manager.
        schedulers: nodes with a kube-scheduler.
        balancers: nodes with a load balancer.
        assumed: the assumptions that this depends on.
    """

    api: tuple[str, ...]
    etcd: Etcd
    members: tuple[str, ...]
    controllers: tuple[str, ...]
    schedulers: tuple[str, ...]
    load_balancer: LoadBalancer
    balancers: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes that run any of it, sorted by name."""
        every = (self.api, self.members, self.controllers, self.schedulers, self.balancers)
        return tuple(sorted({name for names in every for name in names}))


@value(kw_only=True)
class ControlPlaneState:
    """What still works of a control plane.

    Attributes:
        api, members, controllers, schedulers: how many are alive, and of how many.
        has_quorum: more than half of etcd's members are alive.
        is_reachable: an API server is alive, and clients can reach it.
        may_elect: an active controller-manager may have died while another is alive: nothing is
            done until that one is elected.
        reasons: why it is not up, or not certainly; empty if it is.
    """

    api: tuple[int, int]
    members: tuple[int, int] | None
    controllers: tuple[int, int]
    schedulers: tuple[int, int]
    has_quorum: Ternary
    is_reachable: Ternary
    may_elect: bool
    reasons: tuple[str, ...]

    @property
    def writes(self) -> Ternary:
        """Whether the API accepts writes."""
        return self.has_quorum & self.is_reachable

    @property
    def heals(self) -> Ternary:
        """Whether dead endpoints are removed from EndpointSlices."""
        return self.writes & Ternary.of(self.controllers[0] > 0)

    @property
    def replaces(self) -> Ternary:
        """Whether pods of dead nodes are replaced on others."""
        return self.heals & Ternary.of(self.schedulers[0] > 0)

    @property
    def state(self) -> ApiState:
        """The state of the API, in a word."""
        if self.is_reachable is Ternary.FALSE:
            return ApiState.DOWN
        match self.writes:
            case Ternary.TRUE:
                return ApiState.UP
            case Ternary.FALSE:
                return ApiState.READ_ONLY
            case Ternary.UNKNOWN:
                return ApiState.UNKNOWN


def quorum(members: int) -> int:
    """Return how many members of etcd have to be alive: 2 of 3, 3 of 4, 3 of 5."""
    return members // 2 + 1


def control_plane_after(
    topology: ControlPlaneTopology, dead: Collection[str], processes: Collection[str] = ()
) -> ControlPlaneState:
    """Return what still works of a control plane with these nodes dead.

    Nodes that carry nothing of it do not count. Of `processes` the API server alone is dead, its
    node lives.
    """
    gone = frozenset(dead)
    lost = gone.union(processes)
    has_quorum = _has_quorum(topology, gone)
    is_reachable = _is_reachable(topology, gone, lost)
    controllers, schedulers = _left(topology.controllers, gone), _left(topology.schedulers, gone)
    return ControlPlaneState(
        api=_left(topology.api, lost),
        members=None if topology.etcd is not Etcd.NODES else _left(topology.members, gone),
        controllers=controllers,
        schedulers=schedulers,
        has_quorum=has_quorum,
        is_reachable=is_reachable,
        may_elect=0 < controllers[0] < controllers[1],
        reasons=tuple(_reasons(topology, gone, lost, has_quorum, is_reachable)),
    )


def survives(topology: ControlPlaneTopology) -> int:
    """Return how many nodes, whichever they are, it can lose with `heals` still true.

    -1 if that is not certain with nothing dead. Each way to break it is to lose a number of nodes
    of one kind: the smallest number decides.
    """
    ways = [len(topology.api), len(topology.controllers)]
    match topology.etcd:
        case Etcd.NODES | Etcd.UNKNOWN:
            ways.append(len(topology.members) - quorum(len(topology.members)) + 1)
        case Etcd.EXTERNAL:
            pass
    match topology.load_balancer:
        case LoadBalancer.NODES:
            ways.append(len(topology.balancers))
        case LoadBalancer.UNKNOWN:
            ways.append(1)  # it may be on the node that fails
        case LoadBalancer.NONE | LoadBalancer.CLIENT_SIDE | LoadBalancer.EXTERNAL:
            pass
    return min(ways) - 1


def _left(names: Collection[str], gone: frozenset[str]) -> tuple[int, int]:
    return len([name for name in names if name not in gone]), len(names)


def _has_quorum(topology: ControlPlaneTopology, gone: frozenset[str]) -> Ternary:
    alive, members = _left(topology.members, gone)
    match topology.etcd:
        case Etcd.EXTERNAL:
            return Ternary.TRUE
        case Etcd.NODES:
            return Ternary.of(alive >= quorum(members))
        case Etcd.UNKNOWN:
            # An external etcd continues, whatever happens to nodes.
            return Ternary.TRUE if alive >= quorum(members) else Ternary.UNKNOWN


def _is_reachable(
    topology: ControlPlaneTopology, gone: frozenset[str], lost: frozenset[str]
) -> Ternary:
    if not _left(topology.api, lost)[0]:
        return Ternary.FALSE
    match topology.load_balancer:
        case LoadBalancer.NODES:
            return Ternary.of(_left(topology.balancers, gone)[0] > 0)
        case LoadBalancer.UNKNOWN:
            return Ternary.of(lost.isdisjoint(topology.nodes)) | Ternary.UNKNOWN
        case LoadBalancer.NONE | LoadBalancer.CLIENT_SIDE | LoadBalancer.EXTERNAL:
            return Ternary.TRUE


def _reasons(
    topology: ControlPlaneTopology,
    gone: frozenset[str],
    lost: frozenset[str],
    has_quorum: Ternary,
    is_reachable: Ternary,
) -> Iterator[str]:
    (api, servers), (alive, members) = _left(topology.api, lost), _left(topology.members, gone)
    if not api:
        what = "the API server is" if servers == 1 else f"all {servers} API servers are"
        yield f"{what} gone"
    elif is_reachable is Ternary.FALSE:
        yield "no load balancer in front of the API servers is left"
    elif is_reachable is Ternary.UNKNOWN:
        yield (
            f"{api} of {servers} API servers left, and the load balancer in front of them is not "
            "known (--api-load-balancer)"
        )
    if has_quorum is Ternary.FALSE:
        yield (
            f"etcd has {alive} of {members} members and needs {quorum(members)}: nothing is "
            "written, and only reads from a cache still work"
        )
    elif has_quorum is Ternary.UNKNOWN:
        yield (
            f"etcd has {alive} of {members} members if it is on the control plane's nodes, and "
            f"needs {quorum(members)} (--etcd)"
        )
    if topology.controllers and not _left(topology.controllers, gone)[0]:
        yield "no kube-controller-manager is left: endpoints are not removed"
    if topology.schedulers and not _left(topology.schedulers, gone)[0]:
        yield "no kube-scheduler is left: pods are not placed"
