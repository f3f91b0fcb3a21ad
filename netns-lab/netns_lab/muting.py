"""Kernels of the lab that are kept silent while packets are counted: no RST, no ICMP error.

The node is the exception: its limits on ICMP errors are raised, so that each REJECT is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from analyzer.model.addresses import Address
from netns_lab.layout import PacketLayout
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink
from netns_lab.servers import FAMILIES
from netns_lab.topology import MUTE, TABLE_LOCAL, Host, LabTopology

#: What limits errors of ICMP: while packets are counted, and usually (ip-sysctl.rst).
_ICMP_LIMITS: Final = {
    "ipv4/icmp_ratelimit": (0, 1000),
    "ipv4/icmp_msgs_per_sec": (1_000_000_000, 1000),
    "ipv4/icmp_msgs_burst": (1_000_000, 50),
    "ipv6/icmp/ratelimit": (0, 1000),
}


class Muting:
    """Keeps the client's kernel silent while at least one caller wants it to be."""

    def __init__(self, lab: LabTopology) -> None:
        self._lab = lab
        self._wanted = 0

    @contextmanager
    def on(self) -> Iterator[None]:
        """Keep it silent within this context."""
        self._wanted += 1
        if self._wanted == 1:
            _mute(self._lab, on=True)
        try:
            yield
        finally:
            self._wanted -= 1
            if not self._wanted:
                _mute(self._lab, on=False)


def ignoring(
    host: Host, layout: PacketLayout, sockaddr: tuple[Address, int], ports: Collection[int]
) -> AbstractContextManager[None]:
    """Make an endpoint's kernel ignore packets from an address and port, within this context.

    An endpoint that sends flows has no socket for the replies: its kernel would send RST for each,
    which traverses all rules. Packet sockets receive the replies before they are routed.

    Packets to `ports`, on which endpoints listen and from which none sends, are flows: masquerade
    may have given them that address and port as their source.
    """
    asked = Netlink(host.namespace)
    of, family = (layout.number, *sockaddr), FAMILIES[layout.version]
    flows = [
        partial(asked.rule, 0, TABLE_LOCAL, family=family, of=of, to=(layout.number, None, port))
        for port in sorted(ports)
    ]
    # Of rules with one priority those that were there before come first.
    return _in_force(asked, *flows, partial(asked.rule, 0, family=family, of=of))


def no_resets_to(
    node: Namespace, layout: PacketLayout, sockaddr: tuple[Address, int]
) -> AbstractContextManager[None]:
    """Keep a node's kernel from sending RST to an address and port, within this context.

    The node has no sockets for the replies to its own flows either, but these are counted after
    INPUT. Its flows still leave: raw sockets send them, whose packets have no protocol for policy
    routing (raw(7), IPPROTO_RAW).
    """
    asked = Netlink(node)
    to, family = (layout.number, *sockaddr), FAMILIES[layout.version]
    return _in_force(asked, partial(asked.rule, 0, family=family, to=to, made_here=True))


@contextmanager
def _in_force(asked: Netlink, *rules: Callable[..., None]) -> Iterator[None]:
    """Add policy routing rules within this context."""
    for rule in rules:
        rule()
    asked.send()
    try:
        yield
    finally:
        for rule in rules:
            rule(delete=True)
        asked.send()
        asked.close()


def _mute(lab: LabTopology, *, on: bool) -> None:
    """Keep the client's kernel silent, or let it answer as that of a client does.

    While packets are counted, it would answer each reply with RST or an ICMP error, and each of
    these traverses all rules. The node, in turn, reports every rejected packet, where it usually
    sends one ICMP error a second to a client.
    """
    for namespace in (lab.node, *(each.namespace for each in lab.gates), *lab.telling):
        with namespace:
            for name, (counting, usual) in _ICMP_LIMITS.items():
                limit = Path("/proc/sys/net", name)
                if limit.exists():  # else it is the whole kernel's, and not ours to change
                    limit.write_text(str(counting if on else usual), encoding="ascii")
    asked = Netlink(lab.client.namespace)
    for version in lab.plan.versions:
        asked.rule(MUTE, family=FAMILIES[version], delete=not on)
    asked.send()
    asked.close()
