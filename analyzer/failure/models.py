"""Which endpoints are dead when something fails. Each row of MODELS is one kind of failure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from analyzer.errors import UsageError, suggestion
from analyzer.kubeproxy.view import Endpoint, View
from analyzer.model.addresses import address_and_port_from_text
from analyzer.model.cluster import Cluster
from analyzer.model.value import value


@value(kw_only=True)
class Dead:
    """What is dead, as it was named, and the endpoints of the dump that die with it.

    Attributes:
        uncertain: endpoints of which nobody says where they are: they may die too.
    """

    endpoints: frozenset[Endpoint]
    uncertain: frozenset[Endpoint] = frozenset()
    named: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()


def dead(
    view: View,
    cluster: Cluster,
    *,
    endpoints: Collection[str] = (),
    nodes: Collection[str] = (),
    zones: Collection[str] = (),
) -> Dead:
    """Return what dies when all of these fail together.

    Raises:
        UsageError: a name that occurs neither in the dump nor in the objects.
    """
    named = {"endpoint": endpoints, "node": nodes, "zone": zones}
    known = view.endpoints
    dying = frozenset(
        [e for kind, each in named.items() if each for e in MODELS[kind](each, known, cluster)]
    )
    uncertain: list[Endpoint] = []
    if nodes or zones:
        placed = [(e, cluster.placement(e.address)) for e in known]
        uncertain = [
            e
            for e, where in placed
            if (nodes and where.node is None) or (zones and where.zone is None)
        ]
    return Dead(
        endpoints=dying,
        uncertain=frozenset(uncertain) - dying,
        named=tuple(dict.fromkeys(endpoints)),
        nodes=tuple(dict.fromkeys(nodes)),
        zones=tuple(dict.fromkeys(zones)),
    )


_Known = Collection[Endpoint]
_Model = Callable[[Collection[str], _Known, Cluster], Iterable[Endpoint]]


def _endpoints(names: Collection[str], endpoints: _Known, _: Cluster) -> Iterable[Endpoint]:
    """``--dead IP[:PORT]``: a pod, or one port of it."""
    for name in names:
        given = address_and_port_from_text(name)
        if given is None:
            raise UsageError(f"--dead {name}: expected an address, as 10.1.0.1 or 10.1.0.1:53")
        address, port = given
        found = [e for e in endpoints if e.address == address and port in (None, e.port)]
        if not found:
            raise UsageError(
                f"--dead {name}: no Service of this dump has that endpoint"
                + suggestion(name, {str(e.address) for e in endpoints})
            )
        yield from found


def _nodes(names: Collection[str], endpoints: _Known, cluster: Cluster) -> Iterable[Endpoint]:
    """``--dead-node``: every endpoint on the node, its own addresses included."""
    _check_known("--dead-node", names, cluster.nodes, endpoints, cluster)
    return [e for e in endpoints if cluster.placement(e.address).node in names]


def _zones(names: Collection[str], endpoints: _Known, cluster: Cluster) -> Iterable[Endpoint]:
    """``--dead-zone``: every endpoint in the zone."""
    _check_known("--dead-zone", names, cluster.zones, endpoints, cluster)
    return [e for e in endpoints if cluster.placement(e.address).zone in names]


def _check_known(
    option: str, names: Collection[str], known: Collection[str], endpoints: _Known, cluster: Cluster
) -> None:
    for name in names:
        if name in known:
            continue
        if not cluster.nodes:
            raise UsageError(
                f"{option} {name}: a dump does not say which endpoints are on which node; "
                "give --objects FILE, from `kubectl get "
                "services,endpointslices,nodes,pods -A -o json`"
            )
        kind = option.removeprefix("--dead-")
        raise UsageError(
            f"{option} {name}: the objects have no such {kind}" + suggestion(name, known)
        )
    placed = [e for e in endpoints if cluster.placement(e.address).node is not None]
    if names and endpoints and not placed:
        raise UsageError(
            f"{option}: the objects do not say on which node any endpoint of this dump is; "
            "include endpointslices or pods, of the same cluster"
        )


#: What can fail, and which endpoints of a dump die with what was named.
MODELS: Final[Mapping[str, _Model]] = {
    "endpoint": _endpoints,
    "node": _nodes,
    "zone": _zones,
}
