"""Compressed input, recognised by its first bytes and not by its name."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping

from analyzer.errors import InputError
from analyzer.parsers.contents import MOST_BYTES, too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Final

#: Bytes unpacked at a time.
_PIECE: Final = 1 << 20
#: Bytes of packed zstd at a time: its frames can expand by 2**15.
_PACKED_PIECE: Final = 1 << 10


def _library(name: str) -> Callable[[bytes, int], bytes]:
    """Return a function that unpacks with a standard library module, loaded on first use."""

    def unpack(data: bytes, most: int) -> bytes:
        module, zlib = importlib.import_module(name), importlib.import_module("zlib")
        of_lzma: type[Exception] = getattr(module, "LZMAError", EOFError)
        unpacked = bytearray()
        try:
            with module.open(io.BytesIO(data)) as file:
                while piece := file.read(_PIECE):
                    unpacked += piece
                    if len(unpacked) > most:
                        raise too_large(most)
        except (OSError, EOFError, ValueError, zlib.error, of_lzma) as error:
            raise InputError(f"damaged compressed data: {error}") from None
        except MemoryError:  # xz may need 4 GiB, whatever is in it
            raise InputError("unpacking it takes more memory than is available") from None
        return bytes(unpacked)

    return unpack


def _zstandard() -> Any:
    """Return the module zstandard; before Python 3.14 the standard library has no equivalent."""
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        raise InputError(
            "compressed with zstd, which needs the package zstandard: "
            "pip install '.[zstd]' in a clone of kubeodds, or unpack it with `zstd -d` first"
        ) from None


def _zstd(data: bytes, most: int) -> bytes:
    zstandard = _zstandard()
    unpacked = bytearray()
    try:
        while data:  # one frame after the other
            # A frame written from a pipe does not state its size, so read it as a stream.
            frame = zstandard.ZstdDecompressor().decompressobj()
            at = 0
            while not frame.eof:
                piece = data[at : at + _PACKED_PIECE]
                if not piece:
                    raise InputError("damaged zstd data: it ends too early")
                at += len(piece)
                unpacked += frame.decompress(piece)
                if len(unpacked) > most:
                    raise too_large(most)
            data = frame.unused_data + data[at:]
    except zstandard.ZstdError as error:
        raise InputError(f"damaged zstd data: {error}") from None
    return bytes(unpacked)


_FORMATS: Final[Mapping[bytes, Callable[[bytes, int], bytes]]] = {
    b"\x1f\x8b": _library("gzip"),
    b"BZh": _library("bz2"),
    b"\xfd7zXZ\x00": _library("lzma"),
    b"\x28\xb5\x2f\xfd": _zstd,
}


#: A file that unpacks, and the exceptions it raises if the data is damaged.
Opened = tuple["BinaryIO", tuple[type[Exception], ...]]


def _stream(name: str) -> Callable[[BinaryIO], Opened]:
    """Return a function that opens a file packed in the format of a standard library module."""

    def opened(file: BinaryIO) -> Opened:
        module, zlib = importlib.import_module(name), importlib.import_module("zlib")
        of_lzma: type[Exception] = getattr(module, "LZMAError", EOFError)
        return module.open(file), (OSError, EOFError, ValueError, zlib.error, of_lzma)

    return opened


def _zstd_stream(file: BinaryIO) -> Opened:
    zstandard = _zstandard()
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return reader, (zstandard.ZstdError, OSError, ValueError)


_STREAMS: Final[Mapping[bytes, Callable[[BinaryIO], Opened]]] = {
    b"\x1f\x8b": _stream("gzip"),
    b"BZh": _stream("bz2"),
    b"\xfd7zXZ\x00": _stream("lzma"),
    b"\x28\xb5\x2f\xfd": _zstd_stream,
}


def opener(head: bytes) -> Callable[[BinaryIO], Opened] | None:
    """Return a function that opens a file with this beginning; None if it is not compressed."""
    return next((made for magic, made in _STREAMS.items() if head.startswith(magic)), None)


def is_compressed(data: bytes) -> bool:
    """Return whether `data`, which may be only the beginning, is compressed."""
    return data.startswith(tuple(_FORMATS))


def decompress(data: bytes, most: int = MOST_BYTES) -> bytes:
    """Return the unpacked content of `data`; other data unchanged.

    Raises:
        InputError: it is compressed, and damaged, truncated, or unpacks to more than `most` bytes.
    """
    for magic, unpack in _FORMATS.items():
        if data.startswith(magic):
            return unpack(data, most)
    return data
