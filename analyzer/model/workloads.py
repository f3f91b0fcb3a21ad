"""What manages endpoints according to the Kubernetes API, and whether they are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from analyzer.model.addresses import Address
from analyzer.model.ternary import Ternary
from analyzer.model.value import value


@value(kw_only=True)
class Workload:
    """One pod, as far as its replacement goes.

    Attributes:
        owner: the kind of its controller: ReplicaSet, DaemonSet, Node of static pods; None: none.
        tolerates: seconds for which it stays on a node that is unreachable; None: for ever.
        is_bound: whether it can run on that node alone, as with a volume that is local to it;
            UNKNOWN: something restricts where it may run, or is not in the objects.
    """

    owner: str | None
    tolerates: int | None
    is_bound: Ternary


@value(kw_only=True)
class ServiceFacts:
    """What of a Service decides how long dead endpoints stay.

    Attributes:
        has_selector: its endpoints are found by Kubernetes; else somebody writes them.
        publishes_not_ready: ``publishNotReadyAddresses``.
        by_hand: addresses in EndpointSlices that no controller manages, or that mirror Endpoints.
        by_others: addresses in those that some other controller manages.
    """

    has_selector: bool
    publishes_not_ready: bool
    by_hand: frozenset[Address] = frozenset()
    by_others: frozenset[Address] = frozenset()


@value(kw_only=True)
class NodeFacts:
    """What of a Node decides how fast its pods are given up.

    Attributes:
        zone: what eviction rates go by; empty without zones.
        may_be_deleted: a cloud made it, and may delete its Node with its machine.
        counts: it counts for the health of its zone.
        kubelet: the version of its kubelet, as (1, 36); None: not known.
    """

    zone: str
    may_be_deleted: bool
    counts: bool
    kubelet: tuple[int, int] | None


@value(kw_only=True)
class Workloads:
    """All of it: pods and Services by ``namespace/name``, Nodes by name."""

    pods: Mapping[str, Workload] = MappingProxyType({})
    services: Mapping[str, ServiceFacts] = MappingProxyType({})
    nodes: Mapping[str, NodeFacts] = MappingProxyType({})
