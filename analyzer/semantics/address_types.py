"""The type of an address by the kernel's routes, as far as it is known: LOCAL, UNICAST, ...

Source: Linux, net/ipv4/fib_frontend.c, ``__inet_dev_addr_type``, which looks at the address before
it looks it up; net/netfilter/xt_addrtype.c and net/ipv4/netfilter/nft_fib_ipv4.c ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from ipaddress import ip_network

from analyzer.model.addresses import IPV4, Address
from analyzer.model.intervals import span
from analyzer.model.region import Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.assumed import ADDRESS_TYPE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

LOCAL: Final = "local"
#: All types that nft and addrtype know, in the spelling of nft.
ALL: Final = frozenset(
    {
        "unspec",
        "unicast",
        "local",
        "broadcast",
        "anycast",
        "multicast",
        "blackhole",
        "unreachable",
        "prohibit",
    }
)
#: Networks whose type does not depend on routes: first and last address. All of 0.0.0.0/8 was
#: of that kind before Linux 5.3.
_FIXED: Final = (
    (*span(ip_network("0.0.0.0/32")), "broadcast"),
    (*span(ip_network("255.255.255.255/32")), "broadcast"),
    (*span(ip_network("224.0.0.0/4")), "multicast"),
)
_OLD_ZERO: Final = span(ip_network("0.0.0.0/8"))


def has_type(
    wanted: Collection[str],
    local: Ternary,
    of: Address | Region | None,
    assume: Callable[[str], str | None],
) -> Ternary:
    """Return whether an address, or each of a region, has one of some types.

    `local` tells whether it is an address of the node; `assume` returns what is assumed by name.
    """
    if local is not Ternary.UNKNOWN and len(wanted) == 1 and LOCAL in wanted:
        return local  # most rules match on no other type
    possible = _possible(local, of)
    found = _among(possible, wanted)
    if found is not Ternary.UNKNOWN or of is None or of.version != IPV4:
        return found
    usual = possible & {LOCAL, "unicast"}
    # Of many addresses those of flows are meant: none is multicast.
    is_plain = isinstance(of, Region) or _is_plain(of)
    if not is_plain or _among(usual, wanted) is Ternary.UNKNOWN:
        return found
    return found if assume(ADDRESS_TYPE) is None else _among(usual, wanted)


def _among(possible: frozenset[str], wanted: Collection[str]) -> Ternary:
    if possible.isdisjoint(wanted):
        return Ternary.FALSE
    return Ternary.TRUE if possible.issubset(wanted) else Ternary.UNKNOWN


def _possible(local: Ternary, of: Address | Region | None) -> frozenset[str]:
    """Return the types that an address may have."""
    some = set[str]()
    if of is not None and of.version == IPV4:
        intervals = _intervals(of)
        for first, last, fixed in _FIXED:
            if all(first <= low and high <= last for low, high in intervals):
                return frozenset({fixed})
            if any(first <= high and low <= last for low, high in intervals):
                some.add(fixed)
    if local is Ternary.TRUE:
        return frozenset({LOCAL, *some})
    found = ALL if local is Ternary.UNKNOWN else ALL - {LOCAL}
    is_plain = of is not None and of.version == IPV4 and _is_plain(of)
    return found - {"multicast"} if is_plain else found


def _is_plain(of: Address | Region) -> bool:
    """Return whether only routes decide the type of each of these IPv4 addresses."""
    return not any(
        low <= last and first <= high
        for first, last, *_ in (*_FIXED, _OLD_ZERO)
        for low, high in _intervals(of)
    )


def _intervals(of: Address | Region) -> tuple[tuple[int, int], ...]:
    return of.intervals if isinstance(of, Region) else ((int(of), int(of)),)
