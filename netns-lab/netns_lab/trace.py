"""The kernel's own report of the rules that a packet matched.

A rule with ``-j TRACE`` makes the kernel report each rule that the packet matches from there on.
iptables-legacy reports through nfnetlink_log, as text with the rule's number; nftables, and thus
iptables-nft, in trace events with the rule's handle. (``nft monitor trace`` of nft 1.0.6 prints the
same as text only, so the events are read from netlink here.) Source: Linux,
net/ipv4/netfilter/ip_tables.c, ``trace_packet``; net/netfilter/nfnetlink_log.c;
net/netfilter/nf_tables_trace.c; include/uapi/linux/netfilter/nfnetlink_log.h.
"""

from __future__ import annotations

import re
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from analyzer.model.addresses import IPV4
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink

T = TypeVar("T")

#: A rule that a packet matched: table, chain, and its number in the chain, from 1. A number after
#: the last rule is the end of the chain.
Met = tuple[str, str, int]

_NETLINK_NETFILTER: Final = 12
_SOL_NETLINK: Final = 270
_ADD_MEMBERSHIP: Final = 1
_BUFFER: Final = 1 << 22
_NFGENMSG: Final = 4
_HEADER: Final = 16 + _NFGENMSG  # behind nlmsghdr

_ULOG, _NFTABLES = 4, 10
_LOG_PACKET: Final = _ULOG << 8
_LOG_CONFIG: Final = _ULOG << 8 | 1
_REQUEST_ACK: Final = 5
_TRACE_MESSAGE: Final = _NFTABLES << 8 | 17
_TRACE_GROUP: Final = 9
_GET_RULE: Final = _NFTABLES << 8 | 7
_RULE_TABLE, _RULE_CHAIN, _RULE_HANDLE = 1, 2, 3

_PREFIX: Final = 10
_FAMILY_AT: Final = 16
_TRACE_TABLE, _TRACE_CHAIN, _TRACE_HANDLE, _TRACE_TYPE, _TRACE_VERDICT = 1, 2, 3, 4, 5
_TRACE_POLICY: Final = 16
_OF_A_POLICY: Final = 1
_OF_A_RULE: Final = 3
_VERDICT_CODE, _VERDICT_CHAIN = 1, 2
_FAMILIES: Final = {1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}
_VERDICTS: Final = {
    0: "drop",
    1: "accept",
    2: "stolen",
    3: "queue",
    -1: "continue",
    -2: "break",
    -3: "jump",
    -4: "goto",
    -5: "return",
}

#: The table that sets ``nftrace``.
TRACING_TABLE: Final = "kubeodds-trace"
#: A rule that has no matches but a verdict is reported like the end of the chain, whose number
#: follows the last rule's.
_SAID: Final = re.compile(r"TRACE: (\w+):(\S+):(?:rule|return|policy):(\d+) ")


class KernelTrace(ABC, Generic[T]):
    """Listens in one namespace; packets must be sent one after the other."""

    def __init__(self, namespace: Namespace) -> None:
        self._socket = namespace.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.bind((0, 0))
        self._socket.setblocking(False)

    def met(self) -> list[T]:
        """Return the rules that were matched since the last call, in order.

        Raises:
            LabError: the kernel reported more than was read in time.
        """
        return list(self._met())

    def _met(self) -> Iterator[T]:
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError as error:
                raise LabError(
                    f"messages of the kernel's trace were lost: {error.strerror}"
                ) from None
            for kind, family, attributes in _messages(data):
                found = self._read(kind, family, attributes)
                if found is not None:
                    yield found

    @abstractmethod
    def _read(self, kind: int, family: int, attributes: dict[int, bytes]) -> T | None: ...

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


class LegacyTrace(KernelTrace[Met]):
    """Traces of iptables-legacy, or of ip6tables-legacy."""

    def __init__(self, namespace: Namespace, version: int = IPV4) -> None:
        super().__init__(namespace)
        family = socket.AF_INET if version == IPV4 else socket.AF_INET6
        namespace.set(f"net/netfilter/nf_log/{int(family)}", "nfnetlink_log")
        # Bind to group 0, copy no bytes of the packet, and report each packet at once.
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
            raise LabError(f"nfnetlink_log does not answer: error {-number}")

    def _read(self, kind: int, family: int, attributes: dict[int, bytes]) -> Met | None:
        del family
        if kind != _LOG_PACKET:
            return None
        said = _SAID.match(attributes.get(_PREFIX, b"").rstrip(b"\0").decode("utf-8", "replace"))
        return None if said is None else (said[1], said[2], int(said[3]))


@dataclass(frozen=True, slots=True, kw_only=True)
class NftEvent:
    """A rule of nft that a packet matched, or the policy that applied to it.

    Attributes:
        number: of the rule in its chain, from 1; None for the policy of the base chain.
        verdict: ``accept``, ``drop``, ``continue``, ``jump``, ``goto``, ``return``, ``queue`` or,
            if something took the packet over, such as a reject by ICMP, ``stolen``.
        target: the chain that ``jump`` and ``goto`` name.
    """

    family: str
    table: str
    chain: str
    number: int | None
    verdict: str
    target: str | None = None


class NftTrace(KernelTrace[NftEvent]):
    """Traces of nftables; call `learn` after each change of the rules.

    Only packets whose ``nftrace`` a rule has set are reported.
    """

    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self._namespace = namespace
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _TRACE_GROUP)

    def learn(self) -> None:
        """Read the handles of all rules.

        Not from libnftables: the JSON of 1.0.6 frees the name of a table with flags too early.
        """
        counts: dict[tuple[str, bytes, bytes], int] = {}
        self._numbers = {}
        netlink = Netlink(self._namespace, _NETLINK_NETFILTER)
        for rule in netlink.dump(_GET_RULE, bytes(_NFGENMSG)):
            told = _attributes(rule[_NFGENMSG:])
            family, table = _FAMILIES.get(rule[0], str(rule[0])), told[_RULE_TABLE]
            place = family, table, told[_RULE_CHAIN]
            counts[place] = counts.get(place, 0) + 1
            handle = int.from_bytes(told[_RULE_HANDLE], "big")
            self._numbers[family, _text(table), handle] = counts[place]
        netlink.close()

    def _read(self, kind: int, family: int, attributes: dict[int, bytes]) -> NftEvent | None:
        if kind != _TRACE_MESSAGE:
            return None
        table, chain = (_text(attributes[which]) for which in (_TRACE_TABLE, _TRACE_CHAIN))
        if table == TRACING_TABLE:
            return None
        of = int.from_bytes(attributes[_TRACE_TYPE], "big")
        where = _FAMILIES.get(family, str(family))
        if of == _OF_A_POLICY:
            code = int.from_bytes(attributes[_TRACE_POLICY], "big")
            verdict = _VERDICTS.get(code, str(code))
            return NftEvent(family=where, table=table, chain=chain, number=None, verdict=verdict)
        if of != _OF_A_RULE or _TRACE_HANDLE not in attributes:
            return None  # the end of a chain
        number = self._numbers[where, table, int.from_bytes(attributes[_TRACE_HANDLE], "big")]
        inner = _attributes(attributes[_TRACE_VERDICT])
        code = int.from_bytes(inner[_VERDICT_CODE], "big", signed=True)
        target = _text(inner.get(_VERDICT_CHAIN, b"")) or None
        return NftEvent(
            family=where,
            table=table,
            chain=chain,
            number=number,
            verdict=_VERDICTS.get(code, str(code)),
            target=target,
        )


def _text(name: bytes) -> str:
    return name.rstrip(b"\0").decode()


def _messages(data: bytes) -> Iterator[tuple[int, int, dict[int, bytes]]]:
    """Yield type, family and attributes of each netlink message."""
    at = 0
    while at + _HEADER <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        yield kind, data[at + _FAMILY_AT], _attributes(data[at + _HEADER : at + length])
        at += length + -length % 4


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        size, name = struct.unpack_from("=HH", data, at)
        if size < 4:  # noqa: PLR2004  # its own header: damaged
            break
        found[name & 0x3FFF] = data[at + 4 : at + size]
        at += size + -size % 4
    return found
