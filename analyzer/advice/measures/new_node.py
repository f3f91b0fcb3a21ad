"""One more node, without any pods yet."""

from __future__ import annotations

from typing import Any

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.advice.objects import nodes_of
from analyzer.advice.takers import FreeAddresses
from analyzer.model.addresses import address_from_text
from analyzer.model.value import replace
from analyzer.parsers.api_objects import Object, at, elements


def change(situation: ClusterState, _key: NamespacedName) -> ClusterState | Refused:
    """Return a situation with one more node, in no zone."""
    nodes = nodes_of(situation.items)
    if not nodes:
        return Refused("the objects have no nodes")
    name = unused("new-node", nodes)
    like = nodes[max(nodes)]
    made = node_like(like, name, FreeAddresses(situation.items), {})
    return replace(situation, items=[*situation.items, made])


def unused(name: str, known: Any) -> str:
    """Return a name that no object has: this one, or with a number appended."""
    number, found = 1, name
    while found in known:
        number += 1
        found = f"{name}-{number}"
    return found


def node_like(node: Object, name: str, free: FreeAddresses, labels: dict[str, str]) -> Object:
    """Return a copy of a Node with its own name, addresses and these labels."""
    listed = []
    for each in elements(node, "status", "addresses"):
        address = address_from_text(str(at(each, "address")))
        if address is not None:
            listed.append({"type": at(each, "type"), "address": str(free.new("", address))})
    info = at(node, "status", "nodeInfo")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {},
        "status": {
            "addresses": [*listed, {"type": "Hostname", "address": name}],
            **({"nodeInfo": info} if info else {}),
        },
    }


MEASURE = Measure(
    name="new-node",
    says="one more node, empty",
    subject=Subject.SERVICE,
    change=change,
)
