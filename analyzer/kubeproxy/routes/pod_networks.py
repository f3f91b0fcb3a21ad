"""The networks of pods: of those on the node that the dump is from, and of others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from analyzer.model.addresses import Address, Network
from analyzer.model.cluster import Cluster, Node, Owners
from analyzer.model.value import replace, value


@value
class PodNetworks:
    """The networks of pods: on this node, and on the others."""

    here: tuple[Network, ...] = ()
    elsewhere: tuple[Network, ...] = ()


def pod_networks(
    version: int,
    written: Network | None,
    cluster: Cluster,
    node: str | None,
    endpoints: Callable[[], Iterable[Address]] = tuple,
) -> PodNetworks:
    """Return them according to the rules and the objects.

    `written` is the network that the rules exempt from masquerade: of all pods
    (``--cluster-cidr``), or with ``--detect-local-mode=NodeCIDR`` of this node's. Networks of the
    objects that are not in it are left out: the CNI plugin then uses addresses of its own. So are
    podCIDRs if some pod has no address of its node's: then any may have any in `written`. If the
    objects place no pods, `endpoints` returns addresses of some.

    What is left of `written` belongs to nodes that the objects lack, which may be older than the
    rules.
    """
    nodes: Collection[Node] = cluster.nodes.values()
    owners = [] if written is None else _owners(written, nodes)
    if node is None:
        # It may be the network of one node only, and the dump is then from that node.
        node = owners[0] if len(owners) == 1 and len(nodes) > 1 else None
    if not owners and not _are_used(version, cluster, written, endpoints):
        nodes = [replace(each, pod_networks=_said(each, cluster)) for each in nodes]
        if written is not None and not any(each.pod_networks for each in nodes):
            return PodNetworks((written,), (written,))
    here = _of_version(
        version, (n for each in nodes if each.name == node for n in each.pod_networks)
    )
    others = _of_version(
        version, (n for each in nodes if each.name != node for n in each.pod_networks)
    )
    if written is None:
        return PodNetworks(here or others, others or here)
    if not here and not others:
        # It may be the network of all pods or only of this node's: not known.
        return PodNetworks((written,), ())
    if here and any(contains(network, written) for network in here):
        return PodNetworks((written,), others)
    here = tuple(n for n in here if contains(written, n))
    others = tuple(n for n in others if contains(written, n))
    return PodNetworks(here or (written,), (*others, *_without(written, here)))


def _owners(written: Network, nodes: Iterable[Node]) -> list[str]:
    return [n.name for n in nodes if any(contains(each, written) for each in n.pod_networks)]


def _without(network: Network, taken: Iterable[Network]) -> tuple[Network, ...]:
    """Return what is left of a network without others, each either apart from it or nested."""
    left = [network]
    for each in taken:
        left = [part for one in left for part in _outside(one, each)]
    return tuple(left)


def _outside(network: Network, other: Network) -> Iterable[Network]:
    if contains(other, network):
        return ()
    if not contains(network, other):
        return (network,)
    return network.address_exclude(other)  # type: ignore[arg-type]  # of the same version


def contains(outer: Network, inner: Network) -> bool:
    """Return whether all of `inner` is in `outer`."""
    return (
        outer.version == inner.version
        and inner.network_address in outer
        and inner.prefixlen >= outer.prefixlen
    )


def _are_used(
    version: int,
    cluster: Cluster,
    written: Network | None,
    endpoints: Callable[[], Iterable[Address]],
) -> bool:
    """Return whether all pods that objects place have addresses in podCIDRs of their nodes.

    If objects place none, whether all endpoints in `written` have addresses in some podCIDR.
    """
    nodes = cluster.nodes
    owned = [(each, node.name) for node in nodes.values() for each in node.pod_networks]
    owners = Owners.of((network, name) for network, name in owned if network.version == version)
    if not owners.by_length:
        return True
    hosts = {address for node in nodes.values() for address in node.addresses}
    are_placed = False
    for address, placement in cluster.placements.items():
        if address.version != version or placement.node is None or address in hosts:
            continue
        are_placed = True
        owner = owners.owner(address)
        if owner == placement.node:
            continue
        node = nodes.get(placement.node)
        if node is not None and any(address in each for each in node.pod_networks):
            continue  # several nodes have the same
        # A pod on its node's network has an address of that, which objects need not list.
        own = () if node is None else node.addresses
        if owner is not None or any(each.version == version for each in own):
            return False
    if are_placed or written is None:
        return True
    return all(owners.owner(each) for each in endpoints() if each in written)


def _said(node: Node, cluster: Cluster) -> tuple[Network, ...]:
    """Return the networks of a node that are not its podCIDRs: those given by the user."""
    owner = cluster.networks.owner
    return tuple(n for n in node.pod_networks if owner(n.network_address) == node.name)


def _of_version(version: int, networks: Iterable[Network]) -> tuple[Network, ...]:
    return tuple(network for network in networks if network.version == version)
