"""How many flows rules of ours have counted in a set of nft, by address and port.

libnftables reads all sets of all tables before it lists one, which takes milliseconds for each
reading; and to empty a set is a transaction, for which the kernel takes as long. So the elements
are read by netlink, and the set is emptied only once it has many.

Source: include/uapi/linux/netfilter/nf_tables.h; net/netfilter/nf_tables_api.c,
``nf_tables_fill_setelem``, and ``nf_tables_delsetelem``: without elements, all of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final

from netns_lab.backend import SocketAddress
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink, attribute, attributes

_NETFILTER: Final = 12
_GET_ELEMENTS, _DELETE_ELEMENTS = 10 << 8 | 13, 10 << 8 | 14
_INET: Final = 1
_HEAD: Final = 4
_OF_TABLE, _OF_SET, _ELEMENTS = 1, 2, 3
_KEY, _EXPRESSION, _VALUE, _DATA, _PACKETS = 1, 7, 1, 2, 2
_COUNT: Final = struct.Struct(">Q").unpack
#: Elements that each reading may have to read again.
_MOST: Final = 64


class DrawnSet:
    """A set of a table of family inet: addresses and ports, each with a counter.

    The parts of a key are padded to words: the port has two bytes of zeros behind it.
    """

    def __init__(self, namespace: Namespace, table: str, name: str) -> None:
        self._netlink = Netlink(namespace, _NETFILTER)
        self.name = name
        self._place = struct.pack(">BBH", _INET, 0, 0)
        for kind, text in ((_OF_TABLE, table), (_OF_SET, name)):
            self._place += attribute(kind, text.encode() + b"\0")
        self._last = dict(self._counted())

    def new(self) -> Iterator[tuple[SocketAddress, int]]:
        """Yield the addresses and ports that were counted since the last call, and how often."""
        found = dict(self._counted())
        last, self._last = self._last, found
        if len(found) > _MOST:
            self._empty()
        for key, packets in found.items():
            more = packets - last.get(key, 0)
            if more:
                yield _sockaddr(key), more

    def packets(self) -> Mapping[SocketAddress, int]:
        """Return what the set counts by now."""
        return {_sockaddr(key): packets for key, packets in self._counted()}

    def _counted(self) -> Iterator[tuple[bytes, int]]:
        """Yield the elements: key, and packets."""
        for message in self._netlink.dump(_GET_ELEMENTS, self._place):
            elements = dict(attributes(message[_HEAD:])).get(_ELEMENTS, b"")
            for _, element in attributes(elements):
                parts = dict(attributes(element))
                counter = dict(attributes(dict(attributes(parts[_EXPRESSION]))[_DATA]))
                yield dict(attributes(parts[_KEY]))[_VALUE], _COUNT(counter[_PACKETS])[0]

    def _empty(self) -> None:
        self._last = {}
        self._netlink.add(f"flush set {self.name}", _DELETE_ELEMENTS, self._place)
        self._netlink.commit()


def _sockaddr(key: bytes) -> SocketAddress:
    return int.from_bytes(key[:-4]), int.from_bytes(key[-4:-2])
