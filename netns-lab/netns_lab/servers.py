"""Servers at living endpoints: kernel listeners for TCP, echoes for UDP.

There is no thread and no process: code that waits for answers calls `serve` meanwhile.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from analyzer.model.addresses import IPV4
from netns_lab.delays import Delay
from netns_lab.errors import LabError
from netns_lab.filters import from_others
from netns_lab.layout import ANSWER, MARK
from netns_lab.messages import Messages
from netns_lab.namespace import Namespace
from netns_lab.ring import attach

_RCVBUFFORCE: Final = 33
_RECEIVE_BUFFER: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class PacketInfo:
    """How sockets of one IP version report the local address that a packet was sent to.

    Attributes:
        level: of the socket options.
        wanted: the option that enables the report.
        kind: of the ancillary data that contains it, and that gives an answer its source.
        size: of that data: a struct in_pktinfo or in6_pktinfo.
        name_size: of a struct sockaddr_in or sockaddr_in6.
    """

    level: int
    wanted: int
    kind: int
    size: int
    name_size: int

    @property
    def control_size(self) -> int:
        """Bytes that the ancillary data takes."""
        return socket.CMSG_SPACE(self.size)

    def answering(self, told: bytes) -> bytes:
        """Return ancillary data with which an answer leaves from the address of the query."""
        if self.level == socket.IPPROTO_IP:
            return bytes(4) + told[8:12] + bytes(4)  # the header's destination
        return told[:16] + bytes(4)


PACKET_INFO: Final = {
    socket.AF_INET: PacketInfo(socket.IPPROTO_IP, 8, 8, 12, 16),
    socket.AF_INET6: PacketInfo(socket.IPPROTO_IPV6, 49, 50, 20, 28),
}
FAMILIES: Final = {4: socket.AF_INET, 6: socket.AF_INET6}

#: Returns the answer to one datagram.
Responder = Callable[[bytes], bytes]
#: Returns the answer to a TCP client's first bytes, given the address and port of the connection.
Talk = Callable[[str, int, bytes], bytes]
_MOST_SAID: Final = 65_536


def echo(datagram: bytes) -> bytes:
    """Return the datagram itself."""
    return datagram


def make_room(sock: socket.socket) -> None:
    """Give a socket a large receive buffer; for an ordinary user, as large as is allowed."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _RECEIVE_BUFFER)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)


class Servers:
    """All servers of the lab."""

    def __init__(self, delays: Iterable[Delay] = ()) -> None:
        self._selector = selectors.DefaultSelector()
        self._delays = tuple(delays)
        for each in self._delays:
            self._selector.register(each, selectors.EVENT_READ, lambda d: d.serve())

    def tcp(
        self,
        namespace: Namespace,
        ports: Iterable[int],
        talk: Talk | None = None,
        version: int = IPV4,
    ) -> None:
        """Let the kernel of `namespace` accept connections to any of its addresses.

        They are closed at once or, with `talk`, after the client has sent something and was
        answered.

        Raises:
            LabError: the port cannot be bound.
        """
        for port in sorted(set(ports)):
            sock = listener(namespace, port, version)
            self._selector.register(sock, selectors.EVENT_READ, lambda s: self._accept(s, talk))

    def udp(
        self,
        namespace: Namespace,
        ports: Iterable[int],
        responder: Responder = echo,
        version: int = IPV4,
    ) -> None:
        """Answer datagrams to any address of `namespace`, from the address they were sent to.

        Raises:
            LabError: the port cannot be bound.
        """
        for port in sorted(set(ports)):
            sock = datagrams(namespace, port, version)

            def answer(sock: socket.socket, responder: Responder = responder) -> None:
                _answer(sock, responder)

            self._selector.register(sock, selectors.EVENT_READ, answer)

    def serve(self, wait: float = 0) -> None:
        """Answer all that has arrived, after waiting up to `wait` seconds for the first of it."""
        due = [each.due for each in self._delays if each.due is not None]
        if due:
            wait = max(0.0, min(wait, min(due) - time.monotonic()))
        for key, _ in self._selector.select(wait):
            key.data(key.fileobj)
        for each in self._delays:
            each.serve()

    def _accept(self, listener: socket.socket, talk: Talk | None) -> None:
        try:
            while True:
                connection, _ = listener.accept()
                if talk is None:
                    connection.close()
                    continue
                connection.setblocking(False)
                self._selector.register(
                    connection, selectors.EVENT_READ, lambda c: self._talk(c, talk)
                )
        except BlockingIOError:
            pass
        except ConnectionError:  # the client was gone before we looked
            pass

    def _talk(self, connection: socket.socket, talk: Talk) -> None:
        """Answer what a client sent, and close the connection."""
        self._selector.unregister(connection)
        with connection:
            try:
                if said := connection.recv(_MOST_SAID):
                    address, port = connection.getsockname()[:2]
                    connection.sendall(talk(address, port, said))
                    connection.shutdown(socket.SHUT_WR)
            except OSError:  # it is gone, or does not read
                pass

    def close(self) -> None:
        """Stop answering, and close all sockets."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()


class Echoes:
    """UDP servers that send a batch of our datagrams back with two system calls, marked as answers.

    The sender and the local address that the kernel reports for a datagram are passed back as they
    are, as destination and source of the answer.
    """

    def __init__(self, most: int, size: int) -> None:
        self._size = size
        self._marks = bytes([ANSWER]) * most
        self._messages = {
            family: Messages(
                bytearray(size * most), size, name=info.name_size, control=info.control_size
            )
            for family, info in PACKET_INFO.items()
        }

    def serve(self, sockets: Iterable[socket.socket]) -> None:
        """Answer all that has arrived."""
        for sock in sockets:
            descriptor, messages = sock.fileno(), self._messages[sock.family]
            while count := messages.receive(descriptor):
                messages.buffer[MARK : count * self._size : self._size] = self._marks[:count]
                messages.send(descriptor, 0, count)
                if count < messages.count:
                    break


def datagrams(namespace: Namespace, port: int, version: int = IPV4) -> socket.socket:
    """Return a UDP socket for all addresses of `namespace`; it reports each datagram's address.

    Raises:
        LabError: the port cannot be bound.
    """
    sock = _bound(namespace, socket.SOCK_DGRAM, port, version)
    info = PACKET_INFO[sock.family]
    sock.setsockopt(info.level, info.wanted, 1)
    make_room(sock)
    sock.setblocking(False)
    return sock


def listener(namespace: Namespace, port: int, version: int = IPV4) -> socket.socket:
    """Return a socket that lets the kernel accept connections to any address of `namespace`.

    Raises:
        LabError: the port cannot be bound.
    """
    # With SYN cookies, a SYN takes no memory, and a full backlog refuses none.
    namespace.set("net/ipv4/tcp_syncookies", 2)
    sock = _bound(namespace, socket.SOCK_STREAM, port, version)
    sock.listen(4096)
    sock.setblocking(False)
    return sock


def _bound(namespace: Namespace, kind: int, port: int, version: int) -> socket.socket:
    sock = namespace.socket(FAMILIES[version], kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if version != IPV4:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    attach(sock, from_others(version))
    try:
        sock.bind(("", port))
    except OSError as error:
        raise LabError(f"port {port} in {namespace.name}: {error.strerror}") from None
    return sock


def _answer(sock: socket.socket, responder: Responder) -> None:
    info = PACKET_INFO[sock.family]
    try:
        while True:
            data, ancillary, _, client = sock.recvmsg(2048, info.control_size)
            reply = responder(data)
            for level, kind, content in ancillary:
                if (level, kind) == (info.level, info.kind):
                    control = [(level, kind, info.answering(content))]
                    sock.sendmsg([reply], control, 0, client)
    except BlockingIOError:
        pass
