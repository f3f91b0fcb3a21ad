"""Kernels of the lab that are kept silent while packets are counted: no RST, no ICMP error.

The node is the exception: its limits on ICMP errors are raised, so that each REJECT is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address
from netns_lab.layout import PacketLayout
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink
from netns_lab.servers import FAMILIES
from netns_lab.topology import TABLE_LOCAL, Host, LabTopology

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
        #: Clients that are pods, as programs in their namespace are, if no flows are counted.
        self._clients = dict.fromkeys(lab.plan.clients_from(Source.POD), Source.POD)
        #: Namespaces that send ICMP errors about the dead: every node, and hosts of the dead.
        self._telling = {lab.node, *(each.namespace for each in lab.gates)}

    def tells(self, namespace: Namespace) -> None:
        """Let another namespace send ICMP errors, also while the client is mute."""
        self._telling.add(namespace)
        if self._wanted:
            _limit_errors(namespace, counting=True)

    def speaks(self, address: Address, source: Source) -> None:
        """Let the kernel answer at a client's address, also while the others are mute."""
        self._clients.pop(address, None)
        set_deaf(self._lab, {address: source}, deaf=False)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Keep it silent within this context."""
        self._wanted += 1
        if self._wanted == 1:
            self._mute(on=True)
        try:
            yield
        finally:
            self._wanted -= 1
            if not self._wanted:
                self._mute(on=False)

    def _mute(self, *, on: bool) -> None:
        """Let the client's kernel be silent, or answer what comes as a client would.

        While packets are counted it would answer each reply with a reset or an error of ICMP, and
        each of these passes all rules. The node, for its part, tells each client that it refuses,
        where it usually tells one a second.
        """
        for namespace in self._telling:
            _limit_errors(namespace, counting=on)
        set_deaf(self._lab, self._clients, deaf=on)


def set_deaf(lab: LabTopology, clients: Mapping[Address, Source], *, deaf: bool) -> None:
    """Make the kernels at clients' addresses deaf to what the node sends there, or not.

    Raises:
        LabError: the kernel refuses.
    """
    asked = Netlink(lab.node)
    for address, source in clients.items():
        host, _, device = lab.senders(source)
        asked.neighbour(device, address, host.deaf_mac if deaf else host.mac)
    asked.send()
    asked.close()


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


def _limit_errors(namespace: Namespace, *, counting: bool) -> None:
    """Limit the ICMP errors of a namespace as usual, or not while packets are counted."""
    with namespace:
        for name, (most, usual) in _ICMP_LIMITS.items():
            limit = Path("/proc/sys/net", name)
            if limit.exists():  # else it is the whole kernel's, and not ours to change
                limit.write_text(str(most if counting else usual), encoding="ascii")
