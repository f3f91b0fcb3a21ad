"""Nodes, and the node of each address, from API objects.

Source: Kubernetes API reference: core/v1 Node, Pod, Endpoints; discovery.k8s.io/v1 EndpointSlice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from analyzer.errors import InputError
from analyzer.model.addresses import Address, network_from_text
from analyzer.model.cluster import Cluster, Node, Owners, Placement, Pods
from analyzer.parsers.api_objects import Object, addresses, at, elements, text
from analyzer.parsers.pods import addresses_of, has_ended, pods_of

#: Kinds of objects that say which node an address is on.
_KINDS: Final = ("Node", "EndpointSlice", "Endpoints", "Pod")

#: Advice for a list without items, and for a table of endpoints alone.
_NO_OBJECTS: Final = (
    "it does not say which address is on which node: add `kubectl get pods -A -o wide`, or use "
    "--node-of CIDR=NODE"
)

_ZONE: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_HOSTNAME: Final = "kubernetes.io/hostname"
_CONTROL_PLANE: Final = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
)


def cluster_of(objects: Sequence[Object], files: str) -> Cluster:
    """Return the nodes in decoded objects, and the node and zone of each address.

    Raises:
        InputError: none of them has any; `files` names their files for the message.
    """
    if not any(item.get("kind") in _KINDS for item in objects):
        why = f"it contains none of {', '.join(_KINDS)}"
        raise InputError(f"{files}: {why if objects else f'{why}; {_NO_OBJECTS}'}")
    nodes = {node.name: node for o in objects if o["kind"] == "Node" for node in [_node(o)]}
    nodes.pop("", None)  # an object without a name is ignored
    placements: dict[Address, Placement] = {}
    # The first object that knows a node wins; EndpointSlices are what kube-proxy itself uses.
    for kind, reader in (
        ("EndpointSlice", _slice),
        ("Endpoints", _endpoints),
        ("Pod", _pod),
    ):
        for item in objects:
            if item.get("kind") == kind:
                for address, node_name, zone in reader(item):
                    _place(placements, address, node_name, zone)
    for node in nodes.values():
        for address in node.addresses:
            _place(placements, address, node.name, node.zone)
    _add_zones(placements, nodes)
    networks = _pod_networks(nodes, placements)
    return Cluster(nodes, placements, pod_networks=networks, pods=Pods(lambda: pods_of(objects)))


def _pod_networks(nodes: dict[str, Node], placements: dict[Address, Placement]) -> Owners:
    """Return the nodes' podCIDRs; none if the CNI plugin does not use them.

    Calico's address management, for example, leaves them unused: then some pod is on another node
    than the podCIDR that its address is in.
    """
    found = Owners.of((n, node.name) for node in nodes.values() for n in node.pod_networks)
    used = all(
        found.owner(address) in {None, where.node}
        for address, where in placements.items()
        if where.node is not None
    )
    return found if used else Owners()


def _place(
    placements: dict[Address, Placement], address: Address, node: str | None, zone: str | None
) -> None:
    known = placements.get(address, Placement(None, None))
    placements[address] = Placement(known.node or node, known.zone or zone)


def _add_zones(placements: dict[Address, Placement], nodes: dict[str, Node]) -> None:
    for address, placement in placements.items():
        node = nodes.get(placement.node or "")
        if placement.zone is None and node is not None:
            placements[address] = Placement(placement.node, node.zone)


def _name(item: Object) -> str | None:
    return text(at(item, "metadata", "name"))


def _node(item: Object) -> Node:
    labels = at(item, "metadata", "labels")
    labels = labels if isinstance(labels, dict) else {}
    listed = elements(item, "status", "addresses")
    internal_first = sorted(listed, key=lambda a: at(a, "type") != "InternalIP")
    cidrs = elements(item, "spec", "podCIDRs") or [at(item, "spec", "podCIDR")]
    networks = (network_from_text(c) for c in cidrs if isinstance(c, str))
    return Node(
        name=_name(item) or "",
        addresses=addresses(at(a, "address") for a in internal_first),
        pod_networks=tuple(n for n in networks if n is not None),
        zone=next((text(labels.get(key)) for key in _ZONE if key in labels), None),
        is_control_plane=any(key in labels for key in _CONTROL_PLANE),
    )


_Placed = Iterator[tuple[Address, str | None, str | None]]


def _slice(item: Object) -> _Placed:
    for endpoint in elements(item, "endpoints"):
        for address in addresses(elements(endpoint, "addresses")):
            yield address, *_place_of(endpoint)


def _place_of(endpoint: object) -> tuple[str | None, str | None]:
    """Return node and zone of an endpoint; discovery.k8s.io/v1beta1 has them in `topology`."""
    topology = at(endpoint, "topology")
    node = text(at(endpoint, "nodeName")) or text(at(topology, _HOSTNAME))
    zones = [at(endpoint, "zone"), *(at(topology, key) for key in _ZONE)]
    return node, next((zone for each in zones if (zone := text(each)) is not None), None)


def _endpoints(item: Object) -> _Placed:
    for subset in elements(item, "subsets"):
        for key in ("addresses", "notReadyAddresses"):
            for entry in elements(subset, key):
                for address in addresses([at(entry, "ip")]):
                    yield address, text(at(entry, "nodeName")), None


def _pod(item: Object) -> _Placed:
    if has_ended(item):
        return  # another pod may have its address by now
    for address in addresses_of(item):
        yield address, text(at(item, "spec", "nodeName")), None
