"""Fields of many packets at once, read from memory in which every packet has a slot.

An address and port of IPv4 stand in eight bytes with another port between them, which one operation
on a large integer clears in all packets of a batch: a tuple for each packet took three times as
long to make, to compare and to free.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Final, TypeAlias

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.addresses import IPV4
from netns_lab.layout import PacketLayout
from netns_lab.ring import Slots

#: Of an IPv4 address.
_OCTETS: Final = 4
#: What of the destination's address, the source port and the destination port is a socket address.
_OF_SOCKET_ADDRESS: Final = b"\xff\xff\xff\xff\0\0\xff\xff"
#: The difference between an acknowledgement and the tag, which is even.
_ONE_MORE: Final = b"\0\0\0\1"
_WORD: Final = 8

#: A port whose half of a tag is zeros.
NO_PORT: Final = 0xFFFF

#: An address and a port as they stand in memory. IPv4: one word of address, zeros and port; IPv6:
#: two words of the address, and the port.
RawSocketAddress: TypeAlias = int | tuple[int, ...]
#: Where a flow arrived, and whether its client was answered.
FlowResult: TypeAlias = tuple[RawSocketAddress | None, bool | None]


def raw_sockaddr(address: bytes, port: int) -> RawSocketAddress:
    """Return what a packet to or from an address and port has in memory."""
    if len(address) == _OCTETS:
        return int.from_bytes(address + bytes(2) + port.to_bytes(2), sys.byteorder)
    view = memoryview(address + port.to_bytes(2))
    return (*view[:16].cast("Q"), view[16:].cast("H")[0])


def raw_sockaddrs(endpoints: Iterable[Endpoint]) -> set[RawSocketAddress]:
    """Return the same of endpoints, without those whose port is not known."""
    every = ((each.address.packed, each.port) for each in endpoints)
    return {raw_sockaddr(address, port) for address, port in every if port is not None}


def sockaddr_of(raw: RawSocketAddress) -> tuple[int, int]:
    """Return the address, as an integer, and the port."""
    *address, port = _parts(raw)
    return int.from_bytes(b"".join(address)), int.from_bytes(port)


@lru_cache(maxsize=1024)
def _parts(raw: RawSocketAddress) -> tuple[bytes, ...]:
    """Return the bytes of a socket address by column: one or two of the address, and the port."""
    if isinstance(raw, int):
        word = raw.to_bytes(_WORD, sys.byteorder)
        return word[:4], word[6:]
    *words, port = raw
    return *(word.to_bytes(_WORD, sys.byteorder) for word in words), port.to_bytes(2, sys.byteorder)


def tag_of(client: int, port: int) -> int:
    """Return a flow's tag as it stands in memory."""
    tag = (port ^ 0xFFFF) << 16 | client << 1
    return int.from_bytes(tag.to_bytes(4), sys.byteorder)


class SocketAddresses:
    """The addresses and ports at one end of packets.

    Args:
        columns: of the address, in one or two, and of the port.
        whole: for IPv4, a column of address, any two bytes, and port, if they stand so.
    """

    def __init__(self, columns: Sequence[memoryview], whole: memoryview | None = None) -> None:
        self._columns = tuple(columns)
        self._whole = whole

    def read(self, first: int, last: int) -> Sequence[RawSocketAddress]:
        """Return those of some packets."""
        if self._whole is not None:
            data = self._whole[first:last].tobytes()
            sockaddrs = int.from_bytes(data, sys.byteorder) & _repeated(
                _OF_SOCKET_ADDRESS, last - first
            )
            return memoryview(sockaddrs.to_bytes(len(data), sys.byteorder)).cast("Q").tolist()
        ends = [column[first:last].tolist() for column in self._columns]
        if len(ends) > len(("address", "port")):
            return list(zip(*ends, strict=True))
        return list(map(_joined, *ends))

    def which_are(self, sockaddr: RawSocketAddress, first: int, last: int) -> list[bool] | None:
        """Return for each of some packets whether this is a socket address; None: for all it is."""
        number = last - first
        columns = zip(self._columns, _parts(sockaddr), strict=True)
        if all(column[first:last].tobytes() == part * number for column, part in columns):
            return None
        return [each == sockaddr for each in self.read(first, last)]


def _joined(address: int, port: int) -> int:
    """Return a socket address of IPv4, of two numbers as they stand in memory."""
    return address | port << 48 if sys.byteorder == "little" else address << 32 | port


@cache
def _repeated(pattern: bytes, number: int) -> int:
    return int.from_bytes(pattern * number, sys.byteorder)


class Columns:
    """The fields of packets that are asked for.

    Args:
        ends: source and destination addresses, in words, if these are not in the slots.
    """

    def __init__(
        self, slots: Slots, layout: PacketLayout, ends: tuple[Sequence[memoryview], ...] = ()
    ) -> None:
        self._slots = slots
        self._layout = layout
        self._tag = slots.column("I", layout.tag)
        ports = [slots.column("H", layout.source_port + at) for at in (0, 2)]
        if ends:
            self.of, self.to = (SocketAddresses([*e, p]) for e, p in zip(ends, ports, strict=True))
        else:
            self.of = SocketAddresses([*self._address(layout.source), ports[0]])
            whole = slots.column("Q", layout.destination) if layout.version == IPV4 else None
            self.to = SocketAddresses([*self._address(layout.destination), ports[1]], whole)
        self._protocol = slots.column("B", layout.next_protocol)
        if layout.protocol == "tcp":
            self._flags = slots.column("B", layout.flags)
            self._acknowledgement = slots.column("I", layout.acknowledgement)
        elif layout.protocol == "udp":
            self._mark = slots.column("B", layout.mark)

    def _address(self, at: int) -> list[memoryview]:
        if self._layout.version == IPV4:
            return [self._slots.column("I", at)]
        return [self._slots.column("Q", at), self._slots.column("Q", at + _WORD)]

    def tags(self, first: int, last: int) -> list[int]:
        """Return the tags of first packets and, except for TCP, of answers."""
        return self._tag[first:last].tolist()

    def protocols(self, first: int, last: int) -> bytes:
        """Return the protocols in the headers of IP."""
        return self._protocol[first:last].tobytes()

    def flags(self, first: int, last: int) -> bytes:
        """Return the flags of TCP."""
        return self._flags[first:last].tobytes()

    def marks(self, first: int, last: int) -> bytes:
        """Return the bytes of UDP by which answers are told from the first packets of flows."""
        return self._mark[first:last].tobytes()

    def acknowledged(self, first: int, last: int) -> list[int]:
        """Return the tags that TCP acknowledges; of anything else no tag."""
        data = self._acknowledgement[first:last].tobytes()
        tags = int.from_bytes(data, sys.byteorder) ^ _repeated(_ONE_MORE, last - first)
        return memoryview(tags.to_bytes(len(data), sys.byteorder)).cast("I").tolist()

    def quoted(self) -> tuple[SocketAddresses, memoryview]:
        """Return whom packets were for that errors of ICMP quote, and the tags of these."""
        layout, slots = self._layout, self._slots
        inner = layout.quoted
        port = slots.column("H", inner + layout.source_port + 2)
        address = self._address(inner + layout.destination)
        return SocketAddresses([*address, port]), slots.column("I", inner + layout.tag)
