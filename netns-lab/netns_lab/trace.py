"""The kernel's own account of the rules that a packet met.

A rule with ``-j TRACE`` makes the kernel tell of each rule that the packet matches from there on.
iptables-legacy tells it by nfnetlink_log, as text with the rule's number; iptables-nft by
nftables' trace events, with the rule's handle.

Source: Linux, net/ipv4/netfilter/ip_tables.c, ``trace_packet``; net/netfilter/nfnetlink_log.c;
net/netfilter/nf_tables_trace.c; include/uapi/linux/netfilter/nfnetlink_log.h.
"""

from __future__ import annotations

import json
import re
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from netns_lab.command import run
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: A rule that a packet matched: table, chain, and its number in the chain, from 1. A number behind
#: the last rule is the chain's end.
Met = tuple[str, str, int]

_NETLINK_NETFILTER: Final = 12
_SOL_NETLINK: Final = 270
_ADD_MEMBERSHIP: Final = 1
_BUFFER: Final = 1 << 22
_HEADER: Final = 20  # nlmsghdr and nfgenmsg

_ULOG, _NFTABLES = 4, 10
_LOG_PACKET: Final = _ULOG << 8
_LOG_CONFIG: Final = _ULOG << 8 | 1
_REQUEST_ACK: Final = 5
_TRACE_MESSAGE: Final = _NFTABLES << 8 | 17
_TRACE_GROUP: Final = 9

_PREFIX: Final = 10
_TRACE_TABLE, _TRACE_CHAIN, _TRACE_HANDLE, _TRACE_TYPE = 1, 2, 3, 4
_OF_A_RULE: Final = 3
#: A rule that asks for nothing and decides is told as the chain's own end is, which has the number
#: behind the last rule's.
_SAID: Final = re.compile(r"TRACE: (\w+):(\S+):(?:rule|return|policy):(\d+) ")


class KernelTrace(ABC):
    """Listens in one namespace; packets must come one after the other."""

    def __init__(self, namespace: Namespace) -> None:
        self._socket = namespace.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.bind((0, 0))
        self._socket.setblocking(False)

    def met(self) -> list[Met]:
        """Return the rules that were matched since this was asked last, in order.

        Raises:
            LabError: the kernel told more than was read in time.
        """
        return list(self._met())

    def _met(self) -> Iterator[Met]:
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError as error:
                raise LabError(f"the kernel's trace got lost: {error.strerror}") from None
            for kind, attributes in _messages(data):
                found = self._read(kind, attributes)
                if found is not None:
                    yield found

    @abstractmethod
    def _read(self, kind: int, attributes: dict[int, bytes]) -> Met | None: ...

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


class LegacyTrace(KernelTrace):
    """Of iptables-legacy."""

    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        namespace.set("net/netfilter/nf_log/2", "nfnetlink_log")
        # Bind to group 0, copy no bytes of the packet, and tell of each at once.
        for kind, value in (
            (1, struct.pack("=B", 1)),
            (2, struct.pack(">IBB", 0, 1, 0)),
            (5, struct.pack(">I", 1)),
        ):
            self._configure(kind, value)

    def _configure(self, kind: int, value: bytes) -> None:
        padded = value + b"\0" * (-len(value) % 4)
        attribute = struct.pack("=HH", 4 + len(value), kind) + padded
        body = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0) + attribute
        head = struct.pack("=IHHII", 16 + len(body), _LOG_CONFIG, _REQUEST_ACK, 0, 0)
        self._socket.send(head + body)
        self._socket.setblocking(True)
        answer = self._socket.recv(1 << 16)
        self._socket.setblocking(False)
        (number,) = struct.unpack_from("=i", answer, 16)
        if number:
            raise LabError(f"nfnetlink_log cannot be asked: error {-number}")

    def _read(self, kind: int, attributes: dict[int, bytes]) -> Met | None:
        if kind != _LOG_PACKET:
            return None
        said = _SAID.match(attributes.get(_PREFIX, b"").rstrip(b"\0").decode("utf-8", "replace"))
        return None if said is None else (said[1], said[2], int(said[3]))


class NftTrace(KernelTrace):
    """Of iptables-nft; `learn` after each change of the rules."""

    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self._namespace = namespace
        self._numbers: dict[tuple[str, int], int] = {}
        self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _TRACE_GROUP)

    def learn(self) -> None:
        """Read which handle is which rule."""
        listed = json.loads(run(self._namespace, ["nft", "-j", "list", "ruleset"]).stdout)
        counts: dict[tuple[str, str], int] = {}
        self._numbers = {}
        for each in listed["nftables"]:
            rule = each.get("rule")
            if rule is not None:
                place = rule["table"], rule["chain"]
                counts[place] = counts.get(place, 0) + 1
                self._numbers[rule["table"], rule["handle"]] = counts[place]

    def _read(self, kind: int, attributes: dict[int, bytes]) -> Met | None:
        if kind != _TRACE_MESSAGE:
            return None
        of_a_rule = int.from_bytes(attributes[_TRACE_TYPE], "big") == _OF_A_RULE
        if not of_a_rule or _TRACE_HANDLE not in attributes:
            return None  # the end of a chain
        handle = int.from_bytes(attributes[_TRACE_HANDLE], "big")
        table, chain = (
            attributes[which].rstrip(b"\0").decode() for which in (_TRACE_TABLE, _TRACE_CHAIN)
        )
        return table, chain, self._numbers[table, handle]


def _messages(data: bytes) -> Iterator[tuple[int, dict[int, bytes]]]:
    """Give type and attributes of each netlink message."""
    at = 0
    while at + _HEADER <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        attributes, inner = {}, at + _HEADER
        while inner + 4 <= at + length:
            size, name = struct.unpack_from("=HH", data, inner)
            if size < 4:  # noqa: PLR2004  # its own header: damaged
                break
            attributes[name & 0x3FFF] = data[inner + 4 : inner + size]
            inner += size + -size % 4
        yield kind, attributes
        at += length + -length % 4
