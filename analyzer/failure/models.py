"""Which endpoints are dead when something fails. Each row of MODELS is one kind of failure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from analyzer.errors import UsageError, suggestion
from analyzer.kubeproxy.view import Endpoint, View
from analyzer.model.addresses import Network, address_and_port_from_text, network_from_text
from analyzer.model.cluster import Cluster
from analyzer.model.value import value


@value(kw_only=True)
class Dead:
    """What is dead, as it was named, and the endpoints of the dump that die with it.

    Attributes:
        uncertain: endpoints whose place is not known, so that they may die too.
        zoneless: those of `uncertain` whose node is known, but not its zone.
        assumed: endpoints that are assumed to be on the node of the podCIDR they are in.
        unseen: names of endpoints that the dump may not show.
    """

    endpoints: frozenset[Endpoint]
    uncertain: frozenset[Endpoint] = frozenset()
    zoneless: frozenset[Endpoint] = frozenset()
    assumed: frozenset[Endpoint] = frozenset()
    unseen: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()

    @property
    def is_anything(self) -> bool:
        """Whether anything is dead, whether or not it has endpoints in the dump."""
        return bool(self.endpoints or self.named or self.nodes or self.zones)

    def takes(self, node: str | None, cluster: Cluster) -> bool:
        """Return whether a node dies, by itself or with its zone."""
        return node is not None and (node in self.nodes or cluster.zone_of(node) in self.zones)


def dead(
    view: View,
    cluster: Cluster,
    may_be_gone: bool = False,
    /,
    *,
    endpoints: Collection[str] = (),
    nodes: Collection[str] = (),
    zones: Collection[str] = (),
    unshown: Collection[Endpoint] = (),
) -> Dead:
    """Return what dies when all of these fail together.

    With `may_be_gone`, a named endpoint that no Service has is taken to have been removed from the
    rules. `unshown` are endpoints that the dump does not show, and that may die too.

    Raises:
        UsageError: a name that occurs neither in the dump nor in the objects.
    """
    named = {"endpoint": endpoints, "node": nodes, "zone": zones}
    known = tuple(dict.fromkeys((*view.endpoints, *unshown)))
    shown = KnownEndpoints(view, known, cluster, may_be_gone)
    dying = frozenset(
        [e for kind, each in named.items() if each for e in MODELS[kind](each, shown)]
    )
    uncertain: list[Endpoint] = []
    zoneless: list[Endpoint] = []
    assumed: list[Endpoint] = []
    if nodes or zones:
        assumed = [e for e in known if cluster.is_placed_by_pod_network(e.address)]
        placed = [(e, cluster.placement(e.address)) for e in known]
        uncertain = [
            e
            for e, where in placed
            if (nodes and where.node is None) or (zones and where.zone is None)
        ]
        zoneless = [e for e, where in placed if where.node is not None and where.zone is None]
    return Dead(
        endpoints=dying,
        uncertain=frozenset(uncertain) - dying,
        zoneless=frozenset(zoneless) & (frozenset(uncertain) - dying),
        assumed=frozenset(assumed),
        unseen=tuple(name for name in endpoints if not MODELS["endpoint"]([name], shown)),
        named=tuple(dict.fromkeys(endpoints)),
        nodes=tuple(dict.fromkeys(nodes)),
        zones=tuple(dict.fromkeys(zones)),
    )


def _network(name: str) -> Network | None:
    return network_from_text(name) if "/" in name else None


def _named(name: str, cluster: Cluster) -> Callable[[Endpoint], bool]:
    """Return a function that says whether an endpoint has this name.

    Raises:
        UsageError: the name is neither an address nor a network.
    """
    network = _network(name)
    if network is not None:
        version, ends = network.version, network
        return lambda each: each.address.version == version and each.address in ends
    given = address_and_port_from_text(name)
    if given is None:
        for kind, others in (("node", cluster.node_names), ("zone", cluster.zones)):
            if name in others:
                raise UsageError(
                    f"--dead {name}: that is a {kind}; did you mean --dead-{kind} {name}?"
                )
        raise UsageError(
            f"--dead {name}: expected an address, for example 10.1.0.1 or 10.1.0.1:53, a network, "
            "for example 10.1.0.0/24, or with --objects a pod (namespace/name)"
        )
    address, port = given
    return lambda each: each.address == address and port in (None, each.port)


_IN: Final = {"node": "on", "zone": "in"}


@value
class KnownEndpoints:
    """What can die: the endpoints that a dump shows, and what is known of their place."""

    view: View
    endpoints: Collection[Endpoint]
    cluster: Cluster
    may_be_gone: bool = False

    @property
    def hides_some(self) -> bool:
        """Whether flows may go to endpoints that the dump does not show."""
        return bool(self.view.cut) or any(
            service.unfilled or any(route.unresolved for route in service.routes)
            for service in self.view.services
        )


_Model = Callable[[Collection[str], KnownEndpoints], Sequence[Endpoint]]


def _endpoints(names: Collection[str], known: KnownEndpoints) -> list[Endpoint]:
    """``--dead IP[:PORT]``: a pod, or one port of it; ``--dead CIDR``: all in a network."""
    dying: list[Endpoint] = []
    for name in names:
        meant = _named(name, known.cluster)
        found = [each for each in known.endpoints if meant(each)]
        if not found and not known.may_be_gone and not known.hides_some:
            both = {word for e in known.endpoints for word in (str(e), str(e.address))}
            has = "that endpoint" if _network(name) is None else "an endpoint in that network"
            raise UsageError(
                f"--dead {name}: no Service of this dump has {has}" + suggestion(name, both)
            )
        dying += found
    return dying


def _nodes(names: Collection[str], known: KnownEndpoints) -> list[Endpoint]:
    """``--dead-node``: every endpoint on the node, its own addresses included."""
    cluster = known.cluster
    placed = {e: cluster.placement(e.address).node for e in known.endpoints}
    _check_known("node", names, cluster.node_names, placed, cluster)
    return [e for e, node in placed.items() if node in names]


def _zones(names: Collection[str], known: KnownEndpoints) -> list[Endpoint]:
    """``--dead-zone``: every endpoint in the zone."""
    cluster = known.cluster
    placed = {e: cluster.placement(e.address).zone for e in known.endpoints}
    _check_known("zone", names, cluster.zones, placed, cluster)
    return [e for e, zone in placed.items() if zone in names]


def _check_known(
    kind: str,
    names: Collection[str],
    known: Collection[str],
    placed: Mapping[Endpoint, str | None],
    cluster: Cluster,
) -> None:
    """Refuse unknown nodes or zones, and input that does not place any endpoint.

    Raises:
        UsageError: the message says what would help.
    """
    tells = "--objects FILE, from `kubectl get services,endpointslices,nodes,pods -A -o json`"
    if kind == "node":
        tells += ", or --node-of CIDR=NODE"
    for name in names:
        if name in known:
            continue
        if not known and kind == "zone" and cluster.has_objects:
            raise UsageError(
                f"--dead-zone {name}: no zone is known: no Node of --objects has the label "
                "topology.kubernetes.io/zone; name its nodes with --dead-node"
            )
        if not known:
            raise UsageError(
                f"--dead-{kind} {name}: it is not known which endpoints are {_IN[kind]} which "
                f"{kind}; pass {tells}"
            )
        raise UsageError(f"--dead-{kind} {name}: no such {kind} is known" + suggestion(name, known))
    if names and placed and not any(placed.values()):
        raise UsageError(
            f"--dead-{kind}: it is not known {_IN[kind]} which {kind} any endpoint of this dump "
            f"is; pass {tells}, from the same cluster"
        )


#: What can fail, and which endpoints of a dump die with what was named.
MODELS: Final[Mapping[str, _Model]] = {
    "endpoint": _endpoints,
    "node": _nodes,
    "zone": _zones,
}
