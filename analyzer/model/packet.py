"""The packet that a ruleset is asked about."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from analyzer.model.value import value

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


def address_from_text(text: str) -> Address | None:
    """Return the address that `text` spells, or None."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def network_from_text(text: str) -> Network | None:
    """Return the network that `text` spells, its host bits cleared; None for other text."""
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


@value(kw_only=True)
class Packet:
    """The first packet of a flow. A field that is None is not known.

    Attributes:
        protocol: as iptables prints it: ``tcp``, ``udp``, ``icmp``, a number.
        mark: the packet's mark, 32 bits; a packet that nobody marked has 0.
        in_interface: the device it came in by; the empty string: it was made on the node.
        out_interface: the device it leaves by; the empty string: it stays on the node.
        translated: whether a DNAT of this ruleset has changed its destination.
    """

    protocol: str | None = None
    source: Address | None = None
    source_port: int | None = None
    destination: Address | None = None
    destination_port: int | None = None
    mark: int | None = 0
    in_interface: str | None = None
    out_interface: str | None = None
    translated: bool | None = False


#: A packet of which nothing is known.
UNKNOWN_PACKET = Packet(mark=None, translated=None)
