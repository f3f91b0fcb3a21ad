"""A packet socket with a ring buffer that is mapped into memory (PACKET_RX_RING).

Theory of operation
===================

The kernel puts each packet into the next slot of a ring and then sets the slot's status. All slots
are of one size, so that a field of many packets is one strided view of the memory (`column`), and
no packet is a system call or an object. A slot is the kernel's again when its status is 0.

Source: packet(7); Linux, Documentation/networking/packet_mmap.rst; net/packet/af_packet.c,
``tpacket_rcv``.
"""

from __future__ import annotations

import ctypes
import mmap
import socket
import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from netns_lab.namespace import Namespace

_SO_ATTACH_FILTER: Final = 26
_SOL_PACKET: Final = 263
_PACKET_RX_RING: Final = 5
_PACKET_STATISTICS: Final = 6
_PACKET_VERSION: Final = 10
_TPACKET_V2: Final = 1
_BLOCK: Final = 1 << 16
#: Where the header of IP stands in a slot: TPACKET2_HDRLEN and 16 bytes for the link's header,
#: aligned to 16.
IP_AT: Final = 80
#: Slots looked at in one go.
_AT_ONCE: Final = 256
_WIDTHS: Final = {"B": 1, "H": 2, "I": 4, "Q": 8}

#: An instruction of a classic BPF program: code, jump if true, jump if false, constant.
Instruction = tuple[int, int, int, int]


class _SockFprog(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Slots:
    """Memory in slots of one size, read in columns."""

    def __init__(self, memory: memoryview, size: int, ip_at: int) -> None:
        self._memory = memory
        self._size = size
        self._ip_at = ip_at

    def column(self, kind: Literal["B", "H", "I", "Q"], at: int) -> memoryview:
        """Return one field of all slots, `at` bytes behind the beginning of the IP header."""
        width = _WIDTHS[kind]
        return self._memory.cast(kind)[(self._ip_at + at) // width :: self._size // width]


class Ring:
    """The packets that pass a filter and come in by one device.

    Args:
        slot: bytes of a slot, a power of two; a packet's bytes behind it are left out.
        most: packets that find room.
    """

    def __init__(
        self,
        namespace: Namespace,
        device: str,
        ethertype: int,
        program: Sequence[Instruction],
        *,
        slot: int,
        most: int,
    ) -> None:
        # Bound only once it is filtered: protocol 0 until then, so that nothing slips in.
        self._socket = namespace.socket(socket.AF_PACKET, socket.SOCK_RAW)
        attach(self._socket, program)
        blocks = -(-most * slot // _BLOCK)
        self._count = blocks * _BLOCK // slot
        self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        ring = struct.pack("=IIII", _BLOCK, blocks, slot, self._count)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, ring)
        self._memory = mmap.mmap(self._socket.fileno(), blocks * _BLOCK, mmap.MAP_SHARED)
        self.slots = Slots(memoryview(self._memory), slot, IP_AT)
        self._status = self.slots.column("I", -IP_AT)
        self._free = memoryview(array("I", bytes(4 * self._count)))
        self._head = 0
        self._waiting = 0
        self._socket.bind((device, ethertype))

    def waiting(self) -> int:
        """Return how many packets there are to take: at most as many as find room."""
        while self._waiting < self._count:
            if not self._status[(self._head + self._waiting) % self._count]:
                break
            self._waiting += 1
        return self._waiting

    def take(self) -> Iterator[tuple[int, int]]:
        """Give ranges of slots with new packets; each is the kernel's again behind its turn."""
        while self._status[self._head]:
            head = self._head
            status = self._status[head : head + _AT_ONCE].tolist()
            end = head + (status.index(0) if 0 in status else len(status))
            yield head, end
            self._status[head:end] = self._free[: end - head]
            self._head = end % self._count
            self._waiting = 0

    def dropped(self) -> int:
        """Return how many packets found no room since the last call."""
        statistics = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", statistics)[1])

    def close(self) -> None:
        """Stop; this takes the kernel a grace period of RCU, so let threads do it."""
        self._socket.close()


def attach(sock: socket.socket, program: Sequence[Instruction]) -> None:
    """Let a socket receive only what passes a filter."""
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    held = ctypes.create_string_buffer(code)
    prog = _SockFprog(len(program), ctypes.addressof(held))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(prog))
