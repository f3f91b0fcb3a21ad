"""Which packet arrived where: AF_PACKET sockets that tell flows by their tags.

Every packet has landed by the time send() returns, since veth delivers within it; so the counting
goes in lock-step: send a batch, read every socket until it is empty.

Source: packet(7); Linux, net/core/filter.c for the filter's instructions.
"""

from __future__ import annotations

import ctypes
import itertools
import socket
import struct
from collections.abc import Iterator
from typing import Final

from netns_lab.backend import Door
from netns_lab.namespace import Namespace
from netns_lab.replay import (
    DESTINATION_AT,
    DESTINATION_PORT_AT,
    IP_AT,
    PROTOCOL_AT,
    PROTOCOLS,
    SOURCE_AT,
    SOURCE_PORT_AT,
    TCP_ACKNOWLEDGEMENT_AT,
    TCP_FLAGS_AT,
    TCP_SEQUENCE_AT,
    UDP_TAG_AT,
)
from netns_lab.servers import make_room
from netns_lab.topology import Topology

_ETH_P_IP: Final = 0x0800
_SO_ATTACH_FILTER: Final = 26
_SOL_PACKET: Final = 263
_PACKET_STATISTICS: Final = 6
#: Ancillary data that a filter can load: the packet's type, 0 when it is for this host.
_SKF_AD_PKTTYPE: Final = 0xFFFFF000 + 4

_LDH_ABS: Final = 0x28
_LDB_ABS: Final = 0x30
_JEQ: Final = 0x15
_RETURN: Final = 0x06

_SYN: Final = 0x02
_RST: Final = 0x04
_SYN_ACK: Final = 0x12

_U32: Final = struct.Struct("!I").unpack_from
_U16: Final = struct.Struct("!H").unpack_from
_FRAME: Final = 256


class _SockFprog(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _filter(sock: socket.socket, protocol: int) -> None:
    """Let through what is for this host, IPv4 and of one protocol."""
    program = [
        (_LDH_ABS, 0, 0, 12),
        (_JEQ, 0, 5, _ETH_P_IP),
        (_LDB_ABS, 0, 0, PROTOCOL_AT),
        (_JEQ, 0, 3, protocol),
        (_LDB_ABS, 0, 0, _SKF_AD_PKTTYPE),
        (_JEQ, 0, 1, 0),
        (_RETURN, 0, 0, 0x40000),
        (_RETURN, 0, 0, 0),
    ]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    held = ctypes.create_string_buffer(code)
    prog = _SockFprog(len(program), ctypes.addressof(held))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(prog))


class Capture:
    """The packets of one protocol that come in by one device."""

    def __init__(self, namespace: Namespace, device: str, protocol: str) -> None:
        # Bound only once it is filtered: protocol 0 until then, so that nothing slips in.
        self._socket = namespace.socket(socket.AF_PACKET, socket.SOCK_RAW)
        make_room(self._socket)
        _filter(self._socket, PROTOCOLS[protocol])
        self._socket.bind((device, _ETH_P_IP))
        self._socket.setblocking(False)
        self._buffer = bytearray(_FRAME)

    def frames(self) -> Iterator[bytearray]:
        """Give what has come since, each overwritten by the next."""
        try:
            while True:
                self._socket.recv_into(self._buffer)
                yield self._buffer
        except BlockingIOError:
            pass

    def dropped(self) -> int:
        """Return how many packets found no room since the last call."""
        statistics = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", statistics)[1])


class LocalDelivery:
    """The packets of one protocol that a namespace's own IP stack takes, behind INPUT.

    A raw(7) socket: the addresses are those after DNAT and after un-DNAT. It does not tell what
    it drops; that shows as unaccounted.
    """

    def __init__(self, namespace: Namespace, protocol: str) -> None:
        self._socket = namespace.socket(socket.AF_INET, socket.SOCK_RAW, PROTOCOLS[protocol])
        make_room(self._socket)
        self._socket.setblocking(False)
        self._buffer = bytearray(_FRAME)

    def frames(self) -> Iterator[bytearray]:
        """Give what has come since, as if in an Ethernet frame."""
        view = memoryview(self._buffer)[IP_AT:]
        try:
            while True:
                self._socket.recv_into(view)
                yield self._buffer
        except BlockingIOError:
            pass


class Captures:
    """All that hears the flows of one protocol in a lab, for as long as the lab is there.

    To close an AF_PACKET socket takes the kernel a grace period of RCU: they serve for all routes.
    """

    def __init__(self, topology: Topology, protocol: str) -> None:
        self.hosts = [Capture(host.namespace, host.device, protocol) for host in topology.hosts]
        self.node = LocalDelivery(topology.node, protocol)
        ends = (topology.client, topology.outside)
        self.clients = [Capture(host.namespace, host.device, protocol) for host in ends]

    def forget(self) -> None:
        """Pass over what was heard so far."""
        heard = [each.frames() for each in (*self.hosts, *self.clients)]
        for _ in itertools.chain(*heard, self.node.frames()):
            pass
        self.dropped()

    def dropped(self) -> int:
        """Return how many packets found no room since the last call."""
        return sum(each.dropped() for each in (*self.hosts, *self.clients))


def landing(frame: bytearray, protocol: str) -> tuple[int, Door] | None:
    """Return the flow's number and the door at which its first packet arrived."""
    door = _U32(frame, DESTINATION_AT)[0], _U16(frame, DESTINATION_PORT_AT)[0]
    if protocol == "udp":
        return _U32(frame, UDP_TAG_AT)[0], door
    if frame[TCP_FLAGS_AT] & _SYN_ACK != _SYN:
        return None
    return _U32(frame, TCP_SEQUENCE_AT)[0], door


def answer(frame: bytearray, protocol: str) -> tuple[int, bool, Door] | None:
    """Return the flow's number, whether it was accepted, and the door that answers."""
    door = _U32(frame, SOURCE_AT)[0], _U16(frame, SOURCE_PORT_AT)[0]
    if protocol == "udp":
        return _U32(frame, UDP_TAG_AT)[0], True, door
    flags = frame[TCP_FLAGS_AT]
    number = (_U32(frame, TCP_ACKNOWLEDGEMENT_AT)[0] - 1) & 0xFFFFFFFF
    if flags & _SYN_ACK == _SYN_ACK:
        return number, True, door
    return (number, False, door) if flags & _RST else None
