"""Filters of sockets: classic BPF programs.

Source: Linux, net/core/filter.c; Documentation/networking/filter.rst.
"""

from __future__ import annotations

from typing import Final

from netns_lab.layout import ANSWER, LINK, PacketLayout
from netns_lab.ring import Instruction

_LOAD_HALF, _LOAD_BYTE = 0x28, 0x30
_AND, _EQUAL, _ANY_BIT = 0x54, 0x15, 0x45
_LOAD_WORD, _TO_X, _EQUAL_X = 0x20, 0x07, 0x1D
_RETURN: Final = 0x06
#: Ancillary data that a filter can load: the packet's type, 0 if it is for this host; the number of
#: the device by which it came.
_PACKET_TYPE: Final = 0xFFFFF000 + 4
_DEVICE: Final = 0xFFFFF000 + 8
_LOOPBACK: Final = 1
#: Where the IP header begins, for sockets that get packets without it.
_IP: Final = 0xFFF00000
_WORD: Final = 4
_ETHERTYPE_AT: Final = 12
#: The last four bytes of the MAC address that a frame is for.
_LAST_OF_MAC: Final = 2
_ALL: Final = 0x40000

_SYN: Final = 0x02
_RST: Final = 0x04
_SYN_ACK: Final = 0x12
_ACK: Final = 0x10
_INIT: Final = 1
#: Type of "destination unreachable" in ICMP and ICMPv6.
_UNREACHABLE: Final = {1: 3, 58: 1}


def arrivals(layout: PacketLayout) -> list[Instruction]:
    """Return a filter for the first packets of flows that arrive at a host."""
    to_this_host = (_LOAD_BYTE, _PACKET_TYPE), (_EQUAL, 0)
    steps = [*_of(layout), *to_this_host, *_carries(layout.next_protocol, layout.number)]
    match layout.protocol:
        case "tcp":
            steps += [(_LOAD_BYTE, LINK + layout.flags), (_AND, _SYN_ACK), (_EQUAL, _SYN)]
        case "sctp":
            steps += [(_LOAD_BYTE, LINK + layout.chunk), (_EQUAL, _INIT)]
        case _:
            steps += [(_LOAD_BYTE, LINK + layout.mark), (_EQUAL, 0)]
    return _program(steps)


def answers(layout: PacketLayout, mac: str) -> list[Instruction]:
    """Return a filter for answers to clients, and for refusals by the protocol or by ICMP.

    Clients are told by the last four bytes of the MAC address, which is one that their device has
    or, for deaf ones, has not.
    """
    last = int(mac.replace(":", "")[4:], 16)
    steps = [*_of(layout), (_LOAD_WORD, _LAST_OF_MAC), (_EQUAL, last)]
    of_icmp = [
        *_carries(layout.next_protocol, layout.icmp),
        (_LOAD_BYTE, LINK + layout.header),
        (_EQUAL, _UNREACHABLE[layout.icmp]),
        *_carries(layout.quoted + layout.next_protocol, layout.number),
    ]
    other = _carries(layout.next_protocol, layout.number)
    if layout.protocol == "tcp":
        # A pod that reaches itself receives the SYN too.
        other += [(_LOAD_BYTE, LINK + layout.flags), (_ANY_BIT, _RST | _ACK)]
    if layout.protocol == "udp":
        other += [(_LOAD_BYTE, LINK + layout.mark), (_EQUAL, ANSWER)]
    return _program(steps, of_icmp, other)


def from_others(version: int) -> list[Instruction]:
    """Return a filter of servers for all but packets that come back to their sender by a device.

    The sender's kernel drops these, with IPv4 in any case; that of the lab does not, where all pods
    of a node are one host.
    """
    layout = PacketLayout(version, "udp")
    words = range(0, layout.destination - layout.source, _WORD)
    to_end = 4 * len(words) + 1
    program = [(_LOAD_WORD, 0, 0, _DEVICE), (_EQUAL, to_end, 0, _LOOPBACK)]
    for left, at in zip(reversed(range(len(words))), words, strict=True):
        program += [
            (_LOAD_WORD, 0, 0, _IP + layout.source + at),
            (_TO_X, 0, 0, 0),
            (_LOAD_WORD, 0, 0, _IP + layout.destination + at),
            (_EQUAL_X, 0, 4 * left + 1, 0),
        ]
    return [*program, (_RETURN, 0, 0, 0), (_RETURN, 0, 0, _ALL)]


def _of(layout: PacketLayout) -> list[tuple[int, int]]:
    return [(_LOAD_HALF, _ETHERTYPE_AT), (_EQUAL, layout.ethertype)]


def _carries(at: int, protocol: int) -> list[tuple[int, int]]:
    return [(_LOAD_BYTE, LINK + at), (_EQUAL, protocol)]


def _program(common: list[tuple[int, int]], *either: list[tuple[int, int]]) -> list[Instruction]:
    """Return a program that accepts what passes `common` and one of `either`."""
    parts = either or ([],)
    program: list[Instruction] = []
    total = len(common) + sum(map(len, parts)) + len(parts)
    leave = total
    for at, (code, constant) in enumerate(common):
        program.append(_instruction(code, constant, leave - at - 1))
    for number, part in enumerate(parts):
        behind = len(program) + len(part) + 1
        otherwise = leave if number == len(parts) - 1 else behind
        for code, constant in part:
            program.append(_instruction(code, constant, otherwise - len(program) - 1))
        program.append((_RETURN, 0, 0, _ALL))
    program.append((_RETURN, 0, 0, 0))
    return program


def _instruction(code: int, constant: int, otherwise: int) -> Instruction:
    asks = code in (_EQUAL, _ANY_BIT)
    return (code, 0, otherwise if asks else 0, constant)
