"""Compressed input, told by its first bytes and never by its name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from analyzer.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


def _library(name: str) -> Callable[[bytes], bytes]:
    """Return what unpacks with a module of the standard library, loaded when it is used."""

    def unpack(data: bytes) -> bytes:
        module, zlib = importlib.import_module(name), importlib.import_module("zlib")
        of_lzma: type[Exception] = getattr(module, "LZMAError", EOFError)
        try:
            unpacked: bytes = module.decompress(data)
        except (OSError, EOFError, ValueError, zlib.error, of_lzma) as error:
            raise InputError(f"damaged compressed data: {error}") from None
        return unpacked

    return unpack


def _zstd(data: bytes) -> bytes:
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise InputError(
            "compressed with zstd, which needs the package zstandard: "
            "pip install 'kubeodds[zstd]', or unpack it with `zstd -d` first"
        ) from None
    unpacked = b""
    try:
        while data:  # one frame after the other
            # A frame written from a pipe does not tell its size, so read it as a stream.
            frame = zstandard.ZstdDecompressor().decompressobj()
            unpacked += frame.decompress(data)
            if not frame.eof:
                raise InputError("damaged zstd data: it ends too early")
            data = frame.unused_data
    except zstandard.ZstdError as error:
        raise InputError(f"damaged zstd data: {error}") from None
    return unpacked


_FORMATS: Final[Mapping[bytes, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": _library("gzip"),
    b"BZh": _library("bz2"),
    b"\xfd7zXZ\x00": _library("lzma"),
    b"\x28\xb5\x2f\xfd": _zstd,
}


def is_compressed(data: bytes) -> bool:
    """Tell whether `data`, or what it is the beginning of, is compressed."""
    return data.startswith(tuple(_FORMATS))


def decompress(data: bytes) -> bytes:
    """Return what `data` holds once unpacked; other data as it is.

    Raises:
        InputError: it is compressed, and damaged or cut off.
    """
    for magic, unpack in _FORMATS.items():
        if data.startswith(magic):
            return unpack(data)
    return data
