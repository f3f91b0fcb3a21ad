"""A Service with its pods moved to other nodes: the building block of placement measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from analyzer.advice.hints import rehinted
from analyzer.advice.measure import ClusterState, Refused
from analyzer.advice.objects import (
    address_of,
    is_usable,
    moved,
    nodes_of,
    service_of,
    slices_of,
    with_slices,
    zone_of,
)
from analyzer.advice.takers import FreeAddresses, Takers, takers
from analyzer.model.value import replace
from analyzer.parsers.api_objects import Object, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from analyzer.advice.measure import NamespacedName
    from analyzer.model.addresses import Address
    from analyzer.model.cluster import Cluster

    #: Given the node of each pod, returns the nodes of the pods after the change.
    Placing: TypeAlias = Callable[[Sequence[str], Takers], Sequence[str] | Refused]


def places_of(items: Sequence[Object], key: NamespacedName, cluster: Cluster) -> list[str | None]:
    """Return the node of each ready pod behind a Service, for one IP version, in their order."""
    pods = _pods(slices_of(items, key))
    family = min((address.version for address in pods), default=0)
    return [cluster.placement(address).node for address in pods if address.version == family]


def placed(
    situation: ClusterState, key: NamespacedName, placing: Placing
) -> ClusterState | Refused:
    """Return a situation in which `placing` has chosen the nodes of a Service's pods."""
    free = FreeAddresses(situation.items)
    slices = slices_of(situation.items, key)
    pods = _pods(slices)
    if not pods:
        return Refused("it has no ready endpoints")
    places = {address: free.cluster.placement(address).node for address in pods}
    unknown = sum(node is None for node in places.values())
    if unknown:
        return Refused(f"the node of {unknown:,} of its endpoints is not known")
    service = service_of(situation.items, key)
    if service is None:
        return Refused("the Service itself is not among the objects")
    made = [{**each, "endpoints": [*elements(each, "endpoints")]} for each in slices]
    gone: list[Address] = []
    for family in sorted({address.version for address in pods}):
        own = {a: ends for a, ends in pods.items() if a.version == family}
        now = [str(places[address]) for address in own]
        # The address of a node is that of all pods in its network.
        are_own = not free.is_of_node(next(iter(own)))
        can = takers(situation.items, now, own if are_own else ())
        wanted = placing(now, can)
        if isinstance(wanted, Refused):
            return wanted
        refused = _place(_Family(own, made, free, situation.items), wanted, gone)
        if refused is not None:
            return refused
    hinted = rehinted(service, slices, [_compact(each) for each in made])
    if isinstance(hinted, Refused):
        return hinted
    return replace(situation, items=with_slices(situation.items, key, hinted, gone))


class _Family:
    """The pods of one IP version, and where changes to them are written."""

    def __init__(
        self,
        pods: dict[Address, list[tuple[int, int, Any]]],
        slices: list[dict[str, Any]],
        free: FreeAddresses,
        items: Sequence[Object],
    ) -> None:
        self.pods = pods
        self.slices = slices
        self.zones = {name: zone_of(node) for name, node in nodes_of(items).items()}
        self.free = free
        first = next(iter(pods))
        self.is_host = free.is_of_node(first)
        self.first = first

    def address(self, node: str) -> Address | None:
        """Return an address for one more pod on a node; None if all known ones are in use."""
        if not self.is_host:
            return self.free.new(node, self.first)
        return self.free.of_node(node, self.first.version)

    def put(self, address: Address | None, node: str, to: Address) -> None:
        """Move a pod to a node, or add a copy of the first if there is none to move."""
        ends = self.pods[self.first if address is None else address]
        for number, at, endpoint in ends:
            new = moved(endpoint, to, node, self.zones.get(node))
            if address is None:
                self.slices[number]["endpoints"].append(new)
            else:
                self.slices[number]["endpoints"][at] = new

    def drop(self, address: Address) -> None:
        """Remove a pod."""
        for number, at, _ in self.pods[address]:
            self.slices[number]["endpoints"][at] = None


def _place(family: _Family, wanted: Sequence[str], gone: list[Address]) -> Refused | None:
    """Move as few pods as it takes, and add or drop what is left."""
    if family.is_host and max(Counter(wanted).values(), default=0) > 1:
        return Refused("its pods have their nodes' addresses: no node can have two of them")
    missing = Counter(wanted)
    surplus = []
    for address in family.pods:
        node = str(family.free.cluster.placement(address).node)
        if missing[node]:
            missing[node] -= 1
        else:
            surplus.append(address)
    for node in (node for node in wanted if missing[node] > 0):
        missing[node] -= 1
        to = family.address(node)
        if to is None:
            return Refused(f"{node} has no free address for its pods")
        source = surplus.pop(0) if surplus else None
        family.put(source, node, to)
        if source is not None:
            gone.append(source)
    for address in surplus:
        family.drop(address)
        gone.append(address)
    return None


def _compact(item: Object) -> Object:
    return {**item, "endpoints": [each for each in item["endpoints"] if each is not None]}


def _pods(slices: Sequence[Object]) -> dict[Address, list[tuple[int, int, Any]]]:
    """Return where each ready pod stands: the number of the slice, the place there, and itself."""
    found: dict[Address, list[tuple[int, int, Any]]] = {}
    for number, item in enumerate(slices):
        for at, endpoint in enumerate(elements(item, "endpoints")):
            address = address_of(endpoint) if is_usable(endpoint) else None
            if address is not None and item.get("addressType") != "FQDN":
                found.setdefault(address, []).append((number, at, endpoint))
    return found
