"""More control-plane nodes, up to a given number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analyzer.advice.measure import API, ChangeObjects, ClusterState, NamespacedName, Refused
from analyzer.advice.measures.new_node import node_like, unused
from analyzer.advice.objects import address_of, mapping, nodes_of, slices_of, with_slices
from analyzer.advice.takers import FreeAddresses
from analyzer.model.value import replace
from analyzer.outage.topologies import EXTERNAL, GivenTopology
from analyzer.parsers.api_objects import Object, at, elements, text
from analyzer.parsers.roles import roles_of

_ROLES = "node-role.kubernetes.io/"
_COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def masters(number: int) -> ChangeObjects:
    """Return a measure that gives the cluster `number` control-plane nodes."""

    def change(situation: ClusterState, _key: NamespacedName) -> ClusterState | Refused:
        roles = roles_of(situation.items)
        now = sorted(set(situation.said.control_plane or roles.api or roles.control_plane))
        nodes = nodes_of(situation.items)
        if not now or now[0] not in nodes:
            return Refused("no node has the control plane's role label; --control-plane names them")
        if len(now) >= number:
            return Refused(f"{len(now):,} nodes already carry the control plane")
        for _ in range(number - len(now)):
            situation = _one_more(situation, nodes[now[0]])
        return situation

    return change


def _one_more(situation: ClusterState, first: Object) -> ClusterState:
    free = FreeAddresses(situation.items)
    old = str(at(first, "metadata", "name"))
    name = unused(old, nodes_of(situation.items))
    labels = mapping(at(first, "metadata", "labels"))
    roles = {k: v for k, v in labels.items() if k.startswith(_ROLES)}
    made = node_like(first, name, free, roles)
    address = at(made["status"]["addresses"][0], "address")
    items = [*situation.items, made, *_static_pods(situation.items, old, name, address)]
    slices = [_with_server(each, made) for each in slices_of(items, API)]
    if slices:
        items = with_slices(items, API, slices)
    return replace(situation, items=items, said=_said(situation.said, name))


def _static_pods(items: Sequence[Object], old: str, name: str, address: Any) -> list[Object]:
    """Return copies of the pods of the control plane, where they are listed."""
    return [
        {
            **item,
            "metadata": {**item["metadata"], "name": f"{at(item, 'metadata', 'name')}-{name}"},
            "spec": {**item["spec"], "nodeName": name},
            "status": {"phase": "Running", "podIP": address, "hostIP": address},
        }
        for item in items
        if item.get("kind") == "Pod"
        and at(item, "metadata", "labels", "component") in _COMPONENTS
        and text(at(item, "spec", "nodeName")) == old
    ]


def _with_server(item: Object, node: Object) -> Object:
    """Return a slice of default/kubernetes with the API server of a node more."""
    listed = elements(item, "endpoints")
    first = next(filter(mapping, listed), {"conditions": {"ready": True}})
    known = address_of(first)
    family = None if known is None else known.version
    for each in elements(node, "status", "addresses"):
        found = address_of({"addresses": [at(each, "address")]})
        if found is not None and family in (None, found.version):
            kept = {k: v for k, v in first.items() if k not in ("nodeName", "targetRef", "zone")}
            new = {**kept, "addresses": [str(found)]}
            return {**item, "endpoints": [*listed, new]}
    return item


def _said(said: GivenTopology, name: str) -> GivenTopology:
    etcd = said.etcd
    if said.control_plane:
        said = replace(said, control_plane=(*said.control_plane, name))
    if etcd and etcd != (EXTERNAL,):
        said = replace(said, etcd=(*etcd, name))
    return said
