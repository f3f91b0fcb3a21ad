"""How nat changes a packet."""

from __future__ import annotations

from analyzer.model.addresses import Address
from analyzer.model.iptables.options import Range
from analyzer.model.iptables.targets import NatRange
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace


def translated(packet: Packet, to: NatRange) -> Packet:
    """Return the packet after a DNAT; what the kernel chooses from a range is not known."""
    address, port = packet.destination, packet.destination_port
    if to.first_address is not None:
        address = to.first_address if to.last_address in (None, to.first_address) else None
    if to.first_port is not None:
        port = to.first_port if to.last_port in (None, to.first_port) else None
    old: tuple[object, ...] = (packet.destination,)
    new: tuple[object, ...] = (address,)
    if to.first_port is not None:
        old, new = (*old, packet.destination_port), (*new, port)
    known = None not in (*old, *new)
    return replace(
        packet,
        destination=address,
        destinations=None,
        destination_port=port,
        to_node=None if to.first_address is not None else packet.to_node,
        cluster_ip=None if to.first_address is not None else packet.cluster_ip,
        # A translation to the original destination does not count.
        translated=(packet.translated or old != new) if known else packet.translated or None,
    )


def sourced(packet: Packet, to: NatRange) -> Packet:
    """Return the packet after an SNAT; the kernel may choose another port than it had."""
    single = to.last_address in (None, to.first_address)
    address = packet.source if to.first_address is None else to.first_address
    source = address if single else None
    return with_source(packet, source)


def masqueraded(packet: Packet) -> Packet:
    """Return the packet after MASQUERADE: with an address of the interface by which it leaves."""
    return replace(with_source(packet, None), is_masquerades=True)


def with_source(packet: Packet, source: Address | None) -> Packet:
    """Return the packet with another source."""
    return replace(
        packet,
        source=source,
        sources=None,
        source_port=None,
        from_node=None,
        masqueraded=True,
        is_masquerades=False,
    )


def redirected(packet: Packet, ports: Range | None, is_local: Ternary) -> Packet:
    """Return the packet after a REDIRECT: to an address of the node, not known which.

    `is_local`: whether it went to the node already, maybe to that very address: then nothing is
    translated, unless its port is not one of `ports`.

    Source: Linux, net/netfilter/nf_nat_core.c, ``nf_nat_setup_info``.
    """
    old = port = packet.destination_port
    if ports is not None:
        port = ports.first if ports.first == ports.last else None
    moves = ports is not None and old is not None and not ports.first <= old <= ports.last
    changes = packet.translated or moves or is_local is Ternary.FALSE
    return replace(
        packet,
        destination=None,
        destinations=None,
        destination_port=port,
        to_node=True,
        cluster_ip=None,
        translated=True if changes else None,
    )
