"""Compressed input, told by its first bytes and never by its name."""

from __future__ import annotations

import bz2
import gzip
import importlib
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Final

from analyzer.errors import InputError


def _zstd(data: bytes) -> bytes:
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise InputError(
            "compressed with zstd, which needs the package zstandard: "
            "pip install 'kubeodds[zstd]', or unpack it with `zstd -d` first"
        ) from None
    try:
        # A frame written from a pipe does not tell its size, so read it as a stream.
        unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    except zstandard.ZstdError as error:
        raise InputError(f"damaged zstd data: {error}") from None
    return bytes(unpacked)


_FORMATS: Final[Mapping[bytes, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ\x00": lzma.decompress,
    b"\x28\xb5\x2f\xfd": _zstd,
}


def decompress(data: bytes) -> bytes:
    """Return what `data` holds once unpacked; other data as it is.

    Raises:
        InputError: it is compressed, and damaged or cut off.
    """
    for magic, unpack in _FORMATS.items():
        if data.startswith(magic):
            try:
                return unpack(data)
            except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
                raise InputError(f"damaged compressed data: {error}") from None
    return data
