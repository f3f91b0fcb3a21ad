"""A DNS server for clients that query one: it knows every name, or only some.

Source: RFC 1035, sections 4.1.1 to 4.1.4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping
from typing import Final

_HEADER: Final = 12
#: QR, AA, RD and RA set; no error.
_ANSWERS: Final = 0x8580
_REFUSES: Final = 0x8505
_NO_SUCH_NAME: Final = 0x8583
#: Types A and AAAA, by the bytes of their addresses.
_KINDS: Final = {4: 1, 16: 28}
_ADDRESS: Final = bytes([203, 0, 113, 53])


def respond(query: bytes, addresses: Collection[bytes] = (_ADDRESS,)) -> bytes:
    """Return the response to `query`, with those of `addresses` that have the type it asks for."""
    end = _question_end(query)
    if end is None:
        return query[:2] + struct.pack("!5H", _REFUSES, 0, 0, 0, 0)
    (kind,) = struct.unpack_from("!H", query, end - 4)
    found = [each for each in addresses if _KINDS[len(each)] == kind]
    header = query[:2] + struct.pack("!5H", _ANSWERS, 1, len(found), 0, 0)
    return header + query[_HEADER:end] + b"".join(map(_record, found))


def telling(addresses: Mapping[str, Collection[bytes]]) -> Callable[[bytes], bytes]:
    """Return a responder that has each name's addresses, and answers NXDOMAIN for all others.

    Names are without the final dot, in lower case; addresses in network order.
    """

    def respond_if_known(query: bytes) -> bytes:
        end = _question_end(query)
        if end is None:
            return respond(query)
        found = addresses.get(_name(query))
        if found is not None:
            return respond(query, found)
        return query[:2] + struct.pack("!5H", _NO_SUCH_NAME, 1, 0, 0, 0) + query[_HEADER:end]

    return respond_if_known


def _record(address: bytes) -> bytes:
    """Return a record with a pointer to the question's name, class IN, and a TTL of 30 seconds."""
    size = len(address)
    return b"\xc0\x0c" + struct.pack("!HHIH", _KINDS[size], 1, 30, size) + address


def _name(query: bytes) -> str:
    """Return the name of a query's first question."""
    labels, at = [], _HEADER
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
        at += query[at] + 1
    return ".".join(labels)


def _question_end(query: bytes) -> int | None:
    """Return the offset at which the first question ends; None if there is none."""
    at = _HEADER
    while at < len(query) and query[at]:
        at += query[at] + 1
    end = at + 5
    return end if end <= len(query) else None
