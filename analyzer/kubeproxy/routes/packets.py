"""The packets of new flows from each kind of source, on their way to nat and after it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from analyzer.kubeproxy.view import Frontend, FrontendKind, Source
from analyzer.model.addresses import Address
from analyzer.model.devices import Devices, Side
from analyzer.model.packet import NO_DEVICE, Mark, Packet
from analyzer.model.region import Region
from analyzer.model.value import replace, value
from analyzer.semantics.assumed import BRIDGE_PORT

#: Where a flow from each kind of source enters the nat table.
HOOKS: Final = {
    Source.POD: "PREROUTING",
    Source.POD_ELSEWHERE: "PREROUTING",
    Source.NODE: "OUTPUT",
    Source.EXTERNAL: "PREROUTING",
    Source.HAIRPIN: "PREROUTING",  # of some endpoint, whose address is not known
}
#: Whether a source is an address of the node; the address itself may not be known.
_FROM_NODE: Final = {
    Source.POD: False,
    Source.POD_ELSEWHERE: False,
    Source.NODE: True,
    Source.EXTERNAL: False,
}
#: The side that a flow comes in from; for an endpoint it is not known.
SIDES: Final = {
    Source.POD: Side.POD,
    Source.POD_ELSEWHERE: Side.ELSEWHERE,
    Source.EXTERNAL: Side.OUTSIDE,
}


@enum.unique
class UsualAddress(enum.Enum):
    """What may be given in place of an address: the one known for the kind of source."""

    ADDRESS = "address"


USUAL: Final = UsualAddress.ADDRESS


def bridge_port(assumed: Mapping[str, str]) -> Mapping[Source, bool]:
    """Return whether flows pass a bridge port, for the sources for which that is assumed.

    Pods may be attached to one.
    """
    return {Source.EXTERNAL: False} if assumed.get(BRIDGE_PORT) == "none" else {}


@value
class First:
    """What is known of a flow before DNAT, if rules after it may match on that.

    Attributes:
        device: the one by which the first route of the node's own flows leads.
        original: the address and port that it was sent to, or others that no rule distinguishes
            from them.
    """

    device: str | Devices | None = None
    original: tuple[Address | None, int | None] | None = None


@value
class FlowPackets:
    """Makes the packets of flows.

    Attributes:
        sources: an address for each kind of source; None: none is known.
        bridge_port: as `bridge_port` returns it.
        node_port_address: the destination of flows to a NodePort, some address of the node; None:
            not known.
    """

    sources: Mapping[Source, Address | None]
    bridge_port: Mapping[Source, bool]
    node_port_address: Address | None = None

    def sent(
        self, source: Source, address: Region | Address | UsualAddress | None = USUAL
    ) -> Packet:
        """Return a packet from an address, or one of a region; None: its source is not known."""
        made_here = source is Source.NODE
        among = address if isinstance(address, Region) else None
        one = None if isinstance(address, Region | UsualAddress) else address
        return Packet(
            source=self.sources[source] if isinstance(address, UsualAddress) else one,
            sources=among,
            in_interface=NO_DEVICE if made_here else None,
            out_interface=None if made_here else NO_DEVICE,
            from_node=_FROM_NODE.get(source),
            bridge_port=self.bridge_port.get(source),
            comes_from=SIDES.get(source),
        )

    def sent_to(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        address: Region | Address | UsualAddress | None = USUAL,
    ) -> Packet:
        """Return the same packet on its way to a frontend."""
        return replace(
            self.sent(source, address),
            protocol=protocol,
            destination=frontend.address or self.node_port_address,
            destination_port=frontend.port,
            to_node=True if frontend.address is None else None,
            cluster_ip=frontend.address if frontend.kind is FrontendKind.CLUSTER_IP else None,
        )

    def translated(
        self,
        source: Source,
        protocol: str | None,
        mark: Mark,
        side: Side | None = None,
        first: First | None = None,
    ) -> Packet:
        """Return a packet that DNAT has sent on with a mark, from any address of a source.

        `side` is that of the source, if its kind does not determine it.
        """
        packet = replace(self.sent(source, None), protocol=protocol, mark=mark, translated=True)
        if first is not None:
            packet = replace(packet, original=first.original)
            if isinstance(first.device, str):
                packet = replace(packet, out_interface=first.device)
            elif first.device is not None:
                packet = replace(packet, leaves_by=first.device)
        return behind_nat(packet if side is None else replace(packet, comes_from=side), source)

    def is_told_by_mark(self, packet: Packet, source: Source) -> bool:
        """Return whether a packet after DNAT differs from the usual one in nothing but its mark."""
        other = self.translated(source, packet.protocol, packet.mark)
        addressed = {
            name: getattr(packet, name)
            for name in ("source", "sources", "destination", "destinations", "destination_port")
        }
        return behind_nat(packet, source) == replace(other, **addressed)


def behind_nat(packet: Packet, source: Source) -> Packet:
    """Return a packet that nat has sent on, as it reaches the later hooks."""
    # A hairpin flow leaves the node: only a source of the node itself could stay on it.
    return replace(packet, to_node=False) if source is Source.HAIRPIN else packet
