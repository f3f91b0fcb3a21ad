"""The packet that a ruleset is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
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
