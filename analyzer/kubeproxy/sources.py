"""An address for each kind of source, as the rules tell such sources apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address

from analyzer.kubeproxy.view import Source
from analyzer.model.packet import Address, Network

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


def source_addresses(
    family: str,
    networks: Sequence[Network],
    own: Sequence[Address],
    is_taken: Callable[[Address], bool],
) -> dict[Source, Address | None]:
    """Return an address of each kind; None where neither rules nor objects tell one.

    `networks` are those of the cluster's pods, `own` the node's addresses. A pod's address is
    one that `is_taken` does not know, so that it is nobody's hairpin.
    """
    free = (a for n in networks for a in _from_the_end(n) if not is_taken(a))
    return {
        Source.POD: next(free, None),
        Source.NODE: own[0] if own else None,
        Source.EXTERNAL: _OUTSIDE[family],
    }


def _from_the_end(network: Network) -> Iterator[Address]:
    """Give addresses of a network, the last usable one first; pods start at the other end."""
    last = network.num_addresses - 2
    for offset in range(last, max(0, last - _MOST_TRIES), -1):
        yield network[offset]
