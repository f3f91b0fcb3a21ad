"""The devices behind which a node's pods are, according to its routes.

A pod of the node is reached without a next hop: by a route of its own (Calico, AWS, Cilium with
endpoint routes), or by one to the bridge of all pods. A device that leads to a next hop, or to pods
on other nodes as neighbours, does not distinguish pods of the node from others.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.model.addresses import WIDTHS, Address
from analyzer.model.devices import covers
from analyzer.model.intervals import common_of, span
from analyzer.model.routing import LOOPBACK, KernelRoute, Routes
from analyzer.semantics.devices import SHARED, USUAL, PodPlaces


def devices_of_pods(
    routes: Routes, places: Sequence[PodPlaces], own: Sequence[Address] = ()
) -> tuple[str, ...]:
    """Return devices, as iptables writes their names or patterns of them; empty: not known.

    `places` are, for IPv4 and for IPv6, the addresses on this node and elsewhere, as far as known;
    `own` are the node's addresses. Without places only devices are returned that have a name that
    network plugins use for pods, and a route to a single address.
    """
    others = {each.device for each in routes.routes if each.hop is not None or each.is_default}
    found = {
        each.device
        for each in routes.routes
        if each.device is not None
        and each.device not in others
        and each.device != LOOPBACK
        and not any(covers(pattern, each.device) for pattern in SHARED)
        and each.network.network_address not in own
        and _leads_to_pods(each, each.device, places)
    }
    patterns = {_pattern(each) for each in found}
    return tuple(sorted(patterns))


def _leads_to_pods(route: KernelRoute, device: str, places: Sequence[PodPlaces]) -> bool:
    network = route.network
    held = (span(network),)
    of_version = [
        each for each, version in zip(places, (4, 6), strict=True) if version == network.version
    ]
    if any(common_of(each.elsewhere, held) for each in of_version):
        return False  # pods elsewhere are neighbours on it too
    if any(common_of(each.here, held) for each in of_version):
        return True
    is_alone = network.prefixlen == WIDTHS[network.version]
    return is_alone and _pattern(device) != device


def _pattern(device: str) -> str:
    """Return the pattern by which network plugins name such a device; else its name."""
    return next((each for each in USUAL if each.endswith("+") and covers(each, device)), device)
