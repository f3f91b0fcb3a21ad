"""New flows as packets: built once by scapy, then patched and sent. The one file with scapy.

Every packet carries the number of its flow as a tag, in the UDP payload or as the TCP sequence
number, so that wherever it turns up, whatever its addresses are by then, we know which it was.
Flow number i has its own source address and port, so that each is new to conntrack.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address
from typing import Final

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from netns_lab.errors import LabError
from netns_lab.plan import CLIENT_PORTS

#: Where things stand in our Ethernet frames, whose IP header has no options.
IP_AT: Final = 14
PROTOCOL_AT: Final = 23
SOURCE_AT: Final = 26
DESTINATION_AT: Final = 30
SOURCE_PORT_AT: Final = 34
DESTINATION_PORT_AT: Final = 36
UDP_TAG_AT: Final = 42
TCP_SEQUENCE_AT: Final = 38
TCP_ACKNOWLEDGEMENT_AT: Final = 42
TCP_FLAGS_AT: Final = 47

PROTOCOLS: Final = {"tcp": 6, "udp": 17}

_CHECKSUM_AT: Final = {"tcp": 50, "udp": 40}
_IP_CHECKSUM_AT: Final = 24


#: What the template has where each flow's own address goes.
_NOBODY: Final = "0.0.0.0"  # noqa: S104  # nothing is bound to it


class Flows:
    """The first packets of new flows to one address and port.

    Raises:
        LabError: a protocol that the lab does not build.
    """

    def __init__(
        self,
        protocol: str,
        destination: tuple[IPv4Address, int],
        clients: tuple[IPv4Address, ...],
        macs: tuple[str, str],
    ) -> None:
        if protocol not in PROTOCOLS:
            raise LabError(f"the lab replays tcp and udp so far, not {protocol}")
        self._tag_at = UDP_TAG_AT if protocol == "udp" else TCP_SEQUENCE_AT
        self._checksum_at = _CHECKSUM_AT[protocol]
        self._clients = [int(address) for address in clients]
        self._frame = bytearray(_template(protocol, destination, macs))
        # Sums over what stays the same; source, port and tag are still 0.
        self._ip_sum = _sum(self._frame[IP_AT:SOURCE_PORT_AT])
        segment = self._frame[SOURCE_PORT_AT:]
        pseudo = _sum(self._frame[DESTINATION_AT:SOURCE_PORT_AT])
        self._segment_sum = _sum(segment) + pseudo + PROTOCOLS[protocol] + len(segment)

    @property
    def most(self) -> int:
        """How many flows there are ports and addresses for."""
        return len(self._clients) * len(CLIENT_PORTS)

    def source(self, number: int) -> tuple[int, int]:
        """Return the address, as an integer, and the port that flow `number` comes from."""
        at, port = divmod(number, len(CLIENT_PORTS))
        return self._clients[at], CLIENT_PORTS[port]

    def frame(self, number: int, room: int) -> bytearray:
        """Return the packet of flow `number`; it is overwritten by the next call.

        Sources repeat after `room` flows: conntrack must have forgotten them by then.
        """
        frame = self._frame
        address, port = self.source(number % room)
        halves = (address >> 16) + (address & 0xFFFF)
        struct.pack_into("!H", frame, _IP_CHECKSUM_AT, _fold(self._ip_sum + halves) ^ 0xFFFF)
        struct.pack_into("!I", frame, SOURCE_AT, address)
        struct.pack_into("!H", frame, SOURCE_PORT_AT, port)
        total = self._segment_sum + halves + port + (number >> 16) + (number & 0xFFFF)
        checksum = _fold(total) ^ 0xFFFF
        struct.pack_into("!I", frame, self._tag_at, number)
        # In UDP a sum of 0 would say that there is none.
        struct.pack_into("!H", frame, self._checksum_at, checksum or 0xFFFF)
        return frame


def _template(protocol: str, destination: tuple[IPv4Address, int], macs: tuple[str, str]) -> bytes:
    address, port = destination
    to, from_ = macs
    below = Ether(dst=to, src=from_) / IP(src=_NOBODY, dst=str(address), flags="DF", chksum=0)
    if protocol == "udp":
        packet = below / UDP(sport=0, dport=port, chksum=0) / Raw(bytes(8))
    else:
        options = [("MSS", 1460)]
        packet = below / TCP(sport=0, dport=port, flags="S", seq=0, chksum=0, options=options)
    return bytes(packet)


def _sum(data: bytes | bytearray) -> int:
    """Return the sum of 16-bit words that Internet checksums are made of (RFC 1071)."""
    padded = bytes(data) + b"\0" * (len(data) & 1)
    return sum(struct.unpack(f"!{len(padded) // 2}H", padded))


def _fold(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
