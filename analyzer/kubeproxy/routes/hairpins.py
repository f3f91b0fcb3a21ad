"""What happens to flows that return to their endpoint with its own address as the source.

An endpoint does not answer these: IPv4 drops packets from an address of its own that come in by a
device, and in IPv6 the answer never leaves the endpoint, so that no node puts its addresses back.
The node itself answers, for what it sends to itself comes back by loopback.

Only endpoints of this node are evaluated: flows of those of other nodes are translated by their own
node or, to a port of this one, come with the source that their own gives them. In nftables mode
kube-proxy lists the endpoints of its node in a set, which identifies them if nothing else does.

Source: Linux, net/ipv4/fib_frontend.c, ``fib_validate_source``; kubernetes,
pkg/proxy/nftables/proxier.go, ``hairpinConnectionsSet``; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address

from analyzer.kubeproxy import names
from analyzer.kubeproxy.rows.shapes import host
from analyzer.kubeproxy.view import Route, Share
from analyzer.model.addresses import IPV4, Address
from analyzer.model.devices import Side
from analyzer.model.endings import Endings, summed, total
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.onward import OWN_SOURCE


class Hairpins:
    """The hairpin flows of one family at one node, whose addresses are `own`, if known.

    `side` returns on which side of the node an address is, None if it is not known, and
    `knows_sides` whether that is known of any; `listed` returns the addresses that kube-proxy lists
    as those of this node's endpoints; None: it lists none.
    """

    def __init__(
        self,
        own: Collection[Address],
        side: Callable[[Address], Side | None],
        listed: Callable[[], Collection[Address] | None] = lambda: None,
        knows_sides: Callable[[], bool] = lambda: True,
    ) -> None:
        self._own = own
        self._side = side
        self._knows_sides = knows_sides
        self._find_listed = listed

    def is_pod_here(self, address: Address) -> Ternary:
        """Return whether an address is that of a pod of this node."""
        if address in self._own:
            return Ternary.FALSE
        side = self._side(address)
        if side is not None:
            return Ternary.of(side is Side.POD)
        listed = self._listed
        return Ternary.UNKNOWN if listed is None else Ternary.of(address in listed)

    def here(self, hosts: set[str]) -> set[str]:
        """Return which of some addresses, as written, may be those of pods of this node."""
        listed = self._listed
        if listed is not None and not self._knows_sides():
            of_ipv4 = {str(each) for each in listed if each.version == IPV4}
            if len(of_ipv4) == len(listed):  # an address of IPv6 has more than one spelling
                return hosts & of_ipv4 - set(map(str, self._own))
        return {each for each in hosts if self.is_pod_here(host(each)) is not Ternary.FALSE}

    @cached_property
    def _listed(self) -> Collection[Address] | None:
        return self._find_listed()

    def lost(self, address: Address, masquerade: bool | None, lost: Endings) -> Endings:
        """Return how an endpoint's flows to itself are lost, of which rules lose some (`lost`).

        `masquerade` is whether the others are masqueraded; None: not known.
        """
        if masquerade is True:
            return lost
        is_here = self.is_pod_here(address)
        gone = total(lost)
        if is_here is Ternary.FALSE or gone.lower == ALWAYS:
            return lost
        is_sure = is_here is Ternary.TRUE and masquerade is False
        rest = Bounds(~gone.upper if is_sure else NEVER, ~gone.lower)
        return summed([*lost, (OWN_SOURCE, rest)])

    def of(self, route: Route) -> Route:
        """Return a hairpin route with what is lost because it is not masqueraded."""
        if all(route.masquerades()):
            return route
        told = [self._told(share) for share in route.shares]
        changed = any(one is not other for one, other in zip(told, route.shares, strict=True))
        return replace(route, shares=tuple(told)) if changed else route

    def _told(self, share: Share) -> Share:
        lost = self.lost(share.endpoint.address, share.masquerade, share.lost)
        return share if lost is share.lost else replace(share, lost=lost)


def listed(rulesets: Iterable[Rules], family: str) -> frozenset[Address] | None:
    """Return the addresses of this node's endpoints that kube-proxy lists; None: it lists none."""
    tables = (t for r in rulesets if not isinstance(r, Ruleset) for t in r.tables.values())
    held = [t.sets.get(names.HAIRPIN_SET) for t in tables if t.family == family]
    sets = [each for each in held if each is not None]
    if not sets:
        return None
    from analyzer.model.nft.expressions import Concat  # not needed without nft

    keys = [element.key for each in sets for element in each.elements]
    parts = [key.parts[0] for key in keys if isinstance(key, Concat)]
    return frozenset([part for part in parts if isinstance(part, IPv4Address | IPv6Address)])
