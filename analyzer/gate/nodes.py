"""Nodes to place pods on: those of a cluster, or of a cluster that is only described.

A description is ``3xzone=a,3xzone=b+cpu=4+memory=16Gi,1xcontrol-plane``: how many, and what each of
them has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analyzer.errors import UsageError
from analyzer.gate.labels import labels_of
from analyzer.gate.quantities import quantity
from analyzer.model.value import value
from analyzer.parsers.api_objects import Object, at, elements, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: Key, value and effect.
    Taint: TypeAlias = tuple[str, str, str]

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
_GROUP: Final = re.compile(r"([0-9]+)x(.+)?", re.DOTALL)
_MOST: Final = 5_000
_RESOURCES: Final = ("cpu", "memory", "pods")
#: Labels that are usually written by their last part.
_SHORT: Final = frozenset({"zone", "region"})
_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
#: Source: API reference, core/v1 Node; names are those of DNS.
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?")
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,300}[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


@value(kw_only=True)
class SchedulingNode:
    """What the scheduler considers of a node.

    Attributes:
        taints: all of them, that of ``spec.unschedulable`` included.
        room: allocatable amounts by resource; None if it does not say.
        item: the Node itself.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    room: Mapping[str, int] | None
    item: Object


def is_description(text: str) -> bool:
    """Return whether a value of ``--nodes`` describes nodes rather than naming a file.

    A number alone is meant so too, though the ``x`` is missing.
    """
    return text.isdecimal() or _GROUP.fullmatch(text) is not None


def described(groups: Sequence[str]) -> list[Object]:
    """Return the Nodes of a description's groups.

    Raises:
        UsageError: a group is malformed.
    """
    found: list[Object] = []
    numbers: dict[str, int] = {}
    for group in groups:
        parts = _GROUP.fullmatch(group)
        if parts is None or not parts[1].strip("0"):
            raise UsageError(
                f"--nodes {group}: neither a file nor a description of nodes, for example "
                "3xzone=a,3xzone=b"
            )
        if len(parts[1]) > len(str(_MOST)) or len(found) + int(parts[1]) > _MOST:
            raise UsageError(f"--nodes {group}: more than {_MOST:,} nodes are described")
        words = parts[2].split("+") if parts[2] else []
        found += [_node(group, words, numbers) for _ in range(int(parts[1]))]
    return found


def _node(group: str, words: Iterable[str], numbers: dict[str, int]) -> Object:
    labels: dict[str, str] = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    taints: list[Object] = []
    room: dict[str, str] = {}
    prefix = "node"
    for word in words:
        key, sign, told = word.partition("=")
        if word == "control-plane":
            labels[_CONTROL_PLANE] = ""
            taints.append({"key": _CONTROL_PLANE, "effect": "NoSchedule"})
            prefix = word
        elif key == "taint":
            taints.append(_taint(group, told))
        elif key in _RESOURCES and sign:
            try:
                quantity(key, told)
            except ValueError as error:
                raise UsageError(f"--nodes {group}: {key}: {error}") from None
            room[key] = told
        elif key in _SHORT and sign and told and _VALUE.fullmatch(told):
            labels[f"topology.kubernetes.io/{key}"] = told
            if key == "zone" and prefix == "node" and _NAME.fullmatch(told):
                prefix = told
        elif sign and key not in _SHORT and _LABEL.fullmatch(key) and _VALUE.fullmatch(told):
            labels[key] = told
        else:
            raise UsageError(
                f"--nodes {group}: {word!r} is not one of zone=Z, control-plane, cpu=N, memory=N, "
                "pods=N, taint=KEY=VALUE:EFFECT and LABEL=VALUE"
            )
    numbers[prefix] = numbers.get(prefix, 0) + 1
    name = f"{prefix}-{numbers[prefix]}"
    labels[HOSTNAME] = name
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints} if taints else {},
        "status": {"allocatable": room} if room else {},
    }


def _taint(group: str, told: str) -> Object:
    head, _, effect = told.rpartition(":")
    key, _, held = head.partition("=")
    if effect not in _EFFECTS or not _LABEL.fullmatch(key):
        raise UsageError(
            f"--nodes {group}: taint={told}: expected KEY=VALUE:EFFECT, of the effects "
            f"{', '.join(_EFFECTS)}"
        )
    return {"key": key, "effect": effect, **({"value": held} if held else {})}


def scheduling_nodes(items: Iterable[Object]) -> list[SchedulingNode]:
    """Return the Nodes among API objects, each name once, in their order.

    Raises:
        ValueError: one of them is malformed; the message names it.
    """
    found: dict[str, SchedulingNode] = {}
    for item in items:
        name = text(at(item, "metadata", "name"))
        if item.get("kind") != "Node" or name is None or name in found:
            continue
        try:
            found[name] = _scheduling_node(item, name)
        except ValueError as error:
            raise ValueError(f"node {name}: {error}") from None
    return [*found.values()]


def _scheduling_node(item: Object, name: str) -> SchedulingNode:
    room = at(item, "status", "allocatable")
    return SchedulingNode(
        name=name,
        labels=labels_of(at(item, "metadata", "labels"), "its labels"),
        taints=tuple(dict.fromkeys(_taints(item))),
        room=_room(room) if isinstance(room, dict) else None,
        item=item,
    )


def _room(given: Mapping[str, object]) -> dict[str, int]:
    return {key: quantity(key, each) for key, each in given.items() if each is not None}


def _taints(node: Object) -> Iterator[Taint]:
    for each in elements(node, "spec", "taints"):
        key, effect = text(at(each, "key")) or "", text(at(each, "effect")) or ""
        yield key, text(at(each, "value")) or "", effect
    # The node lifecycle controller adds it; the scheduler looks at the field itself as well.
    if at(node, "spec", "unschedulable") is True:
        yield "node.kubernetes.io/unschedulable", "", "NoSchedule"
