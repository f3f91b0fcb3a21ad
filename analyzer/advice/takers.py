"""Which nodes can run a pod of a Service, as far as objects show; and addresses for new pods.

Source: Kubernetes, pkg/scheduler/framework/plugins: nodeunschedulable, tainttoleration and
nodeaffinity. Other obstacles (requests, volumes, affinity) are not considered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from analyzer.advice.objects import mapping, nodes_of
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.value import value
from analyzer.parsers.api_objects import Object, addresses, at, elements, is_ready, text
from analyzer.parsers.kubernetes import cluster_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: Key, value and effect.
    Taint: TypeAlias = tuple[str, str, str]

_KEPT_OUT: Final = ("NoSchedule", "NoExecute")
#: The first addresses of a node's network are its bridge's.
_FIRST: Final = 2
_MOST_LOOKED_AT: Final = 4096


@value(kw_only=True)
class Takers:
    """Nodes that can run pods of a Service.

    Attributes:
        names: of those that can take one, in the order of their names.
        refused: of the others each with the reason.
    """

    names: tuple[str, ...]
    refused: Mapping[str, str]


def takers(
    items: Sequence[Object], now: Iterable[str], addresses_now: Collection[Address] = ()
) -> Takers:
    """Return the nodes that can run a pod besides those in `now`, at these addresses.

    Which taints are tolerated pods say, where any of them is among the objects; else those are
    that a node has where such a pod runs.
    """
    nodes = nodes_of(items)
    there = [name for name in dict.fromkeys(now) if name in nodes]
    pods = [pod for pod in items if _is_one_of(pod, addresses_now)]
    known = {taint for name in there for taint in _taints(nodes[name])}
    refused: dict[str, str] = {}
    for name, node in nodes.items():
        if name in there:
            continue
        keeping = [
            taint
            for taint in _taints(node)
            if not (all(_tolerates(pod, taint) for pod in pods) if pods else taint in known)
        ]
        if not all(_selects(pod, node) for pod in pods):
            refused[name] = "without a label that the pods select"
        elif at(node, "spec", "unschedulable") is True:
            refused[name] = "cordoned"
        elif not is_ready(node):
            refused[name] = "not ready"
        elif keeping:
            key, _, effect = keeping[0]
            refused[name] = f"tainted {key}:{effect}"
    return Takers(names=tuple(sorted(n for n in nodes if n not in refused)), refused=refused)


def _is_one_of(pod: Object, known: Collection[Address]) -> bool:
    if pod.get("kind") != "Pod" or not known:
        return False
    listed = [at(each, "ip") for each in elements(pod, "status", "podIPs")]
    return any(each in known for each in addresses(listed or [at(pod, "status", "podIP")]))


def _selects(pod: Object, node: Object) -> bool:
    """Return whether a node has all labels that a pod asks for."""
    labels = mapping(at(node, "metadata", "labels"))
    wanted = mapping(at(pod, "spec", "nodeSelector"))
    return all(labels.get(key) == value for key, value in wanted.items())


def _tolerates(pod: Object, taint: Taint) -> bool:
    """Return whether a pod tolerates a taint."""
    return any(tolerates(each, taint) for each in elements(pod, "spec", "tolerations"))


def tolerates(toleration: object, taint: Taint) -> bool:
    """Return whether a toleration matches a taint.

    Source: Kubernetes, staging/src/k8s.io/api/core/v1/toleration.go, ``ToleratesTaint``.
    """
    key, value, effect = taint
    if (at(toleration, "effect") or effect) != effect or (at(toleration, "key") or key) != key:
        return False
    operator = at(toleration, "operator") or "Equal"
    return operator == "Exists" or (
        operator == "Equal" and (at(toleration, "value") or "") == value
    )


def _taints(node: Object) -> list[Taint]:
    found = []
    for each in elements(node, "spec", "taints"):
        effect = text(at(each, "effect")) or ""
        if effect in _KEPT_OUT:
            found.append((text(at(each, "key")) or "", text(at(each, "value")) or "", effect))
    return found


class FreeAddresses:
    """Allocates addresses that no object has."""

    #: The objects that were used last, with which several measures begin. By identity; they are
    #: kept, so that no other object gets their identity.
    _last: tuple[Sequence[Object], Cluster, frozenset[Address]] | None = None

    def __init__(self, items: Sequence[Object]) -> None:
        last = FreeAddresses._last
        if last is None or last[0] is not items:
            cluster = cluster_of(items, "objects")
            last = FreeAddresses._last = items, cluster, frozenset(_taken(items, cluster))
        _, self.cluster, taken = last
        self._taken = set(taken)
        self._own = {name: frozenset(node.addresses) for name, node in self.cluster.nodes.items()}

    def is_of_node(self, address: Address) -> bool:
        """Return whether an address is a node's own, as for hostNetwork pods."""
        return any(address in own for own in self._own.values())

    def of_node(self, node: str, family: int) -> Address | None:
        """Return a node's own address."""
        known = self.cluster.nodes.get(node)
        listed = () if known is None else known.addresses
        return next((each for each in listed if each.version == family), None)

    def new(self, node: str, like: Address) -> Address:
        """Return an address in the node's pod network, or else the next free one after `like`."""
        known = self.cluster.nodes.get(node)
        networks = () if known is None else known.pod_networks
        if self.cluster.pod_networks.by_length:  # else the network plugin does not go by them
            for network in (each for each in networks if each.version == like.version):
                most = min(network.num_addresses, _MOST_LOOKED_AT)
                for number in range(min(_FIRST, most - 1), most):
                    if network[number] not in self._taken:
                        return self._take(network[number])
        found = like
        while found in self._taken:
            found = type(like)((int(found) + 1) % (1 << like.max_prefixlen))
        return self._take(found)

    def _take(self, address: Address) -> Address:
        self._taken.add(address)
        return address


def _taken(items: Iterable[Object], cluster: Cluster) -> Iterator[Address]:
    """Yield the addresses that objects have."""
    yield from cluster.placements
    for item in items:
        if item.get("kind") == "Service":
            spec = at(item, "spec")
            yield from addresses([at(spec, "clusterIP"), *elements(spec, "clusterIPs")])
        elif item.get("kind") == "Pod":
            yield from addresses([at(item, "status", "podIP")])


def control_plane_of(items: Iterable[Object]) -> tuple[str, ...]:
    """Return the nodes with a control-plane role label, sorted by name."""
    from analyzer.parsers.roles import roles_of

    return tuple(sorted(roles_of([i for i in items if i.get("kind") == "Node"]).control_plane))
