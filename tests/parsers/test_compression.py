from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable

import pytest

from analyzer.errors import InputError
from analyzer.parsers.compression import decompress, is_compressed

DATA = b"*nat\nCOMMIT\n" * 50
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def zstd(data: bytes) -> bytes:
    module = pytest.importorskip("zstandard")
    packed: bytes = module.ZstdCompressor().compress(data)
    return packed


@pytest.fixture(params=[*PACKERS, "zstd"])
def pack(request: pytest.FixtureRequest) -> Callable[[bytes], bytes]:
    return PACKERS.get(request.param, zstd)


def test_packed_data_is_unpacked(pack: Callable[[bytes], bytes]) -> None:
    assert decompress(pack(DATA)) == DATA


def test_its_first_bytes_tell_that_it_is_packed(pack: Callable[[bytes], bytes]) -> None:
    assert is_compressed(pack(DATA)[:8])


def test_several_packed_pieces_are_one(pack: Callable[[bytes], bytes]) -> None:
    assert decompress(pack(DATA[:20]) + pack(DATA[20:])) == DATA


def test_what_is_cut_off_is_refused(pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(InputError, match="damaged"):
        decompress(pack(DATA)[:-5])


def test_what_is_damaged_is_refused(pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(pack(DATA))
    packed[6:12] = b"\xff" * 6
    with pytest.raises(InputError, match="damaged"):
        decompress(bytes(packed))


@pytest.mark.parametrize("data", [b"", DATA, b"BZ", b"\x1f", "Übung".encode()])
def test_other_data_stays_as_it_is(data: bytes) -> None:
    assert decompress(data) == data
    assert not is_compressed(data)
