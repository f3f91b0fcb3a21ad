"""Arrays of messages that one system call sends or receives: sendmmsg(2), recvmmsg(2).

An array is created once and used for every batch: only the kernel, and the bytes it points to,
change. Source: Linux, include/linux/socket.h, ``struct mmsghdr`` and ``struct user_msghdr`` (64
bits).
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from array import array
from collections.abc import Collection
from typing import Final

from analyzer.model.addresses import IPV4, Address

#: Bytes of struct mmsghdr and struct iovec, and their fields in words of eight bytes.
_HEADER: Final = 64
_WORDS: Final = _HEADER // 8
_VECTOR: Final = 16
_NAME, _NAME_LENGTH, _VECTORS, _VECTOR_COUNT, _CONTROL, _CONTROL_LENGTH = range(6)
_DONT_WAIT: Final = 0x40
#: Messages that one call takes: the kernel leaves out what is above UIO_MAXIOV (net/socket.c).
_MOST: Final = 1024
#: Errors by which the node's own stack refuses to send a packet, because of a rule or a route.
_KEPT_BACK: Final = frozenset(
    {errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENETUNREACH, errno.EHOSTUNREACH}
)

_libc: Final = ctypes.CDLL(None, use_errno=True)


def address_of(held: bytearray) -> int:
    """Return a buffer's address in memory; it must be kept, and not change its size."""
    return ctypes.addressof(ctypes.c_char.from_buffer(held))


def struct_sockaddr(address: Address) -> bytes:
    """Return a struct sockaddr without a port."""
    if address.version == IPV4:
        return struct.pack("=HH4s8x", socket.AF_INET, 0, address.packed)
    return struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, address.packed, 0)


class Messages:
    """Messages in equal slots of one buffer.

    Args:
        size: bytes of a slot.
        skip: bytes at a slot's beginning that are not part of the message.
        to: destination of all, as a struct sockaddr; None if the socket is bound to one. Those that
            have one go through the sender's own stack, which may refuse some.
        name, control: bytes for each message's sender and its ancillary data.
    """

    def __init__(
        self,
        buffer: bytearray,
        size: int,
        *,
        skip: int = 0,
        to: bytes | None = None,
        name: int = 0,
        control: int = 0,
    ) -> None:
        self.count = count = len(buffer) // size
        #: Numbers of messages that the sender's own stack refused to send.
        self.kept_back: list[int] = []
        self._may_be_kept_back = to is not None
        self.buffer = buffer
        base = address_of(buffer) + skip
        vectors = array("Q", bytes(_VECTOR * count))
        view = memoryview(vectors)
        view[0::2] = array("Q", range(base, base + count * size, size))
        view[1::2] = array("Q", [size - skip]) * count
        self._vectors = vectors
        headers = array("Q", bytes(_HEADER * count))
        self._words = memoryview(headers)
        first = vectors.buffer_info()[0]
        self._put(_VECTORS, range(first, first + count * _VECTOR, _VECTOR))
        self._fill(_VECTOR_COUNT, 1)
        self._headers = headers
        self._address = headers.buffer_info()[0]
        self.names = bytearray(name * count or to or b"")
        self.control = bytearray(control * count)
        if name:
            at = address_of(self.names)
            self._put(_NAME, range(at, at + name * count, name))
            self._fill(_NAME_LENGTH, name)
        elif to is not None:
            self._fill(_NAME, address_of(self.names))
            self._fill(_NAME_LENGTH, len(to))
        if control:
            at = address_of(self.control)
            self._put(_CONTROL, range(at, at + control * count, control))
            self._fill(_CONTROL_LENGTH, control)

    def _put(self, field: int, values: range) -> None:
        self._words[field::_WORDS] = array("Q", values)

    def _fill(self, field: int, value: int) -> None:
        self._words[field::_WORDS] = array("Q", [value]) * self.count

    def send(self, descriptor: int, first: int, count: int) -> int:
        """Send `count` messages, and return how many of them the sender's own stack refused.

        Raises:
            OSError: an error other than a rule or a route that refuses a message.
        """
        kept = 0
        at, last = first, first + count
        while at < last:
            where, asked = ctypes.c_void_p(self._address + _HEADER * at), min(last - at, _MOST)
            sent = _libc.sendmmsg(descriptor, where, asked, 0)
            if sent < 0:
                refused = _after(ctypes.get_errno(), _KEPT_BACK)
                sent = 0
            else:
                # It stops at one that the stack refused, which it does not say; sent again, rules
                # would draw for it anew.
                refused = int(self._may_be_kept_back and sent < asked)
            at += sent
            kept += refused
            self.kept_back += range(at, at + refused)
            at += refused
        return kept

    def receive(self, descriptor: int) -> int:
        """Fill the slots from the first on with what has arrived, and return how many."""
        where = ctypes.c_void_p(self._address)
        got: int = _libc.recvmmsg(descriptor, where, self.count, _DONT_WAIT, None)
        if got < 0:
            return _after(ctypes.get_errno(), ())
        return got


def _after(number: int, kept_back: Collection[int]) -> int:
    """Return how many messages of a batch an error concerns.

    Raises:
        OSError: it is not the error of one message.
    """
    if number in (errno.EINTR, errno.EAGAIN):
        return 0
    if number in kept_back:
        return 1
    raise OSError(number, os.strerror(number))
