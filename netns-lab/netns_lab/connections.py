"""TCP connections that stay open for a whole run and exchange one byte at a time.

They have addresses of their own: while packets are counted, the client's kernel is muted for all
other addresses, but must not be for these. A new connection sends its number, so that the server
that reads it can record which endpoint it reached.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from analyzer.kubeproxy.view import Endpoint, Source
from analyzer.model.addresses import IPV4, Address, address_from_text
from netns_lab.command import run
from netns_lab.namespace import Namespace
from netns_lab.servers import FAMILIES

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: Seconds: from an answer to the next byte; without an answer, until a connection hangs;
#: for opening one.
_PERIOD: Final = 0.05
HANGS: Final = 0.5
_OPENING: Final = 1.0
#: Priority of the ip rules of those addresses.
_FIRST: Final = 0
_TABLE: Final = 203
_NUMBER: Final = struct.Struct("!I")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteConnections:
    """Connections of one route.

    Attributes:
        route: its number in the run.
        client: the namespace and address they come from; None: any address of the namespace.
        number: how many.
    """

    route: int
    client: tuple[Namespace, Address | None]
    to: tuple[Address, int]
    number: int


@dataclass(slots=True)
class KeptConnection:
    """One connection, seen from its client."""

    number: int
    socket: socket.socket
    endpoint: Endpoint | None = None
    answers: list[float] = field(default_factory=list)
    due: float | None = None
    ended: float | None = None
    route: int = 0


class Connections:
    """All connections of a run.

    Args:
        listeners: listening sockets of the living endpoints, which accept only these.
    """

    def __init__(
        self,
        targets: Sequence[RouteConnections],
        listeners: Sequence[socket.socket],
        clock: Callable[[], float],
    ) -> None:
        self._targets, self._clock = targets, clock
        self._selector = selectors.DefaultSelector()
        self._unnamed: dict[socket.socket, Endpoint] = {}
        self.all: list[KeptConnection] = []
        #: Intervals in which this process did not run: from, to.
        self.pauses: list[tuple[float, float]] = []
        self._last: float | None = None
        for each in listeners:
            self._selector.register(each, selectors.EVENT_READ, self._accept)

    def open(self, slowest: float, meanwhile: Callable[[], None]) -> None:
        """Open them, and wait until each is open, at most a second and three times `slowest`.

        Args:
            slowest: seconds that packets of slow endpoints are delayed.
            meanwhile: called while waiting, to release the delayed packets.
        """
        for each in self._targets:
            for _ in range(each.number):
                self._open(each)
        deadline = time.monotonic() + _OPENING + 3 * slowest
        while time.monotonic() < deadline and any(not each.answers for each in self.all):
            self.serve(0.01)
            meanwhile()
        for kept in self.all:
            if not kept.answers:
                self._end(kept)
        self.begin()

    def _open(self, target: RouteConnections) -> None:
        namespace, address = target.client
        client = namespace.socket(FAMILIES[target.to[0].version], socket.SOCK_STREAM)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
        if address is not None:
            client.bind((str(address), 0))
        with suppress(OSError):  # that it is on its way, or cannot be
            client.connect((str(target.to[0]), target.to[1]))
        kept = KeptConnection(len(self.all), client, route=target.route)
        self.all.append(kept)
        self._selector.register(client, selectors.EVENT_WRITE, self._opened(kept))

    def begin(self) -> None:
        """Start the clock: connections answered so far count as answered now."""
        now = self._clock()
        self._last = now
        for kept in self.all:
            if kept.ended is None:
                kept.answers[:] = [now]
                kept.due = now

    def serve(self, wait: float) -> None:
        """Accept, answer, and send bytes that are due; wait at most `wait` seconds for events."""
        for key, _ in self._selector.select(wait):
            key.data(key.fileobj)
        now = self._clock()
        if self._last is not None:
            if now - self._last > _PERIOD:
                self.pauses.append((self._last, now))
            self._last = now
        for kept in self.all:
            if kept.due is not None and kept.due <= now and kept.ended is None:
                kept.due = None
                self._send(kept, b"x")

    def close(self) -> None:
        """Close all connections."""
        self._selector.close()
        for each in (*(k.socket for k in self.all), *self._unnamed):
            each.close()

    def _opened(self, kept: KeptConnection) -> Callable[[socket.socket], None]:
        def opened(client: socket.socket) -> None:
            if client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self._end(kept)
                return
            self._selector.modify(client, selectors.EVENT_READ, self._answered(kept))
            self._send(kept, _NUMBER.pack(kept.number))

        return opened

    def _answered(self, kept: KeptConnection) -> Callable[[socket.socket], None]:
        def answered(client: socket.socket) -> None:
            try:
                said = client.recv(64)
            except BlockingIOError:
                return
            except OSError:
                said = b""
            if not said:
                self._end(kept)
                return
            now = self._clock()
            kept.answers.append(now)
            kept.due = now + _PERIOD

        return answered

    def _send(self, kept: KeptConnection, data: bytes) -> None:
        try:
            kept.socket.send(data)
        except OSError:
            self._end(kept)

    def _end(self, kept: KeptConnection) -> None:
        if kept.ended is None:
            kept.ended = self._clock()
            self._selector.unregister(kept.socket)
            kept.socket.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(BlockingIOError, ConnectionError):
            while True:
                server, _ = listener.accept()
                server.setblocking(False)
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                name = server.getsockname()
                address = address_from_text(name[0])
                assert address is not None
                self._unnamed[server] = Endpoint(address, name[1])
                self._selector.register(server, selectors.EVENT_READ, self._serve)

    def _serve(self, server: socket.socket) -> None:
        try:
            said = server.recv(64)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self._selector.unregister(server)
            self._unnamed.pop(server, None)
            server.close()
            return
        if len(said) == _NUMBER.size and (endpoint := self._unnamed.get(server)) is not None:
            (number,) = _NUMBER.unpack(said)
            if number < len(self.all) and self.all[number].endpoint is None:
                self.all[number].endpoint = endpoint
        with suppress(OSError):
            server.send(b"y")


def hangs(
    kept: KeptConnection, end: float, pauses: Sequence[tuple[float, float]], slowest: float = 0.0
) -> Iterator[tuple[float, float | None]]:
    """Yield from when to when a connection hung, without our own pauses; None: until the `end`.

    Slow endpoints may answer `slowest` seconds late, and twice that if an answer waits for another.
    """
    last = kept.ended if kept.ended is not None else end
    times = [*kept.answers, last]
    for at, (before, after) in enumerate(pairwise(times)):
        paused = sum(min(b, after) - max(a, before) for a, b in pauses if a < after and b > before)
        if after - before - paused > HANGS + 2 * slowest:
            is_last = at == len(times) - 2
            if is_last and kept.ended is not None:
                continue  # its end shows what ended it
            yield before, None if is_last else after


def client_of(lab: Lab, source: Source, address: Address) -> tuple[Namespace, Address | None]:
    """Return where connections from a kind of source are opened, and set that place up.

    To be called once for each address.

    Raises:
        LabError: ip(8) fails.
    """
    if source is Source.NODE:
        return lab.topology.node, None
    host, mac, _ = lab.topology.senders(source)
    lab.muting.speaks(address, source)
    version, table = address.version, _TABLE + host.index
    hop = "169.254.1.1" if version == IPV4 else "fe80::6b:6f"
    lines = [
        f"neigh replace {hop} lladdr {mac} dev {host.device} nud permanent",
        f"route replace default via {hop} dev {host.device} onlink table {table}",
        f"rule add pref {_FIRST} from {address} table {table}",
    ]
    if source is not Source.POD:
        lines.insert(0, f"address add {address} dev {host.device}")
    run(host.namespace, ["ip", f"-{version}", "-batch", "-"], "\n".join(lines) + "\n")
    return host.namespace, address
