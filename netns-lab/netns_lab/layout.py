"""Where things stand in the lab's packets, by IP version and protocol; none has IP options.

Every packet carries a tag, in the UDP payload, as the TCP sequence number or as the initiate tag
of SCTP. So wherever it turns up, whatever its addresses are by then, we know which flow it began.

A tag is the flow's source port, inverted, and behind it twice the number of its client. Port and
inverted port add up to 0xffff, so that checksums are the same for all flows of a client; and a tag
is even, so that an acknowledgement of TCP, one more, differs from it in the last byte alone.

Source: RFC 768, 791, 1071, 8200, 9260, 9293.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analyzer.model.addresses import IPV4

#: Of Ethernet.
LINK: Final = 14

PROTOCOLS: Final = {"tcp": 6, "udp": 17, "sctp": 132}
_TAGS: Final = {"tcp": 4, "udp": 8, "sctp": 16}
_CHECKSUMS: Final = {"tcp": 16, "udp": 6, "sctp": 8}
_TCP_ACKNOWLEDGEMENT: Final = 8
_TCP_FLAGS: Final = 13
_SCTP_CHUNK: Final = 12
_ICMP_HEADER: Final = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in bytes behind the beginning of the IP header."""

    version: int
    protocol: str

    @property
    def number(self) -> int:
        """The protocol's number in an IP header."""
        return PROTOCOLS[self.protocol]

    @property
    def icmp(self) -> int:
        """The number of the ICMP that goes with this version."""
        return 1 if self.version == IPV4 else 58

    @property
    def ethertype(self) -> int:
        """Of frames of this version."""
        return 0x0800 if self.version == IPV4 else 0x86DD

    @property
    def header(self) -> int:
        """How long the IP header is."""
        return 20 if self.version == IPV4 else 40

    @property
    def next_protocol(self) -> int:
        """Where the protocol stands."""
        return 9 if self.version == IPV4 else 6

    @property
    def source(self) -> int:
        """Where the source address stands."""
        return 12 if self.version == IPV4 else 8

    @property
    def destination(self) -> int:
        """Where the destination address stands."""
        return 16 if self.version == IPV4 else 24

    @property
    def source_port(self) -> int:
        """Where the source port stands; the destination port comes behind it."""
        return self.header

    @property
    def tag(self) -> int:
        """Where the tag stands in the first packet of a flow and, but for TCP, in its answer."""
        return self.header + _TAGS[self.protocol]

    @property
    def checksum(self) -> int:
        """Where the protocol's checksum stands."""
        return self.header + _CHECKSUMS[self.protocol]

    @property
    def acknowledgement(self) -> int:
        """Where the acknowledgement of TCP stands."""
        return self.header + _TCP_ACKNOWLEDGEMENT

    @property
    def flags(self) -> int:
        """Where the flags of TCP stand."""
        return self.header + _TCP_FLAGS

    @property
    def chunk(self) -> int:
        """Where the first chunk's type of SCTP stands."""
        return self.header + _SCTP_CHUNK

    @property
    def quoted(self) -> int:
        """Where, in an error of ICMP, the packet stands that it is about."""
        return self.header + _ICMP_HEADER
