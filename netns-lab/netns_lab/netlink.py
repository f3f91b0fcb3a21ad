"""Netlink requests to a namespace's kernel: devices, addresses, routes, conntrack.

ip(8) takes a process for each namespace, and 100 of these take a second. Requests are collected and
sent together; each is acknowledged, so that no failure goes unnoticed. Source: netlink(7),
rtnetlink(7); include/uapi/linux/{rtnetlink,if_link,neighbour,fib_rules}.h;
include/uapi/linux/netfilter/{nfnetlink,nfnetlink_conntrack}.h.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

from analyzer.model.addresses import IPV4
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

_ROUTE, _NETFILTER = 0, 12
_REQUEST, _ACKNOWLEDGE, _DUMP = 1, 4, 0x300
_CREATE, _EXCLUSIVE, _REPLACE, _APPEND = 0x400, 0x200, 0x100, 0x800
_ERROR, _DONE = 2, 3
_NEW_LINK, _SET_LINK, _GET_LINK = 16, 19, 18
_NEW_ADDRESS, _NEW_ROUTE, _NEW_NEIGHBOUR = 20, 24, 28
_NEW_RULE, _DELETE_RULE = 32, 33
_CONNTRACK_DELETE: Final = 1 << 8 | 2

_UP: Final = 1
_STATIC: Final = 4
_MAIN, _LOCAL = 254, 255
_UNIVERSE, _LINK_SCOPE, _HOST_SCOPE = 0, 253, 254
_UNICAST, _LOCAL_ROUTE, _BLACKHOLE = 1, 2, 6
_ON_LINK: Final = 4
_PERMANENT, _NO_ARP = 0x80, 0x40
_MASTER_FLAG: Final = 0x04
_NO_DUPLICATE_CHECK: Final = 0x02
_RULE_TO_TABLE, _RULE_BLACKHOLE = 1, 6
_BRIDGE_FAMILY: Final = 7

#: Link attributes.
_MAC, _NAME, _LINK, _QDISC, _MASTER, _OPERSTATE, _INFO, _NETNS_FD = 1, 3, 5, 6, 10, 16, 18, 28
#: Values of the operational state: of loopback, which has none, and of a device that is up.
_SEEN: Final = (b"\0", b"\6")
_SLAVE_KIND, _SLAVE_DATA, _HAIRPIN_MODE = 4, 5, 4  # inside of _INFO; of a port of a bridge
#: Mode of a macvlan device: devices of one parent also reach each other.
_MACVLAN_BRIDGE: Final = 4
#: What begins and what ends a transaction of nf_tables; neither is acknowledged (nfnetlink.c).
_BATCH: Final = tuple(
    struct.pack("=IHHII", 20, kind, _REQUEST, 0, 0) + struct.pack(">BBH", 0, 0, 10)
    for kind in (0x10, 0x11)
)
#: Requests in one datagram; the socket's buffer holds the answers to at least so many.
_TOGETHER: Final = 100
_BUFFER: Final = 1 << 20

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Netlink:
    """A netlink socket in one namespace, and the requests queued for it.

    Devices are named by their index, which the caller chooses. The two ends of a veth must have
    different ones, or the kernel takes a second to notice that they carry packets.
    """

    def __init__(self, namespace: Namespace, family: int = _ROUTE) -> None:
        self._namespace = namespace
        self._socket = namespace.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._waiting: list[tuple[str, bytes]] = []

    def add(self, says: str, kind: int, body: bytes, flags: int = 0) -> None:
        """Queue one request; `says` names it in error messages."""
        head = struct.pack(
            "=IHHII", 16 + len(body), kind, _REQUEST | _ACKNOWLEDGE | flags, len(self._waiting), 0
        )
        self._waiting.append((says, head + body))

    def veth(self, name: str, index: int, mac: str, peer: tuple[Namespace, str, int, str]) -> None:
        """Create a pair of devices, the other end in the namespace of `peer`."""
        namespace, peer_name, peer_index, peer_mac = peer
        other = (
            _link(peer_index)
            + _text(_NAME, peer_name)
            + attribute(_NETNS_FD, struct.pack("=I", namespace.descriptor))
            + attribute(_MAC, _bytes_of(peer_mac))
        )
        info = _text(1, "veth") + attribute(2, attribute(1, other))
        body = _link(index) + _text(_NAME, name) + attribute(_MAC, _bytes_of(mac))
        self.add(f"veth {name}", _NEW_LINK, body + attribute(_INFO, info), _CREATE | _EXCLUSIVE)

    def macvlan(self, parent: int, device: tuple[Namespace, str, int, str]) -> None:
        """Create a device in another namespace that gets the parent's packets to its own MAC.

        `device` are the namespace, the name there, the index and the MAC address.
        """
        namespace, name, index, mac = device
        mode = attribute(2, attribute(1, struct.pack("=I", _MACVLAN_BRIDGE)))
        self.add(
            f"macvlan device {name} of {namespace.name}",
            _NEW_LINK,
            _link(index)
            + _text(_NAME, name)
            + attribute(_MAC, _bytes_of(mac))
            + attribute(_LINK, struct.pack("=I", parent))
            + attribute(_NETNS_FD, struct.pack("=I", namespace.descriptor))
            + attribute(_INFO, _text(1, "macvlan") + mode),
            _CREATE | _EXCLUSIVE,
        )

    def bridge(self, name: str, index: int) -> None:
        """Create a bridge, up."""
        body = _link(index, up=True) + _text(_NAME, name) + attribute(_INFO, _text(1, "bridge"))
        self.add(f"bridge {name}", _NEW_LINK, body, _CREATE | _EXCLUSIVE)

    def up(self, index: int, *, master: int | None = None, of_pods: bool = False) -> None:
        """Set a device up, as a port of a bridge if `master` is given.

        A port towards pods is in hairpin mode, as CNI plugins set it: a pod that connects to itself
        through its Service gets the packet back through the port on which it arrived.
        """
        if master is not None:
            self.add(
                f"port {index}",
                _SET_LINK,
                _link(index) + attribute(_MASTER, struct.pack("=I", master)),
            )
        if of_pods:
            port = attribute(_SLAVE_DATA, attribute(_HAIRPIN_MODE, b"\1"))
            self.add(
                f"hairpin mode of port {index}",
                _NEW_LINK,
                _link(index) + attribute(_INFO, _text(_SLAVE_KIND, "bridge") + port),
            )
        self.add(f"link {index} up", _NEW_LINK, _link(index, up=True))

    def forward(self, index: int, mac: str) -> None:
        """Add a forwarding entry to a bridge: the port behind which a MAC address is."""
        body = struct.pack("=BxxxiHBB", _BRIDGE_FAMILY, index, _NO_ARP, _MASTER_FLAG, 0)
        self.add(
            f"fdb {mac}", _NEW_NEIGHBOUR, body + attribute(2, _bytes_of(mac)), _CREATE | _REPLACE
        )

    def address(self, index: int, address: Address) -> None:
        """Give a device an address, without a network."""
        packed = address.packed
        body = struct.pack(
            "=BBBBi", _family(address), len(packed) * 8, 0x80 | _NO_DUPLICATE_CHECK, 0, index
        )
        if address.version == IPV4:
            body += attribute(1, packed)
        body += attribute(2, packed)
        self.add(f"address {address}", _NEW_ADDRESS, body, _CREATE | _REPLACE)

    def neighbour(self, index: int, address: Address, mac: str) -> None:
        """Add a permanent neighbour entry: the MAC address of an IP address."""
        body = struct.pack("=BxxxiHBB", _family(address), index, _PERMANENT, 0, 0)
        body += attribute(1, address.packed) + attribute(2, _bytes_of(mac))
        self.add(f"neighbour {address}", _NEW_NEIGHBOUR, body, _CREATE | _REPLACE)

    def route(
        self,
        to: Network,
        index: int,
        via: Address | None = None,
        *,
        table: int = _MAIN,
        source: Address | None = None,
    ) -> None:
        """Route a network through a device, directly or via a next hop that needs no route.

        Programs that do not bind an address send from `source`.
        """
        scope = _LINK_SCOPE if via is None else _UNIVERSE
        flags = _ON_LINK if via is not None else 0
        body = _route(to, table, scope, _UNICAST, flags)
        if via is not None:
            body += attribute(5, via.packed)
        if source is not None:
            body += attribute(7, source.packed)
        self._route(to, body + attribute(4, struct.pack("=i", index)))

    def beside(self, index: int, address: Address, mac: str) -> None:
        """Make an address a neighbour on a device."""
        self.route(ip_network(address), index)
        self.neighbour(index, address, mac)

    def default_route(self, index: int, hop: Address, mac: str) -> None:
        """Add a default route via a next hop on a device."""
        self.neighbour(index, hop, mac)
        everything = ip_network("0.0.0.0/0" if hop.version == IPV4 else "::/0")
        self.route(everything, index, hop)

    def own(self, to: Network, loopback: int = 1) -> None:
        """Make every address of a network the namespace's own."""
        body = _route(to, _LOCAL, _HOST_SCOPE, _LOCAL_ROUTE)
        self._route(to, body + attribute(4, struct.pack("=i", loopback)))

    def swallow(self, to: Network) -> None:
        """Discard all packets to a network silently."""
        self._route(to, _route(to, _LOCAL, _UNIVERSE, _BLACKHOLE))

    def _route(self, to: Network, body: bytes) -> None:
        self.add(f"route {to}", _NEW_ROUTE, body, _CREATE | _REPLACE)

    def rule(
        self,
        priority: int,
        table: int | None = None,
        *,
        family: int = socket.AF_INET,
        made_here: bool = False,
        of: tuple[int, Address, int] | None = None,
        to: tuple[int, Address | None, int] | None = None,
        delete: bool = False,
    ) -> None:
        """Add or delete an ip rule, which looks up a table or, without one, drops silently.

        With `made_here` it is for packets that the namespace itself sends; with `of`, for those
        of a protocol that come from an address and port; with `to`, for those that go to one, or
        to a port of any address.
        """
        action = _RULE_BLACKHOLE if table is None else _RULE_TO_TABLE
        (source, source_port), (destination, destination_port) = (
            (None, None) if each is None else each[1:] for each in (of, to)
        )
        bits = [0 if each is None else each.max_prefixlen for each in (destination, source)]
        body = struct.pack("=BBBBBBBBI", family, *bits, 0, table or 0, 0, 0, action, 0)
        for kind, address in ((1, destination), (2, source)):
            if address is not None:
                body += attribute(kind, address.packed)
        if of or to:
            body += attribute(22, bytes([(of or to or (0,))[0]]))
        for kind, port in ((23, source_port), (24, destination_port)):
            if port is not None:
                body += attribute(kind, struct.pack("=HH", port, port))
        body += attribute(6, struct.pack("=I", priority))
        if made_here:
            body += _text(3, "lo")
        verb, flags = (_DELETE_RULE, 0) if delete else (_NEW_RULE, _CREATE | _EXCLUSIVE)
        self.add(f"rule {priority}", verb, body, flags)

    def send(self) -> None:
        """Send the queued requests, and check that all of them succeeded.

        Raises:
            LabError: the kernel refuses one; the message says which.
        """
        self._send(b"", b"")

    def commit(self) -> None:
        """Send the queued requests to nf_tables, up to a hundred in a transaction.

        Raises:
            LabError: as of `send`; nothing of that transaction has happened.
        """
        self._send(*_BATCH)

    def _send(self, before: bytes, behind: bytes) -> None:
        waiting, self._waiting = self._waiting, []
        for first in range(0, len(waiting), _TOGETHER):
            some = waiting[first : first + _TOGETHER]
            self._socket.send(b"".join([before, *(body for _, body in some), behind]))
            left = len(some)
            while left:
                for kind, number, body in self._messages():
                    if kind == _ERROR:
                        left -= 1
                        self._check(waiting[number][0], body)

    def dump(self, kind: int, body: bytes, most: int = 1 << 20) -> Iterator[bytes]:
        """Yield the messages of a kernel listing, each without its header."""
        head = struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | _DUMP, 0, 0)
        self._socket.send(head + body)
        while True:
            for found, _, content in self._messages(most):
                if found == _DONE:
                    return
                if found == _ERROR:
                    self._check(f"list {kind}", content)
                yield content

    def _check(self, what: str, body: bytes) -> None:
        (number,) = struct.unpack_from("=i", body)
        if number:
            says = os.strerror(-number)
            if -number == errno.EOPNOTSUPP:  # of a kind of device too, if its module is missing
                says += "; this kernel may lack the module for it"
            raise LabError(f"{what} in {self._namespace.name}: {says}")

    def _messages(self, most: int = 1 << 16) -> Iterator[tuple[int, int, bytes]]:
        data = self._socket.recv(most)
        at = 0
        while at < len(data):
            length, kind, _, number, _ = struct.unpack_from("=IHHII", data, at)
            yield kind, number, data[at + 16 : at + length]
            at += length + -length % 4

    def inactive(self) -> list[str]:
        """Return the names of the devices that are up but do not carry packets yet."""
        found = []
        for body in self.dump(_GET_LINK, _link(0)):
            (flags,) = struct.unpack_from("=8xI", body)
            told = dict(attributes(body[16:]))
            if flags & _UP and told.get(_QDISC, b"noop\0") == b"noop\0":
                found.append(told[_NAME].rstrip(b"\0").decode())
        return found

    def unseen(self) -> list[str]:
        """Return the names of the devices that are up, and that the link watch has not seen so."""
        found = []
        for body in self.dump(_GET_LINK, _link(0)):
            (flags,) = struct.unpack_from("=8xI", body)
            told = dict(attributes(body[16:]))
            if flags & _UP and told.get(_OPERSTATE, _SEEN[0]) not in _SEEN:
                found.append(told[_NAME].rstrip(b"\0").decode())
        return found

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def forget_flows(namespace: Namespace) -> None:
    """Empty a namespace's conntrack table."""
    asked = _netfilter(namespace)
    asked.add("conntrack -F", _CONNTRACK_DELETE, struct.pack("=BBH", 0, 0, 0))
    asked.send()


@cache
def _netfilter(namespace: Namespace) -> Netlink:
    """Return a socket that stays open: to close one, the kernel ends what nft has begun first."""
    return Netlink(namespace, _NETFILTER)


def attribute(kind: int, value: bytes) -> bytes:
    """Return a netlink attribute."""
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and value of each attribute in a message."""
    for kind, first, last in attribute_places(data, 0, len(data)):
        yield kind, data[first:last]


def attribute_places(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the attributes in a part of a message: kind, and where the value begins and ends."""
    while at < end:
        length, kind = struct.unpack_from("=HH", data, at)
        yield kind & 0x3FFF, at + 4, at + length
        at += length + -length % 4


def _text(kind: int, text: str) -> bytes:
    return attribute(kind, text.encode() + b"\0")


def _bytes_of(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def _family(address: Address | Network) -> int:
    return socket.AF_INET if address.version == IPV4 else socket.AF_INET6


def _link(index: int, *, up: bool = False) -> bytes:
    flags = _UP if up else 0
    return struct.pack("=BxHiII", 0, 0, index, flags, flags)


def _route(to: Network, table: int, scope: int, kind: int, flags: int = 0) -> bytes:
    head = struct.pack(
        "=BBBBBBBBI", _family(to), to.prefixlen, 0, 0, table, _STATIC, scope, kind, flags
    )
    return head + (attribute(1, to.network_address.packed) if to.prefixlen else b"")
