"""Which nodes run which part of the control plane, from API objects.

Source: kubeadm, cmd/kubeadm/app/util/staticpod/utils.go, ``ComponentPod``: labels ``component`` and
``tier: control-plane`` of static pods in kube-system. k3s and RKE2 label their nodes
``node-role.kubernetes.io/etcd``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer.model.roles import Roles
from analyzer.parsers.api_objects import Object, at, text
from analyzer.parsers.pods import has_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_CONTROL_PLANE: Final = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
)
_ETCD: Final = "node-role.kubernetes.io/etcd"
#: Values of the label ``component`` of static pods.
_COMPONENTS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def roles_of(items: Sequence[Object]) -> Roles:
    """Return the roles that labels of nodes and pods of the control plane show.

    If some pods of a component are listed they are taken to be all of them: the objects are a
    snapshot, and a pod that is missing runs nowhere.
    """
    running: dict[str, set[str]] = {}
    for item in items:
        name, node = at(item, "metadata", "labels", "component"), at(item, "spec", "nodeName")
        if item.get("kind") == "Pod" and name in _COMPONENTS and text(node) and _is_its(item):
            running.setdefault(name, set()).add(node)
    nodes = [item for item in items if item.get("kind") == "Node"]
    labelled = _labelled(nodes, (_ETCD,))
    etcd, api, controllers, schedulers = (_sorted(running.get(name)) for name in _COMPONENTS)
    return Roles(
        control_plane=_labelled(nodes, _CONTROL_PLANE),
        etcd=etcd or labelled or None,
        api=api,
        controllers=controllers,
        schedulers=schedulers,
    )


def _is_its(pod: Object) -> bool:
    """Return whether a pod is the control plane's; elsewhere anyone may use its labels."""
    return at(pod, "metadata", "namespace") == "kube-system" and not has_ended(pod)


def _labelled(nodes: Iterable[Object], labels: Iterable[str]) -> tuple[str, ...]:
    wanted = frozenset(labels)
    found = {
        name
        for node in nodes
        if (name := text(at(node, "metadata", "name"))) is not None
        and isinstance(own := at(node, "metadata", "labels"), dict)
        and not wanted.isdisjoint(own)
    }
    return tuple(sorted(found))


def _sorted(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(sorted(names))
