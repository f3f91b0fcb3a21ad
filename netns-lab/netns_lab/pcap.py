"""A capture, packet by packet: pcap and pcapng, compressed or not, as scapy reads them.

Only one packet is held at a time. A capture that ends in the middle of a packet, like that of a
tcpdump that was killed, is read up to there.
"""

from __future__ import annotations

import bz2
import gzip
import logging
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from scapy.config import conf
from scapy.error import Scapy_Exception
from scapy.utils import RawPcapReader

from analyzer.errors import InputError
from netns_lab.decoding import Decoded, decoder

#: Bytes that scapy may request at once; larger blocks of pcapng are not packets.
_MOST_AT_ONCE: Final = 1 << 24
_PACKED: Final = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open))
_DAMAGED: Final = (OSError, EOFError, zlib.error, lzma.LZMAError)
#: Logger on which scapy reports that it gave up, or skipped bytes.
_LOG: Final = "scapy.runtime"


@dataclass(slots=True)
class CapturedPacket:
    """A packet of a capture.

    Attributes:
        number: from 1.
        at: seconds since 1970; 0 if the capture does not say.
        is_: its segment, what is visible of one, or why it has none.
    """

    number: int
    at: float
    is_: Decoded


@dataclass(slots=True)
class Reading:
    """Reads one capture, once.

    Attributes:
        packets: how many were read so far.
        cut: why reading stopped; None if the capture ends with a whole packet.
    """

    path: str
    most: int
    packets: int = 0
    cut: str | None = None
    _told: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[CapturedPacket]:
        """Yield the packets.

        Raises:
            InputError: it is no capture, holds no packet, or more than `most` bytes.
            OSError: it cannot be read.
        """
        handler = _Listening(self._told)
        log = logging.getLogger(_LOG)
        before = log.propagate, log.handlers, conf.warning_threshold
        log.propagate, log.handlers, conf.warning_threshold = False, [handler], 0
        try:
            with _opened(self.path) as file:
                yield from self._read(_Bounded(file, self.path, self.most))
        finally:
            log.propagate, log.handlers, conf.warning_threshold = before

    def _read(self, file: _Bounded) -> Iterator[CapturedPacket]:
        try:
            reader = RawPcapReader(file)
        except Scapy_Exception:
            raise InputError(
                f"{self.path}: not a packet capture: expected pcap or pcapng, as `tcpdump -w` "
                "writes"
            ) from None
        is_ng = not hasattr(reader, "linktype")
        while (packet := self._next(reader, file, is_ng=is_ng)) is not None:
            self.packets += 1
            data, meta = packet
            link = meta.linktype if is_ng else reader.linktype
            decode = decoder(link)
            found = f"link type {link} is not known" if decode is None else decode(data)
            yield CapturedPacket(self.packets, _time(reader, meta, is_ng=is_ng), found)
        if not self.packets:
            why = "" if self.cut is None else f": {self.cut}"
            raise InputError(f"{self.path}: it contains no complete packet{why}")

    def _next(self, reader: Any, file: _Bounded, *, is_ng: bool) -> tuple[bytes, Any] | None:
        """Return a packet's bytes and metadata; None if there are no more."""
        self._told.clear()
        file.begin(has_blocks=is_ng)
        try:
            # Not through its iterator, which treats a broken block as the end.
            found: tuple[bytes, Any] = reader._read_packet()  # noqa: SLF001  # no public name
        except EOFError as error:
            says = str(error) or next(iter(self._told), "") or file.damage
            if says or file.is_short:
                self.cut = f"it ends in the middle of packet {self.packets + 1:,}"
            return None
        except (Scapy_Exception, ValueError, LookupError) as error:
            self.cut = f"packet {self.packets + 1:,} cannot be read: {error}"
            return None
        if not is_ng and file.is_short:
            self.cut = f"it ends in the middle of packet {self.packets + 1:,}"
            return None
        return found


def _time(reader: Any, meta: Any, *, is_ng: bool) -> float:
    if not is_ng:
        return float(meta.sec + meta.usec / (1e9 if reader.nano else 1e6))
    if meta.tshigh is None or meta.tslow is None:  # a simple packet block tells none
        return 0.0
    return float(((meta.tshigh << 32) + meta.tslow) / (meta.tsresol or 1e6))


def _opened(path: str) -> IO[bytes]:
    """Return an open capture, decompressed as it is read."""
    with Path(path).open("rb") as file:
        head = file.read(6)
    unpack = next((each for magic, each in _PACKED if head.startswith(magic)), None)
    if unpack is None:
        return Path(path).open("rb")
    opened: IO[bytes] = unpack(path)  # type: ignore[assignment]  # of bytes, as no mode is given
    return opened


class _Listening(logging.Handler):
    """Keeps log messages, and prints nothing."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told.append(record.getMessage())


class _Bounded:
    """A file with a limit on bytes read, which records whether it ended early.

    Attributes:
        is_short: since `begin`, a read got fewer bytes than requested where the file may not end.
        damage: what is wrong with its compression.
    """

    def __init__(self, file: IO[bytes], path: str, most: int) -> None:
        self._file, self.name, self._left, self._most = file, path, most, most
        self.is_short = False
        self.damage = ""
        self._may_end = self._has_blocks = True

    def begin(self, *, has_blocks: bool) -> None:
        """Expect a packet, or the end of the file in place of its header.

        In a file of blocks scapy itself reports an incomplete one, except for its header.
        """
        self._has_blocks, self._may_end, self.is_short = has_blocks, True, False

    def read(self, count: int = -1) -> bytes:
        if not 0 <= count <= _MOST_AT_ONCE:
            raise InputError(f"{self.name}: a block of {count:,} bytes is not a packet: damaged")
        try:
            found = self._file.read(count)
        except _DAMAGED as error:
            self.damage, self.is_short = str(error) or "damaged", True
            return b""
        self._left -= len(found)
        if self._left < 0:
            raise InputError(
                f"{self.name}: more than {self._most:,} bytes; --max-input allows more"
            )
        self.is_short |= len(found) < count and (bool(found) or not self._may_end)
        self._may_end = self._has_blocks
        return found

    def close(self) -> None:
        """Do nothing, since the file is closed where it was opened."""
