"""Is every link carrying packets yet?

The kernel activates a new device's queue when its link watch gets to it, up to a second later,
and drops until then. So a frame of an experimental type is sent over each link, in both
directions, until it arrives.
"""

from __future__ import annotations

import selectors
import socket
import time
from dataclasses import dataclass
from typing import Final

from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: IEEE 802: local experimental EtherType 1.
_ETHERTYPE: Final = 0x88B5
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
    waiting = [_Probe(a, b) for one, other in links for a, b in ((one, other), (other, one))]
    deadline = time.monotonic() + _DEADLINE
    with selectors.DefaultSelector() as selector:
        for probe in waiting:
            selector.register(probe.receiver, selectors.EVENT_READ, probe)
        left = set(waiting)
        try:
            while left:
                if time.monotonic() > deadline:
                    names = sorted({p.name for p in left})
                    raise LabError(f"no packet passes between {', '.join(names)}")
                for probe in left:
                    probe.send()
                for key, _ in selector.select(_POLL):
                    left.discard(key.data)
                    selector.unregister(key.fileobj)
        finally:
            for probe in waiting:
                probe.close()


class _Probe:
    """Frames from one end of a link to the other."""

    def __init__(self, sender: End, receiver: End) -> None:
        self.name = f"{sender.namespace.name} and {receiver.namespace.name}"
        macs = bytes.fromhex((receiver.mac + sender.mac).replace(":", ""))
        # The sender's address as content: of several senders each finds its own.
        self._frame = macs + _ETHERTYPE.to_bytes(2, "big") + macs + bytes(60)
        self._sender = _bound(sender)
        self.receiver = _bound(receiver)

    def send(self) -> None:
        self._sender.send(self._frame)

    def close(self) -> None:
        self._sender.close()
        self.receiver.close()


def _bound(end: End) -> socket.socket:
    sock = end.namespace.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.bind((end.device, _ETHERTYPE))
    return sock
