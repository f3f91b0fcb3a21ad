"""Byte offsets in the lab's packets, by IP version and protocol; none has IP options.

Every packet carries a tag: in the UDP payload, as the TCP sequence number, or as the SCTP initiate
tag. Wherever a packet turns up, and whatever its addresses are by then, the tag names its flow.

A tag is the flow's source port, inverted, followed by twice the number of its client. Port and
inverted port add up to 0xffff, so that checksums are the same for all flows of a client; and a tag
is even, so that a TCP acknowledgement, one more, differs from it in the last byte alone.

Nothing in a datagram of UDP says that it is an answer, and neither do its addresses where rules
have left these as they were. So a server writes a mark behind the tag.

Source: RFC 768, 791, 1071, 8200, 9260, 9293.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analyzer.model.addresses import IPV4

#: Length of an Ethernet header.
LINK: Final = 14

PROTOCOLS: Final = {"tcp": 6, "udp": 17, "sctp": 132}
#: In the payload of UDP, behind the tag: where a byte is 0, and what it is in an answer.
MARK: Final = 4
ANSWER: Final = 1
_TAGS: Final = {"tcp": 4, "udp": 8, "sctp": 16}
_CHECKSUMS: Final = {"tcp": 16, "udp": 6, "sctp": 8}
_TCP_ACKNOWLEDGEMENT: Final = 8
_TCP_FLAGS: Final = 13
_SCTP_CHUNK: Final = 12
_ICMP_HEADER: Final = 8


@dataclass(frozen=True, slots=True)
class PacketLayout:
    """Offsets in bytes from the start of the IP header."""

    version: int
    protocol: str

    @property
    def number(self) -> int:
        """The protocol's number in an IP header."""
        return PROTOCOLS[self.protocol]

    @property
    def icmp(self) -> int:
        """The protocol number of ICMP for this IP version."""
        return 1 if self.version == IPV4 else 58

    @property
    def ethertype(self) -> int:
        """The EtherType of this IP version."""
        return 0x0800 if self.version == IPV4 else 0x86DD

    @property
    def header(self) -> int:
        """Length of the IP header, bytes."""
        return 20 if self.version == IPV4 else 40

    @property
    def next_protocol(self) -> int:
        """Offset of the protocol number."""
        return 9 if self.version == IPV4 else 6

    @property
    def source(self) -> int:
        """Offset of the source address."""
        return 12 if self.version == IPV4 else 8

    @property
    def destination(self) -> int:
        """Offset of the destination address."""
        return 16 if self.version == IPV4 else 24

    @property
    def source_port(self) -> int:
        """Offset of the source port; the destination port follows it."""
        return self.header

    @property
    def tag(self) -> int:
        """Offset of the tag in the first packet of a flow and, except for TCP, in its answer."""
        return self.header + _TAGS[self.protocol]

    @property
    def mark(self) -> int:
        """Offset of the byte behind the tag that tells an answer of UDP from a flow: `ANSWER`."""
        return self.tag + MARK

    @property
    def checksum(self) -> int:
        """Offset of the protocol's checksum."""
        return self.header + _CHECKSUMS[self.protocol]

    @property
    def acknowledgement(self) -> int:
        """Offset of the TCP acknowledgement number."""
        return self.header + _TCP_ACKNOWLEDGEMENT

    @property
    def flags(self) -> int:
        """Offset of the TCP flags."""
        return self.header + _TCP_FLAGS

    @property
    def chunk(self) -> int:
        """Offset of the type of SCTP's first chunk."""
        return self.header + _SCTP_CHUNK

    @property
    def quoted(self) -> int:
        """Offset of the quoted packet in an ICMP error."""
        return self.header + _ICMP_HEADER
