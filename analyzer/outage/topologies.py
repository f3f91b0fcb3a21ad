"""The control plane that a cluster has: from options, else from its objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from analyzer.errors import UsageError, suggestion
from analyzer.model.roles import Roles
from analyzer.model.value import replace, value
from analyzer.outage.control_plane import ControlPlaneTopology, Etcd, LoadBalancer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@value
class Preset:
    """What a way of building a cluster determines; None for what it leaves open."""

    etcd: Etcd | None
    load_balancer: LoadBalancer | None


#: By name.
#: Source: kubeadm's documentation, "Options for Highly Available Topology"; k3s, pkg/agent/
#: loadbalancer; Kubespray, docs/operations/ha-mode.md, ``loadbalancer_apiserver_localhost``.
PRESETS: Final[Mapping[str, Preset]] = {
    "kubeadm-stacked": Preset(Etcd.NODES, None),
    "external-etcd": Preset(Etcd.EXTERNAL, None),
    "k3s": Preset(Etcd.NODES, LoadBalancer.CLIENT_SIDE),
    "one-load-balancer": Preset(Etcd.NODES, LoadBalancer.EXTERNAL),
    "client-side-load-balancer": Preset(Etcd.NODES, LoadBalancer.CLIENT_SIDE),
}
#: Values of --etcd and --api-load-balancer that are not names of nodes.
EXTERNAL: Final = "external"
CLIENT_SIDE: Final = "client-side"


@value(kw_only=True)
class GivenTopology:
    """What the options say; the objects decide the rest.

    Attributes:
        etcd: names of nodes, or just ``external``.
        load_balancer: names of nodes, or just ``external`` or ``client-side``.
    """

    preset: str | None = None
    control_plane: tuple[str, ...] = ()
    etcd: tuple[str, ...] = ()
    load_balancer: tuple[str, ...] = ()

    @property
    def is_anything(self) -> bool:
        """Whether any option was given."""
        return bool(self.preset or self.control_plane or self.etcd or self.load_balancer)


def topology(
    said: GivenTopology, roles: Roles, nodes: Collection[str]
) -> ControlPlaneTopology | None:
    """Return the control plane; None if its nodes are not known.

    Args:
        said: what the options say, which goes before what the objects do.
        roles: what the objects say.
        nodes: names of all nodes that are known.

    Raises:
        UsageError: a name that is no node's, or options that contradict each other.
    """
    _check(said, nodes)
    own = said.control_plane
    api = own or roles.api or roles.control_plane
    if not api:
        if said.is_anything:
            raise UsageError(
                "it is not known which nodes carry the control plane: no node has its role "
                "label; name them with --control-plane"
            )
        return None
    etcd, members = _etcd(said, roles, api)
    balancer, balancers = _load_balancer(said, api)
    found = ControlPlaneTopology(
        api=tuple(sorted(set(api))),
        etcd=etcd,
        members=tuple(sorted(set(members))),
        controllers=tuple(sorted(set(own or roles.controllers or api))),
        schedulers=tuple(sorted(set(own or roles.schedulers or api))),
        load_balancer=balancer,
        balancers=balancers,
    )
    return replace(found, assumed=tuple(_assumed(found)))


def _check(said: GivenTopology, nodes: Collection[str]) -> None:
    """Refuse names that are no node's: such a member would outlive everything."""
    for option, names, words in (
        ("--control-plane", said.control_plane, ()),
        ("--etcd", said.etcd, (EXTERNAL,)),
        ("--api-load-balancer", said.load_balancer, (EXTERNAL, CLIENT_SIDE)),
    ):
        for name in names:
            if name in words:
                if len(names) > 1:
                    raise UsageError(f"{option} {name}: cannot be combined with names of nodes")
            elif name not in nodes:
                known = [*nodes, *words]
                raise UsageError(
                    f"{option} {name}: no such node is known" + suggestion(name, known)
                )


def _etcd(said: GivenTopology, roles: Roles, api: Sequence[str]) -> tuple[Etcd, Sequence[str]]:
    if said.etcd:
        external = said.etcd == (EXTERNAL,)
        if said.preset == ("kubeadm-stacked" if external else "external-etcd"):
            raise UsageError(f"--etcd {','.join(said.etcd)}: not with --topology {said.preset}")
        return (Etcd.EXTERNAL, ()) if external else (Etcd.NODES, said.etcd)
    match None if said.preset is None else PRESETS[said.preset].etcd:
        case Etcd.EXTERNAL:
            return Etcd.EXTERNAL, ()
        case Etcd.NODES:
            return Etcd.NODES, said.control_plane or roles.etcd or api
        case _:
            return (Etcd.NODES, roles.etcd) if roles.etcd else (Etcd.UNKNOWN, api)


def _load_balancer(said: GivenTopology, api: Sequence[str]) -> tuple[LoadBalancer, tuple[str, ...]]:
    if said.load_balancer == (EXTERNAL,):
        return LoadBalancer.EXTERNAL, ()
    if said.load_balancer == (CLIENT_SIDE,):
        return LoadBalancer.CLIENT_SIDE, ()
    if said.load_balancer:
        return LoadBalancer.NODES, tuple(sorted(set(said.load_balancer)))
    preset = None if said.preset is None else PRESETS[said.preset].load_balancer
    if preset is not None:
        return preset, ()
    return (LoadBalancer.UNKNOWN if len(set(api)) > 1 else LoadBalancer.NONE), ()


def _assumed(found: ControlPlaneTopology) -> Iterator[str]:
    """Yield the assumptions that the answer depends on."""
    match found.load_balancer:
        case LoadBalancer.EXTERNAL:
            yield (
                "the load balancer in front of the API servers is not a node of the cluster, and "
                "is alive: without it the API is down, whatever is alive behind it"
            )
        case LoadBalancer.NODES if len(found.balancers) > 1:
            yield "any one of the load balancers can take over from the others"
        case LoadBalancer.UNKNOWN:
            yield (
                "the load balancer in front of the API servers is on none of the other nodes; "
                "--api-load-balancer overrides"
            )
        case LoadBalancer.NONE | LoadBalancer.CLIENT_SIDE | LoadBalancer.NODES:
            pass
    match found.etcd:
        case Etcd.EXTERNAL:
            yield "etcd is on no node of the cluster, and keeps its quorum"
        case Etcd.UNKNOWN:
            yield "etcd is on the control plane's nodes, or outside; --etcd overrides"
        case Etcd.NODES:
            pass
