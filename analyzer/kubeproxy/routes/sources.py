"""A representative address for each kind of source that the rules distinguish."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from itertools import chain

from analyzer.kubeproxy.routes.pod_networks import PodNetworks, contains, pod_networks
from analyzer.kubeproxy.view import Frontend, Source
from analyzer.model.addresses import VERSIONS, Address, Network
from analyzer.model.cluster import Cluster
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Addresses of TEST-NET-3 and of IPv6 documentation (RFC 5737, RFC 3849): certainly no cluster's.
_OUTSIDE: Final[dict[str, Address]] = {
    "ip": IPv4Address("203.0.113.1"),
    "ip6": IPv6Address("2001:db8:ffff::1"),
}
#: Most addresses of one network that are tried to find a free one.
_MOST_TRIES: Final = 100_000
#: Most addresses that are tried at each end of a network that rules match on.
_MOST_LOOKED_AT: Final = 512


def source_addresses(
    family: str,
    networks: PodNetworks,
    own: Sequence[Address],
    is_taken: Callable[[Address], bool],
) -> dict[Source, Address | None]:
    """Return an address of each kind; None: it follows neither from rules nor from objects.

    `own` are the node's addresses. A pod's address is one that `is_taken` does not know, so that it
    is no endpoint's own (hairpin); a hairpin flow has no address of its own.
    """
    return {
        Source.POD: _free(networks.here, is_taken),
        Source.POD_ELSEWHERE: _free(networks.elsewhere, is_taken),
        Source.NODE: own[0] if own else None,
        Source.EXTERNAL: _OUTSIDE[family],
        Source.HAIRPIN: None,
    }


@value(kw_only=True)
class SourceFacts:
    """What is known of the sources of flows in a dump of one IP version.

    Attributes:
        addresses: one of each kind of source, None if none is known.
        written: the network of pods as the rules write it.
        own: the node's addresses.
        frontends: returns those of all Services; they are only listed if they matter.
        is_taken: returns whether an address is an endpoint's, a node's or a Service's.
        cluster: nodes and addresses of the API objects.
    """

    addresses: Mapping[Source, Address | None]
    pods: PodNetworks
    written: Network | None
    own: tuple[Address, ...]
    frontends: Callable[[], Iterable[Frontend]]
    is_taken: Callable[[Address], bool]
    cluster: Cluster


def source_facts(
    family: str,
    written: Network | None,
    own: tuple[Address, ...],
    frontends: Callable[[], Iterable[Frontend]],
    is_taken: Callable[[Address], bool],
    cluster: Cluster,
    node: str | None,
    endpoints: Callable[[], Iterable[Address]],
) -> SourceFacts:
    """Return what a dump of rules of either backend shows, with the objects.

    `endpoints` returns the addresses of its endpoints, or of most; only called if they matter.
    """
    pods = pod_networks(VERSIONS[family], written, cluster, node, endpoints)
    return SourceFacts(
        addresses=source_addresses(family, pods, own, is_taken),
        pods=pods,
        written=written,
        own=own,
        frontends=frontends,
        is_taken=is_taken,
        cluster=cluster,
    )


def _free(networks: Iterable[Network], is_taken: Callable[[Address], bool]) -> Address | None:
    return next((a for n in networks for a in _from_the_end(n) if not is_taken(a)), None)


def _from_the_end(network: Network) -> Iterator[Address]:
    """Yield addresses of a network, the last usable one first; pods start at the other end."""
    last = network.num_addresses - 2
    for offset in range(last, max(0, last - _MOST_TRIES), -1):
        yield network[offset]


def told_apart(
    asked: Iterable[Network],
    usual: Sequence[Address],
    is_one: Callable[[Address], bool],
    excluded: Iterable[Network] = (),
) -> list[tuple[Network | None, Address]]:
    """Return an address for each set of sources that rules matching on `asked` distinguish.

    For None those in none of the networks, represented by the first of `usual` that is one; for a
    network those in it and in none of `asked` within it. `is_one` returns whether an address can be
    such a source at all, which those in `excluded` cannot; a set without any is left out.
    """
    networks = sorted(set(asked), key=lambda n: (n.version, int(n.network_address), n.prefixlen))
    found: list[tuple[Network | None, Address]] = []
    for within, inner in _with_inner(networks):
        is_inner = _holding(inner)
        candidates = chain(
            usual,
            (a for n in inner for a in _beside(n)),
            () if within is None else _some(within),
            # What is left over lies between networks that are asked for, or that are excluded.
            (a for n in excluded for a in _beside(n)),
        )
        for address in candidates:
            inside = within is None or address in within
            if inside and not is_inner(address) and is_one(address):
                found.append((within, address))
                break
    return found


def _with_inner(
    networks: Sequence[Network],
) -> Iterator[tuple[Network | None, Sequence[Network]]]:
    """Yield each of sorted networks with those within it; first None, with all."""
    yield None, networks
    for at, within in enumerate(networks, 1):
        end = at
        while end < len(networks) and contains(within, networks[end]):
            end += 1
        yield within, networks[at:end]


def _holding(networks: Iterable[Network]) -> Callable[[Address], bool]:
    """Return what tells whether an address is in one of sorted networks."""
    from bisect import bisect_right  # plain dumps do not need it

    outer: list[Network] = []
    for network in networks:
        if not outer or not contains(outer[-1], network):
            outer.append(network)
    firsts = [(n.version, int(n.network_address)) for n in outer]

    def holds(address: Address) -> bool:
        at = bisect_right(firsts, (address.version, int(address))) - 1
        return at >= 0 and address in outer[at]

    return holds


def _some(network: Network) -> Iterator[Address]:
    for offset in range(min(network.num_addresses, _MOST_LOOKED_AT)):
        yield network[offset]
        yield network[network.num_addresses - 1 - offset]


def ends_of(networks: Iterable[Network]) -> list[Address]:
    """Return an address at each end of each network."""
    return [
        network[at] for network in networks for at in (-2 if network[0] != network[-1] else 0, 0)
    ]


def _beside(network: Network) -> Iterator[Address]:
    """Yield the addresses just before and after a network, if there are any."""
    lowest, highest = int(network[0]) - 1, int(network[-1]) + 1
    kind = type(network[0])
    if lowest >= 0:
        yield kind(lowest)
    if highest < 1 << network.max_prefixlen:
        yield kind(highest)


def parts(asked: Iterable[Network], theirs: Collection[Network]) -> list[Network]:
    """Return the networks that split the sources in `theirs`: some are in it and some are not."""
    return [
        network
        for network in asked
        if any(contains(network, each) or contains(each, network) for each in theirs)
        and not all(contains(network, each) for each in theirs)
    ]


def node_address(own: Sequence[Address], asked: Iterable[Network]) -> Address | None:
    """Return an address of the node that represents all; None: rules distinguish them."""
    asked = tuple(asked)
    classes = {tuple(address in network for network in asked) for address in own}
    return own[0] if len(classes) == 1 else None
