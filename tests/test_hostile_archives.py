"""Archives that are meant to do harm: refused or bounded in time and memory, and nothing written.

Each is asked about in a process of its own, whose time and memory are measured.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import resource
import stat
import subprocess  # noqa: TID251  # what is measured has a process of its own
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.archives import packed
from tests.support.effort import PROFILE

ROOT = Path(__file__).parents[1]
#: Far above what any of them takes here, far below what a bomb would: seconds and bytes.
_SECONDS = 30
_MEMORY = 500 << 20
_ZEROS = bytes(1 << 24)


LOSS = ("loss", "--dead", "10.0.0.1")


def asked(folder: Path, name: str, *words: str, verb: tuple[str, ...] = LOSS) -> tuple[int, str]:
    """Return status and stderr of a verb; it has been quick and small, and has written nothing."""
    spare = folder / "tmp"
    spare.mkdir()
    before = {each: each.stat().st_mtime_ns for each in folder.rglob("*") if each != spare}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    begun = time.monotonic()
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-B", "-m", "analyzer", *verb, name, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=_SECONDS,
        preexec_fn=limit,  # there are no threads here
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(spare)},
    )
    assert time.monotonic() - begun < _SECONDS
    assert "Traceback" not in done.stderr, done.stderr
    assert "MemoryError" not in done.stderr
    assert done.stdout == ""
    assert {each: each.stat().st_mtime_ns for each in folder.rglob("*") if each != spare} == before
    assert not [*spare.iterdir()]
    return done.returncode, done.stderr


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    row = tarfile.TarInfo(name)
    row.size, row.type = size, kind
    return row.tobuf(tarfile.USTAR_FORMAT)


def zstd(data: bytes) -> bytes:
    found: bytes = pytest.importorskip("zstandard").compress(data)
    return found


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}


@pytest.mark.parametrize("packing", PACKINGS if PROFILE == "soak" else ["gz", "zst"])
@pytest.mark.parametrize(
    "begins", [b"", b"*nat\n"] if PROFILE == "soak" else [b"*nat\n"], ids=ascii
)
def test_gigabytes_of_zeros_are_not_unpacked(tmp_path: Path, packing: str, begins: bytes) -> None:
    """A member of 4 GiB in some kilobytes: of no use, or one that looks like rules."""
    pack = PACKINGS[packing]
    size = 256 * len(_ZEROS)
    first = pack(header("iptables-save.txt", size) + begins.ljust(512, b"\n"))
    (tmp_path / "b.tar").write_bytes(first + 256 * pack(_ZEROS))
    status, said = asked(tmp_path, "b.tar")
    assert status == 2
    assert "a compressed byte expands to more than 250" in said or "more than 1 GiB" in said


def test_zeros_that_a_zip_archive_stands_for_are_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as made:
        for name, begin in (("a", b""), ("b", b"*nat\n")):
            with made.open(name, "w", force_zip64=True) as file:
                file.write(begin)
                for _ in range(3):
                    file.write(_ZEROS)
    status, said = asked(tmp_path, "b.zip", "--max-input", "32M")
    assert status == 2
    assert "b.zip: more than 32 MiB" in said


def test_a_zip_archive_that_lies_about_its_sizes_is_damaged(tmp_path: Path) -> None:
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("iptables-save.txt", b"*nat\n" + _ZEROS)
    real, told = (number.to_bytes(4, "little") for number in (len(_ZEROS) + 5, 5000))
    (tmp_path / "b.zip").write_bytes(room.getvalue().replace(real, told))
    status, said = asked(tmp_path, "b.zip")
    assert (status, "the zip archive is damaged" in said) == (2, True)


def test_a_list_of_members_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    """Where it is said to be long, and where it is."""
    end = b"PK\x05\x06" + bytes(8) + (1 << 31).to_bytes(4, "little") + bytes(6)
    with (tmp_path / "b.zip").open("wb") as file:
        file.write(b"PK\x03\x04")
        file.truncate(3 << 30)  # of holes
        file.seek(0, os.SEEK_END)
        file.write(end)
    status, said = asked(tmp_path, "b.zip")
    assert (status, "more members in the zip archive than any bundle has" in said) == (2, True)


@pytest.mark.skipif(PROFILE != "soak", reason="takes long; test_archive has a short one")
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE])
def test_a_million_members_are_refused(tmp_path: Path, kind: bytes) -> None:
    with gzip.open(tmp_path / "b.tar.gz", "wb", compresslevel=1) as file:
        for first in range(0, 1_000_000, 1000):
            numbers = range(first, first + 1000)
            file.write(b"".join(named(number, kind) for number in numbers))
    status, said = asked(tmp_path, "b.tar.gz")
    assert (status, "more than 200,000 members in the archive" in said) == (2, True)


def named(number: int, kind: bytes) -> bytes:
    """Return the header of a member without content, quicker than tarfile makes it."""
    row = b"f/%07d" % number
    plain = _HEADERS[kind]
    total = _SUMS[kind] + sum(row)
    return row + plain[len(row) : 148] + b"%06o\0 " % total + plain[156:]


_HEADERS = {
    kind: header("f/0000000", 0, kind)
    for kind in (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE)
}
#: Of all bytes but those of the name; the sum's own eight count as blanks.
_SUMS = {kind: sum(row[9:148]) + sum(row[156:]) + 8 * 32 for kind, row in _HEADERS.items()}


@pytest.mark.parametrize("archive", [True, False], ids=["archive", "dump"])
def test_xz_that_asks_for_all_memory_is_refused(tmp_path: Path, archive: bool) -> None:
    """Its header says how large a dictionary is, of which the decoder then makes room."""
    rules = b"*nat\nCOMMIT\n"
    data = bytearray(lzma.compress(packed({"iptables-save.txt": rules}) if archive else rules))
    block = data[12:24]  # size, flags, id and size of properties, dictionary, padding, CRC32
    assert block[2:4] == b"\x21\x01"
    block[4] = 40  # 4 GiB
    block[8:12] = zlib.crc32(bytes(block[:8])).to_bytes(4, "little")
    data[12:24] = block
    (tmp_path / "b.xz").write_bytes(data)
    status, said = asked(tmp_path, "b.xz")
    assert (status, "more memory than is available" in said) == (2, True), said


def test_archives_in_archives_come_to_an_end(tmp_path: Path) -> None:
    inside = packed({"iptables-save.txt": b"*nat\nCOMMIT\n"})
    for depth in range(12):
        inside = packed({f"{depth}.tar.gz": gzip.compress(inside)})
    (tmp_path / "b.tar").write_bytes(inside)
    status, said = asked(tmp_path, "b.tar")
    assert (status, "it contains no rules" in said) == (2, True)


def test_many_bombs_in_one_archive_are_one_bomb(tmp_path: Path) -> None:
    """Each for itself is harmless; what they unpack to is counted together."""
    bomb = gzip.compress(header("*", 1 << 26) + bytes(1 << 26))
    (tmp_path / "b.tar").write_bytes(packed({f"{n}.tar.gz": bomb for n in range(20)}))
    status, said = asked(tmp_path, "b.tar", "--max-input", "256M")
    assert status == 2
    assert "more than 1 GiB" in said or "a compressed byte expands to" in said


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../up", "a/../../b"] if PROFILE == "soak" else ["../up"]
)
def test_names_that_lead_out_are_refused_in_each_form(tmp_path: Path, name: str) -> None:
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(packed({name: b"*nat\nCOMMIT\n"})))
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w") as made:
        made.writestr(name, b"*nat\nCOMMIT\n")
    (tmp_path / "b.zip").write_bytes(room.getvalue())
    for file in ("b.tar.gz", "b.zip"):
        status, said = asked(tmp_path, file)
        assert (status, "leads out of it" in said) == (2, True)
        (tmp_path / "tmp").rmdir()


def test_links_and_devices_are_followed_nowhere(tmp_path: Path) -> None:
    rows = b""
    for kind in (*_LINKS, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE):
        row = tarfile.TarInfo(f"f/{kind.decode()}")
        row.type, row.linkname = kind, "/proc/self/environ"
        row.devmajor, row.devminor = 1, 5  # zeros without end
        rows += row.tobuf()
    (tmp_path / "b.tar").write_bytes(rows + packed({}))
    status, said = asked(tmp_path, "b.tar")
    assert (status, "it contains no rules" in said) == (2, True)


_LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE)


def test_a_link_in_a_zip_archive_is_followed_nowhere(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("*nat\n:A - [0:0]\nCOMMIT\n")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as made:
        row = zipfile.ZipInfo("iptables-save.txt")
        row.create_system, row.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        made.writestr(row, str(tmp_path / "rules"))
    status, said = asked(tmp_path, "b.zip")
    assert (status, "it contains no rules" in said) == (2, True)


@pytest.mark.parametrize("name", ["../up", "/tmp/up"])  # noqa: S108  # that nobody writes
def test_anonymise_writes_nothing_of_an_archive_that_leads_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(packed({name: b"*nat\nCOMMIT\n"})))
    status, said = asked(tmp_path, "b.tar.gz", verb=("anonymise",))
    assert (status, "leads out of it" in said) == (2, True)


def test_anonymise_unpacks_no_bomb(tmp_path: Path) -> None:
    first = gzip.compress(header("iptables-save.txt", 1 << 32) + b"*nat\n".ljust(512, b"\n"))
    (tmp_path / "b.tar").write_bytes(first + 256 * gzip.compress(_ZEROS))
    status, said = asked(tmp_path, "b.tar", verb=("anonymise",))
    assert status == 2
    assert "a compressed byte expands to more than 250" in said or "more than 1 GiB" in said


def test_a_folder_of_pipes_and_links_comes_to_an_end(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    folder.mkdir()
    os.mkfifo(folder / "iptables-save.txt")
    (folder / "again").symlink_to(folder)
    (folder / "zeros").symlink_to("/dev/zero")
    status, said = asked(tmp_path, "b")
    assert (status, "it contains no rules" in said) == (2, True)
