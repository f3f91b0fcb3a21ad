"""Slow endpoints: packets are queued to user space (NFQUEUE) and reinjected milliseconds later.

Not every kernel has netem; one with the xtables targets also has netfilter queues.

Source: Linux, net/netfilter/nfnetlink_queue.c; include/uapi/linux/netfilter/nfnetlink_queue.h.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from typing import Final

from netns_lab.errors import LabError
from netns_lab.namespace import Namespace
from netns_lab.netlink import attribute, attributes

_NETFILTER: Final = 12
_QUEUE: Final = 3 << 8
_PACKET, _VERDICT, _CONFIG = _QUEUE | 0, _QUEUE | 1, _QUEUE | 2
_REQUEST, _ACKNOWLEDGE = 1, 4
_HEADER: Final = 20  # nlmsghdr and nfgenmsg
#: NFQA_CFG attributes: a command, bytes to copy of a packet, and the queue's length.
_COMMAND, _PARAMETERS, _MOST_WAITING = 1, 2, 3
_BIND: Final = 1
_PACKET_HEADER, _VERDICT_HEADER = 1, 2
_ACCEPT: Final = 1
_ROOM: Final = 1 << 22
_WAITING: Final = 100_000


class Delay:
    """Packets of one namespace held for `milliseconds`, which is also the number of their queue.

    Raises:
        LabError: the kernel has no netfilter queues.
    """

    def __init__(self, namespace: Namespace, milliseconds: int) -> None:
        self._namespace = namespace
        self._seconds = milliseconds / 1000
        self._number = milliseconds
        self._held: deque[tuple[float, int]] = deque()
        self._socket = namespace.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        self._socket.bind((0, 0))
        self._configure(_COMMAND, struct.pack(">BxH", _BIND, socket.AF_INET))
        self._configure(_PARAMETERS, struct.pack(">IB", 0, 1))  # of the packet itself nothing
        self._configure(_MOST_WAITING, struct.pack(">I", _WAITING))
        self._socket.setblocking(False)

    def _configure(self, kind: int, value: bytes) -> None:
        self._send(_CONFIG, attribute(kind, value), _REQUEST | _ACKNOWLEDGE)
        answer = self._socket.recv(1 << 16)
        (number,) = struct.unpack_from("=i", answer, 16)
        if number:
            raise LabError(
                f"{self._namespace.name}: this kernel has no netfilter queue (error {-number}), "
                "which slow=MS needs"
            )

    def _send(self, kind: int, body: bytes, flags: int = _REQUEST) -> None:
        head = struct.pack("=IHHII", _HEADER + len(body), kind, flags, 0, 0)
        self._socket.send(head + struct.pack(">BBH", 0, 0, self._number) + body)

    def fileno(self) -> int:
        """Return the file descriptor of the socket that packets arrive by, to wait for it."""
        return self._socket.fileno()

    @property
    def due(self) -> float | None:
        """When the next packet is to be released, by `time.monotonic`; None if none is held."""
        return self._held[0][0] if self._held else None

    def serve(self) -> None:
        """Take what has arrived, and release what was held long enough."""
        now = time.monotonic()
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                break
            self._held.extend((now + self._seconds, number) for number in _numbers(data))
        while self._held and self._held[0][0] <= now:
            _, number = self._held.popleft()
            self._send(_VERDICT, attribute(_VERDICT_HEADER, struct.pack(">II", _ACCEPT, number)))


def _numbers(data: bytes) -> list[int]:
    """Return the identifiers of the packets in a netlink datagram."""
    found = []
    at = 0
    while at + _HEADER <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if kind == _PACKET:
            told = dict(attributes(data[at + _HEADER : at + length]))
            found.append(int(struct.unpack_from(">I", told[_PACKET_HEADER])[0]))
        at += length + -length % 4
    return found
