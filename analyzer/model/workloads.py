"""What manages endpoints according to the Kubernetes API, and whether they are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from analyzer.model.addresses import Address
from analyzer.model.ternary import Ternary
from analyzer.model.value import value


@value(kw_only=True)
class ManagedPod:
    """One pod, as far as its replacement is concerned.

    Attributes:
        owner: the kind of its controller: ReplicaSet, DaemonSet, Node for static pods; None if it
            has none.
        tolerates: seconds that it stays on an unreachable node; None forever.
        is_bound: whether it can run only on that node, for example because of a local volume;
            UNKNOWN if something restricts where it may run, or is not among the objects.
    """

    owner: str | None
    tolerates: int | None
    is_bound: Ternary


@value(kw_only=True)
class ServiceFacts:
    """Properties of a Service that decide how long dead endpoints stay.

    Attributes:
        has_selector: Kubernetes finds its endpoints; otherwise someone else writes them.
        publishes_not_ready: ``publishNotReadyAddresses``.
        by_hand: addresses in EndpointSlices that no controller manages, or that mirror Endpoints.
        by_others: addresses in those that another controller manages.
    """

    has_selector: bool
    publishes_not_ready: bool
    by_hand: frozenset[Address] = frozenset()
    by_others: frozenset[Address] = frozenset()


@value(kw_only=True)
class NodeFacts:
    """Properties of a Node that decide how fast its pods are evicted.

    Attributes:
        zone: the zone for eviction rates; empty without zones.
        may_be_deleted: a cloud provider created it, and may delete the Node with its machine.
        counts: it counts for the health of its zone.
        kubelet: the version of its kubelet, for example (1, 36); None if not known.
    """

    zone: str
    may_be_deleted: bool
    counts: bool
    kubelet: tuple[int, int] | None


@value(kw_only=True)
class Workloads:
    """All of these: pods and Services by ``namespace/name``, Nodes by name."""

    pods: Mapping[str, ManagedPod] = MappingProxyType({})
    services: Mapping[str, ServiceFacts] = MappingProxyType({})
    nodes: Mapping[str, NodeFacts] = MappingProxyType({})
