"""The devices by which pods' flows arrive and leave: what is assumed about them.

Theory of operation
===================

A dump names devices, but does not say whose they are. Each network plugin names those of pods in
its own way (`USUAL`); a node has one plugin, so its pods are behind the devices with such names
that its rules mention. Traffic from or to other places passes none of these. Any other device, such
as Docker's bridge, is then no pod's. The source of a flow shows which side it comes in from
(`Packet.comes_from`), and its destination where it leaves, as far as it is known where these
addresses are.

Some plugins, such as Calico, dispatch the flows of each pod to a chain of its own, by its device,
and drop those of all other devices. Then each pod is taken to be behind one of the devices named
there: it is known which devices exist, but not which is whose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from analyzer.model.addresses import Address
from analyzer.model.devices import Devices, Side, covers, meets
from analyzer.model.intervals import Intervals, holds
from analyzer.model.region import Region
from analyzer.model.routing import LOOPBACK
from analyzer.model.ternary import Ternary
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Names of pods' devices by network plugin: Calico; Cilium; the CNI plugins bridge and ptp; AWS;
#: kubenet; kube-router; Azure; GKE.
USUAL: Final = (
    *("cali+", "lxc+", "cni0", "veth+", "eni+"),
    *("cbr0", "kube-bridge", "azv+", "gke+"),
)
#: The value of the assumption that represents these.
USUALLY: Final = "usual"
#: Devices that pods' flows share with others, or that only some pods use: Cilium, Weave, Azure's
#: bridge, Antrea, OVN, AWS's pods with security groups of their own.
SHARED: Final = (
    *("cilium_+", "weave+", "azure0", "antrea-gw+"),
    *("ovn-+", "ovn0", "vlan+"),
)
#: Bridges of containers and virtual machines on the node.
BRIDGES: Final = ("docker0", "docker_gwbridge", "br-+", "virbr+", "lxdbr+", "podman+")
#: Devices of other things on the node: no other node's pods are behind them.
LOCAL: Final = (*BRIDGES, LOOPBACK)
#: What the node sends to an address that is not its own leaves by another device than this.
NOT_LOOPBACK: Final = Devices((LOOPBACK,), inside=False)
#: Cilium's node sends to its own pods through this device, unless it has a route for each.
_TO_LXC: Final = ("cilium_host", "lxc+")


def _of(pods: str, one_by_one: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the devices of pods that rules dispatch, if all of them reach such rules."""
    found = [names for come, names in one_by_one.items() if covers(come, pods)]
    return frozenset([name for names in found for name in names if covers(pods, name)])


@value
class PodPlaces:
    """Addresses of one IP version whose place is known: on this node, or elsewhere.

    `routed` are devices with the addresses that the node's routes lead to by them; empty: the
    routes are not known.
    """

    here: Intervals = ()
    elsewhere: Intervals = ()
    routed: tuple[tuple[str, Intervals], ...] = ()


class NodeDevices:
    """The devices of one node.

    `named` returns the devices that its rules name; `places` returns where addresses are;
    `dispatched` returns those that rules dispatch one by one, dropping all others, for incoming or
    outgoing flows, by the names of the devices whose flows reach these rules. They are called only
    when a rule matches on a device.
    """

    def __init__(
        self,
        named: Callable[[], frozenset[str]],
        places: Callable[[], PodPlaces] = PodPlaces,
        dispatched: Callable[[bool], Mapping[str, frozenset[str]]] = lambda _: {},
    ) -> None:
        self._find_named = named
        self._find_places = places
        self._dispatched = dispatched
        self._named: frozenset[str] | None = None
        self._places: PodPlaces | None = None
        self._known: dict[tuple[str, Side, bool], Devices] = {}

    @property
    def named(self) -> frozenset[str]:
        """The devices that the node's rules name."""
        if self._named is None:
            self._named = self._find_named()
        return self._named

    @cached_property
    def names_bridges(self) -> bool:
        """Whether the node's rules name bridges by which no flow comes from outside."""
        return any(covers(bridge, name) for name in self.named for bridge in BRIDGES)

    def of(self, side: Side, patterns: str, *, leaving: bool) -> Devices:
        """Return the devices by which flows come in from a side, or leave to it.

        `patterns` are those of pods' devices with spaces between them, or `USUALLY`.
        """
        key = patterns, side, leaving
        if key not in self._known:
            self._known[key] = self._told(side, patterns, leaving=leaving)
        return self._known[key]

    def _told(self, side: Side, patterns: str, *, leaving: bool) -> Devices:
        is_usual = patterns == USUALLY
        pods = USUAL if is_usual else tuple(patterns.split())
        shared = tuple(each for each in SHARED if is_usual or each not in pods)
        if side is not Side.POD:
            if side is Side.ELSEWHERE:
                return Devices((*pods, *LOCAL), inside=False, open=shared)
            return Devices((*pods, LOOPBACK), inside=False, open=shared, beside=BRIDGES)
        if is_usual:
            if leaving and _TO_LXC[0] in self.named:
                shared = (*shared, _TO_LXC[1])
            found = tuple(each for each in pods if any(meets(each, name) for name in self.named))
            pods = found or pods
        else:  # who names them knows
            shared = ()
        one_by_one = self._dispatched(leaving)
        theirs = [_of(each, one_by_one) for each in pods]
        # Otherwise the rules would drop all that the pod sends or receives. Not if its device may
        # have another kind of name, which need not reach these rules.
        if theirs and all(theirs):
            return Devices((), inside=True, open=shared, names=frozenset().union(*theirs))
        return Devices(pods, inside=True, open=shared)

    @property
    def knows_any(self) -> bool:
        """Whether the place of any address is known."""
        places = self._known_places()
        return bool(places.here or places.elsewhere)

    def knows_some(self, among: Region | None) -> bool:
        """Return whether the place of some of the addresses `among` is known."""
        if among is None:
            return False
        places = self._known_places()
        return bool(among.common(places.here) or among.common(places.elsewhere))

    def _known_places(self) -> PodPlaces:
        if self._places is None:
            self._places = self._find_places()
        return self._places

    def side(self, address: Address | None, among: Region | None = None) -> Side | None:
        """Return the side of an address, or of all `among` some; None if it is not known.

        Raises:
            Parted: some of them are on another side than others.
        """
        places = self._known_places()
        if not places.here and not places.elsewhere:
            return None
        for side, held in ((Side.POD, places.here), (Side.ELSEWHERE, places.elsewhere)):
            if address is not None:
                is_there = holds(held, int(address))
            else:
                is_there = among is not None and among.is_within(held) is Ternary.TRUE
            if is_there:
                return side
        return None

    @property
    def is_routed(self) -> bool:
        """Whether the node's routes are known."""
        return bool(self._known_places().routed)

    def routed(self, address: Address | None, among: Region | None = None) -> str | None:
        """Return the device by which the node's routes lead to an address, or to all `among` some.

        None: it is not known.

        Raises:
            Parted: they lead to some of them by other devices than to others.
        """
        for device, held in self._known_places().routed:
            if address is not None:
                is_there = holds(held, int(address))
            else:
                is_there = among is not None and among.is_within(held) is Ternary.TRUE
            if is_there:
                return device
        return None
