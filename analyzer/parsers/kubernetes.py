"""API objects as ``kubectl get ... -o json`` prints them: a List, or single objects.

Source: Kubernetes API reference: core/v1 Node, Pod, Endpoints; discovery.k8s.io/v1 EndpointSlice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from analyzer.errors import InputError, ParseError
from analyzer.model.cluster import Cluster, Node, Placement
from analyzer.model.diagnostics import Location
from analyzer.model.packet import Address, address_from_text, network_from_text
from analyzer.parsers.compression import decompress

#: What one JSON object holds; anything else in it is passed over.
_Object = dict[str, Any]

#: What says where an address lives.
_KINDS: Final = ("Node", "EndpointSlice", "Endpoints", "Pod")

_ZONE: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_CONTROL_PLANE: Final = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
)


def parse_objects(files: Sequence[tuple[str, bytes]]) -> Cluster:
    """Read the objects of all `files`, given as name and content.

    Raises:
        InputError: a file is no list of API objects, or holds none that we use.
        ParseError: a file is no JSON.
    """
    objects = [item for file, data in files for item in _items(data, file)]
    if not any(item.get("kind") in _KINDS for item in objects):
        kinds = ", ".join(_KINDS)
        raise InputError(f"{', '.join(name for name, _ in files)}: none of {kinds} is in there")
    nodes = {node.name: node for o in objects if o["kind"] == "Node" for node in [_node(o)]}
    nodes.pop("", None)  # an object without a name is none
    placements: dict[Address, Placement] = {}
    # The first that knows a node wins; slices are what kube-proxy itself looks at.
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
    return Cluster(nodes, placements)


def holds_objects(data: bytes) -> bool:
    """Tell whether a file looks as if it held API objects, without reading it as JSON."""
    try:
        return b'"kind"' in decompress(data)
    except InputError:
        return True  # who reads it says what is wrong


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


def _items(data: bytes, file: str) -> list[_Object]:
    try:
        text = decompress(data).decode("utf-8", "surrogateescape")
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1]
        raise ParseError(
            f"not JSON ({error.msg}); expected the output of "
            "`kubectl get services,endpointslices,nodes,pods -A -o json`",
            location=Location(file, error.lineno),
            line=line,
            span=(error.colno - 1, error.colno),
        ) from None
    except ValueError:  # an integer of thousands of digits
        raise InputError(f"{file}: a number in it is too long") from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply to be API objects") from None
    items = value.get("items") if isinstance(value, dict) and "items" in value else [value]
    if not isinstance(items, list) or not all(
        isinstance(item, dict) and isinstance(item.get("kind"), str) for item in items
    ):
        raise InputError(
            f"{file}: no list of API objects; expected the output of "
            "`kubectl get services,endpointslices,nodes,pods -A -o json`"
        )
    return items


def _at(value: object, *path: str) -> Any:
    """Return what stands at `path`, or None where a step is missing or null."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _list(value: object, *path: str) -> list[Any]:
    found = _at(value, *path)
    return found if isinstance(found, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _addresses(texts: Iterable[object]) -> tuple[Address, ...]:
    found = (address_from_text(t) for t in texts if isinstance(t, str))
    return tuple(a for a in found if a is not None)


def _name(item: _Object) -> str | None:
    return _text(_at(item, "metadata", "name"))


def _node(item: _Object) -> Node:
    labels = _at(item, "metadata", "labels")
    labels = labels if isinstance(labels, dict) else {}
    listed = _list(item, "status", "addresses")
    internal_first = sorted(listed, key=lambda a: _at(a, "type") != "InternalIP")
    cidrs = _list(item, "spec", "podCIDRs") or [_at(item, "spec", "podCIDR")]
    networks = (network_from_text(c) for c in cidrs if isinstance(c, str))
    return Node(
        name=_name(item) or "",
        addresses=_addresses(_at(a, "address") for a in internal_first),
        pod_networks=tuple(n for n in networks if n is not None),
        zone=next((_text(labels.get(key)) for key in _ZONE if key in labels), None),
        is_control_plane=any(key in labels for key in _CONTROL_PLANE),
    )


_Placed = Iterator[tuple[Address, str | None, str | None]]


def _slice(item: _Object) -> _Placed:
    for endpoint in _list(item, "endpoints"):
        for address in _addresses(_list(endpoint, "addresses")):
            yield address, _text(_at(endpoint, "nodeName")), _text(_at(endpoint, "zone"))


def _endpoints(item: _Object) -> _Placed:
    for subset in _list(item, "subsets"):
        for key in ("addresses", "notReadyAddresses"):
            for entry in _list(subset, key):
                for address in _addresses([_at(entry, "ip")]):
                    yield address, _text(_at(entry, "nodeName")), None


def _pod(item: _Object) -> _Placed:
    listed = [_at(entry, "ip") for entry in _list(item, "status", "podIPs")]
    for address in _addresses(listed or [_at(item, "status", "podIP")]):
        yield address, _text(_at(item, "spec", "nodeName")), None
