"""The lab's measurement with scapy alone: `sendp` of prebuilt packets, and `AsyncSniffer`.

This is what one would write with scapy alone: each packet takes a system call to send,
and arrives as a Python object.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from scapy.config import conf
from scapy.layers.l2 import Ether
from scapy.sendrecv import AsyncSniffer, sendp

from netns_lab.experiment import Lab
from netns_lab.replay import Flows
from netns_lab.topology import Host

#: Seconds that the sniffers get to read what has arrived.
_PATIENCE: Final = 5.0
_POLL: Final = 0.01


def sends(lab: Lab, flows: Flows, count: int) -> float:
    """Return the CPU seconds that sendp takes for prebuilt packets, with no sniffer running."""
    packets = _packets(flows, count)
    with _link(lab.topology.client) as link:
        begun = time.process_time()
        sendp(packets, socket=link, verbose=False)
        return time.process_time() - begun


def measures(lab: Lab, flows: Flows, count: int) -> tuple[float, int]:
    """Return the CPU seconds of sending and sniffing, and how many flows were attributed."""
    logging.getLogger("scapy").setLevel(logging.ERROR)
    packets = _packets(flows, count)
    landed: Counter[tuple[str, int]] = Counter()
    sniffers = [_sniffer(host, landed) for host in (*lab.topology.hosts, lab.topology.client)]
    with _link(lab.topology.client) as link:
        begun = time.process_time()
        for each in sniffers:
            each.start()
        sendp(packets, socket=link, verbose=False)
        deadline = time.monotonic() + _PATIENCE
        while landed.total() < count and time.monotonic() < deadline:
            time.sleep(_POLL)
        for each in sniffers:
            each.stop()
        return time.process_time() - begun, landed.total()


def _packets(flows: Flows, count: int) -> list[Any]:
    found = [Ether(flows.frame(number)) for number in range(count)]
    for each in found:
        each.build()
    return found


@contextmanager
def _link(host: Host) -> Iterator[Any]:
    with host.namespace:
        link = conf.L2socket(iface=host.device)
    try:
        yield link
    finally:
        link.close()


def _sniffer(host: Host, landed: Counter[tuple[str, int]]) -> AsyncSniffer:
    def note(packet: Any) -> None:
        below = packet.payload
        above = below.payload
        # To an endpoint; an answer goes to a client's port.
        if getattr(above, "dport", None) == 53 or getattr(above, "flags", None) == "S":  # noqa: PLR2004  # DNS
            landed[below.dst, above.dport] += 1

    with host.namespace:
        heard = conf.L2listen(iface=host.device)
    return AsyncSniffer(opened_socket=heard, prn=note, store=False)
