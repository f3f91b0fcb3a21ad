"""Counters of iptables-legacy rules, from the table blob that the kernel returns to iptables.

The offset of a counter in the blob changes only with the rules. So the blob is walked once, and a
reading is one system call and a few loads.

Source: Linux, include/uapi/linux/netfilter_ipv4/ip_tables.h and netfilter_ipv6/ip6_tables.h,
``struct ipt_getinfo``, ``struct ipt_get_entries``, ``struct ipt_entry``.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Final

from netns_lab.counted import CountedRules
from netns_lab.namespace import Namespace

_GET_INFO, _GET_ENTRIES = 64, 65
_INFO_SIZE: Final = 84
_HEAD: Final = 40
_NAME: Final = 32
#: The hooks in the order of their offsets in a table's info.
_HOOKS: Final = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
#: Tables up to this size, in bytes, keep their buffer from reading to reading.
_SMALL: Final = 1 << 24
_COUNTER: Final = 8
_ERROR_TARGET: Final = b"ERROR\0"

_libc: Final = ctypes.CDLL(None, use_errno=True)
_SIZES: Final = struct.Struct("=HH").unpack_from


@dataclass(frozen=True, slots=True)
class _Form:
    """Offsets of size and counter in an entry of one IP version."""

    level: int
    sizes: int
    counter: int


_FORMS: Final = {
    "ip": _Form(socket.IPPROTO_IP, 88, 96),
    "ip6": _Form(socket.IPPROTO_IPV6, 140, 152),
}


class Entries(CountedRules[int]):
    """One table of iptables-legacy in one namespace; its rules must not change.

    Args:
        rules: read only these, by chain and number there from 0; None: read all.
    """

    def __init__(
        self,
        namespace: Namespace,
        family: str,
        table: str = "nat",
        rules: Container[tuple[str, int]] | None = None,
    ) -> None:
        self._form = _FORMS[family]
        kind = socket.AF_INET if family == "ip" else socket.AF_INET6
        self._socket = namespace.socket(kind, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self._table = table.encode()
        info = bytearray(_INFO_SIZE)
        self._ask(_GET_INFO, info)
        (valid,) = struct.unpack_from("=I", info, _NAME)
        begins = struct.unpack_from("=5I", info, _NAME + 4)
        (self._size,) = struct.unpack_from("=I", info, _INFO_SIZE - 4)
        hooks = {begins[at]: name for at, name in enumerate(_HOOKS) if valid >> at & 1}
        self._blob = bytearray()
        if self._size > _SMALL and hasattr(_libc, "malloc_trim"):  # only glibc has it
            _libc.malloc_trim(0)  # what loading the rules took is not held beside the entries
        found = ((rule, at) for rule, at in self._walk(hooks) if rules is None or rule in rules)
        super().__init__(dict(found))

    def _ask(self, option: int, into: bytearray) -> None:
        into[: len(self._table)] = self._table
        length = ctypes.c_uint(len(into))
        held = (ctypes.c_char * len(into)).from_buffer(into)
        at = self._socket.fileno(), self._form.level, option
        if _libc.getsockopt(*at, held, ctypes.byref(length)):
            number = ctypes.get_errno()
            raise OSError(number, f"getsockopt: {os.strerror(number)}")

    def _read(self) -> bytearray:
        blob = self._blob or bytearray(_HEAD + self._size)
        struct.pack_into("=I", blob, _NAME, self._size)
        self._ask(_GET_ENTRIES, blob)
        if self._size <= _SMALL:  # to make a new one takes longer than to read it
            self._blob = blob
        return blob

    def _walk(self, hooks: Mapping[int, str]) -> Iterator[tuple[tuple[str, int], int]]:
        """Yield the offset of each rule's counter; the end of a chain counts as its last rule."""
        blob = self._read()
        at, chain, number = _HEAD, "", 0
        while at < len(blob):
            target, size = _SIZES(blob, at + self._form.sizes)
            hook = hooks.get(at - _HEAD)
            if hook is not None:
                chain, number = hook, 0
            named = at + target
            if blob[named + 2 : named + 2 + len(_ERROR_TARGET)] == _ERROR_TARGET:
                name = bytes(blob[named + _NAME : at + size]).split(b"\0")[0]
                chain, number = name.decode("utf-8", "surrogateescape"), 0
            else:
                yield (chain, number), at + self._form.counter
                number += 1
            at += size

    def _values(self) -> Sequence[int]:
        return self._take(memoryview(self._read()).cast("Q"))

    @cached_property
    def _take(self) -> Callable[[memoryview], Sequence[int]]:
        # Entries, and counters in them, are aligned to the eight bytes of a counter.
        places = [at // _COUNTER for at in self._where.values()]
        if len(places) > 1:
            return itemgetter(*places)
        return lambda words: [words[at] for at in places]
