"""Every placement that the scheduler may end in, by trying them all; it shares no code with ours.

Pods and nodes are the dicts of manifests, and every rule is read off them anew for each pod. It
knows what `tests.support.gated` makes, and is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Pod = Any
Node = Any
#: The node of each pod, by name; None: it found none.
Places = tuple[str | None, ...]

_ANTI = "podAntiAffinity"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def every_end(
    pods: Sequence[Pod], nodes: Sequence[Node]
) -> set[tuple[tuple[str, str | None], ...]]:
    """Return the ends, each as the sorted pairs of a pod's `called` and its node."""
    ends: set[tuple[tuple[str, str | None], ...]] = set()
    seen: set[tuple[tuple[str, str | None], ...]] = set()
    waiting: list[Places] = [(None,) * len(pods)]
    while waiting:
        places = waiting.pop()
        key = tuple(sorted(((called(p), n) for p, n in zip(pods, places, strict=True)), key=str))
        if key in seen:
            continue
        seen.add(key)
        nexts = [
            (*places[:at], node["metadata"]["name"], *places[at + 1 :])
            for at, pod in enumerate(pods)
            if places[at] is None
            for node in nodes
            if _takes(pod, node, _running(pods, places), nodes)
        ]
        waiting += nexts
        if not nexts:
            ends.add(key)
    return ends


def _running(pods: Sequence[Pod], places: Places) -> list[tuple[Pod, str]]:
    return [(p, n) for p, n in zip(pods, places, strict=True) if n is not None]


def called(pod: Pod) -> str:
    """Return what tells a pod from those that are not alike: of a StatefulSet's its name."""
    labels = pod["metadata"]["labels"]
    return str(labels.get("statefulset.kubernetes.io/pod-name", labels["app"]))


def _labels(node: Node) -> dict[str, str]:
    found: dict[str, str] = node["metadata"]["labels"]
    return found


def matches(selector: Any, pod: Pod) -> bool:
    """Tell whether a selector by ``matchLabels`` selects a pod."""
    wanted = selector["matchLabels"].items()
    return all(pod["metadata"]["labels"].get(k) == v for k, v in wanted)


def _tolerated(pod: Pod, node: Node) -> bool:
    keys = {each["key"] for each in pod["spec"].get("tolerations", [])}
    return all(taint["key"] in keys for taint in node["spec"].get("taints", []))


def _selected(pod: Pod, node: Node) -> bool:
    wanted = pod["spec"].get("nodeSelector", {}).items()
    return all(_labels(node).get(k) == v for k, v in wanted)


def _takes(pod: Pod, node: Node, running: Sequence[tuple[Pod, str]], nodes: Sequence[Node]) -> bool:
    spec, name = pod["spec"], node["metadata"]["name"]
    if not _tolerated(pod, node) or not _selected(pod, node):
        return False
    if spec.get("only") not in (None, name):
        return False
    here = [p for p, at in running if at == name]
    room = node["status"].get("allocatable", {}).get("cpu")
    if room is not None and sum(_cpu(p) for p in [*here, pod]) > int(room):
        return False
    if set(_ports(pod)) & {port for p in here for port in _ports(p)}:
        return False
    by_name = {n["metadata"]["name"]: n for n in nodes}
    placed = [(p, _labels(by_name[at])) for p, at in running]
    return (
        _keeps_apart(pod, node, placed)
        and _is_beside(pod, node, placed)
        and _is_spread(pod, node, running, nodes)
    )


def _cpu(pod: Pod) -> int:
    return sum(int(c["resources"]["requests"].get("cpu", 0)) for c in pod["spec"]["containers"])


def _ports(pod: Pod) -> list[int]:
    return [p["hostPort"] for c in pod["spec"]["containers"] for p in c["ports"] if "hostPort" in p]


def _terms(pod: Pod, kind: str) -> Iterator[Any]:
    yield from pod["spec"].get("affinity", {}).get(kind, {}).get(_REQUIRED, [])


def _keeps_apart(pod: Pod, node: Node, placed: Sequence[tuple[Pod, dict[str, str]]]) -> bool:
    for other, labels in placed:
        for one, two in ((pod, other), (other, pod)):
            for term in _terms(one, _ANTI):
                key = term["topologyKey"]
                mine = _labels(node).get(key)
                if (
                    mine is not None
                    and labels.get(key) == mine
                    and matches(term["labelSelector"], two)
                ):
                    return False
    return True


def _is_beside(pod: Pod, node: Node, placed: Sequence[tuple[Pod, dict[str, str]]]) -> bool:
    terms = [*_terms(pod, "podAffinity")]
    if not terms:
        return True
    if any(t["topologyKey"] not in _labels(node) for t in terms):
        return False
    meant = [(p, w) for p, w in placed if all(matches(t["labelSelector"], p) for t in terms)]
    if not meant:
        return all(matches(t["labelSelector"], pod) for t in terms)
    return all(
        any(w.get(t["topologyKey"]) == _labels(node)[t["topologyKey"]] for _, w in meant)
        for t in terms
    )


def _is_spread(
    pod: Pod, node: Node, running: Sequence[tuple[Pod, str]], nodes: Sequence[Node]
) -> bool:
    hard = [
        c
        for c in pod["spec"].get("topologySpreadConstraints", [])
        if c["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    for each in hard:
        key = each["topologyKey"]
        if key not in _labels(node):
            return False
        numbers: dict[str, int] = {}
        for other in nodes:
            if any(c["topologyKey"] not in _labels(other) for c in hard) or not _selected(
                pod, other
            ):
                continue
            if each.get("nodeTaintsPolicy") == "Honor" and not _tolerated(pod, other):
                continue
            numbers.setdefault(_labels(other)[key], 0)
            for p, at in running:
                if not each["labelSelector"]:  # {} matches all, and counts none of them
                    continue
                if at == other["metadata"]["name"] and matches(each["labelSelector"], p):
                    numbers[_labels(other)[key]] += 1
        least = min(numbers.values(), default=0)
        if len(numbers) < each.get("minDomains", 1):
            least = 0
        own = bool(each["labelSelector"]) and matches(each["labelSelector"], pod)
        if numbers.get(_labels(node)[key], 0) + own - least > each["maxSkew"]:
            return False
    return True
