"""Is every link carrying packets yet?

The kernel activates a new device's queue when its link watch gets to it, up to a second later,
and drops until then. So a frame of an experimental type is sent over each link, in both
directions, until it arrives.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: IEEE 802: local experimental EtherType 1.
_ETHERTYPE: Final = 0x88B5
#: Bytes of a frame's header.
_HEADER: Final = 14
_DEADLINE: Final = 5.0
_POLL: Final = 0.01


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link."""

    namespace: Namespace
    device: str
    mac: str


def wait_until_ready(links: list[tuple[End, End]]) -> None:
    """Return once each link has carried a frame both ways.

    Raises:
        LabError: one has not within five seconds.
    """
    left = {way for one, other in links for way in ((one, other), (other, one))}
    # One socket for each device: to close one takes the kernel a grace period of RCU.
    sockets = {end: _bound(end) for link in links for end in link}
    by_mac = {end.mac: end for end in sockets}
    deadline = time.monotonic() + _DEADLINE
    with selectors.DefaultSelector() as selector:
        for end, sock in sockets.items():
            selector.register(sock, selectors.EVENT_READ, end)
        try:
            while left:
                if time.monotonic() > deadline:
                    raise LabError(
                        f"no packet passes between {', '.join(sorted(map(_name, left)))}"
                    )
                for sender, receiver in left:
                    sockets[sender].send(_frame(sender, receiver))
                for key, _ in selector.select(_POLL):
                    for mac in _senders(sockets[key.data], key.data):
                        left.discard((by_mac[mac], key.data))
        finally:
            for sock in sockets.values():
                sock.close()


def _name(way: tuple[End, End]) -> str:
    return " and ".join(end.namespace.name for end in way)


def _frame(sender: End, receiver: End) -> bytes:
    macs = bytes.fromhex((receiver.mac + sender.mac).replace(":", ""))
    return macs + _ETHERTYPE.to_bytes(2, "big") + bytes(60)


def _senders(sock: socket.socket, receiver: End) -> Iterator[str]:
    """Give the MAC of the sender of each frame that has come to the receiver's own."""
    try:
        while True:
            frame = sock.recv(_HEADER)
            to, sender = (frame[at : at + 6].hex(":") for at in (0, 6))
            if to == receiver.mac:
                yield sender
    except BlockingIOError:
        pass


def _bound(end: End) -> socket.socket:
    sock = end.namespace.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.bind((end.device, _ETHERTYPE))
    sock.setblocking(False)
    return sock
