"""An address for each kind of source, as the rules tell such sources apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address

from analyzer.kubeproxy.view import Source
from analyzer.model.cluster import Cluster
from analyzer.model.packet import Address, Network
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Addresses of TEST-NET-3 and its like in IPv6 (RFC 5737, RFC 3849): certainly not a cluster's.
_OUTSIDE: Final[dict[str, Address]] = {
    "ip": IPv4Address("203.0.113.1"),
    "ip6": IPv6Address("2001:db8:ffff::1"),
}
#: Addresses of one network that are looked at for a free one.
_MOST_TRIES: Final = 100_000


@value
class PodNetworks:
    """Where pods have their addresses: on this node, and on the others."""

    here: tuple[Network, ...] = ()
    elsewhere: tuple[Network, ...] = ()


def pod_networks(
    version: int, written: Network | None, cluster: Cluster, node: str | None
) -> PodNetworks:
    """Return them as the rules and the objects say.

    `written` is the network that the rules spare from masquerade: of all pods
    (``--cluster-cidr``), or with ``--detect-local-mode=NodeCIDR`` of this node's. Without
    objects it is taken for all pods'. Where the objects' networks lie outside it, the CNI plugin
    gives addresses of its own.
    """
    nodes = cluster.nodes.values()
    here = _of_version(
        version, (n for each in nodes if each.name == node for n in each.pod_networks)
    )
    others = _of_version(
        version, (n for each in nodes if each.name != node for n in each.pod_networks)
    )
    if written is None:
        return PodNetworks(here or others, others or here)
    if here and any(_holds(network, written) for network in here):
        return PodNetworks((written,), others or (written,))
    here = tuple(n for n in here if _holds(written, n))
    others = tuple(n for n in others if _holds(written, n))
    return PodNetworks(here or (written,), others or (written,))


def _of_version(version: int, networks: Iterable[Network]) -> tuple[Network, ...]:
    return tuple(network for network in networks if network.version == version)


def _holds(outer: Network, inner: Network) -> bool:
    """Tell whether all of `inner` is in `outer`."""
    return (
        outer.version == inner.version
        and inner.network_address in outer
        and inner.prefixlen >= outer.prefixlen
    )


def source_addresses(
    family: str,
    networks: PodNetworks,
    own: Sequence[Address],
    is_taken: Callable[[Address], bool],
) -> dict[Source, Address | None]:
    """Return an address of each kind; None where neither rules nor objects tell one.

    `own` are the node's addresses. A pod's address is one that `is_taken` does not know, so that
    it is nobody's hairpin; a hairpin flow has no address of its own.
    """
    return {
        Source.POD: _free(networks.here, is_taken),
        Source.POD_ELSEWHERE: _free(networks.elsewhere, is_taken),
        Source.NODE: own[0] if own else None,
        Source.EXTERNAL: _OUTSIDE[family],
        Source.HAIRPIN: None,
    }


def _free(networks: Iterable[Network], is_taken: Callable[[Address], bool]) -> Address | None:
    return next((a for n in networks for a in _from_the_end(n) if not is_taken(a)), None)


def _from_the_end(network: Network) -> Iterator[Address]:
    """Give addresses of a network, the last usable one first; pods start at the other end."""
    last = network.num_addresses - 2
    for offset in range(last, max(0, last - _MOST_TRIES), -1):
        yield network[offset]


def told_apart(
    asked: Iterable[Network], usual: Address, is_one: Callable[[Address], bool]
) -> list[tuple[Network | None, Address]]:
    """Return an address for each set of sources that rules asking for `asked` tell apart.

    With None those in none of the networks, for which `usual` stands if it can; with a network
    those in it and in none that is asked for within it. `is_one` tells whether an address can be
    such a source at all; a set without any is left out.
    """
    networks = sorted(set(asked), key=lambda n: (int(n.network_address), n.prefixlen))
    found: list[tuple[Network | None, Address]] = []
    for within in (None, *networks):
        inner = [n for n in networks if n != within and (within is None or _holds(within, n))]
        candidates = [usual] if within is None or usual in within else []
        if within is not None:
            candidates += [*_some(within)]
        candidates += [a for n in inner for a in _beside(n)]
        for address in candidates:
            inside = within is None or address in within
            if inside and is_one(address) and not any(address in n for n in inner):
                found.append((within, address))
                break
    return found


def _some(network: Network) -> Iterator[Address]:
    for offset in range(min(network.num_addresses, 8)):
        yield network[offset]
        yield network[network.num_addresses - 1 - offset]


def _beside(network: Network) -> Iterator[Address]:
    """Give the addresses before and behind a network, where there are any."""
    lowest, highest = int(network[0]) - 1, int(network[-1]) + 1
    kind = type(network[0])
    if lowest >= 0:
        yield kind(lowest)
    if highest < 1 << network.max_prefixlen:
        yield kind(highest)


def within(network: Network, networks: Iterable[Network]) -> bool:
    """Tell whether `network` is a part of one of `networks`, not all of it."""
    return any(_holds(each, network) and each != network for each in networks)
