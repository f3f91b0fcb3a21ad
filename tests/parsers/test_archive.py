"""Archives: what tarfile writes is read, and whatever is odd is refused, never followed."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import InputError
from analyzer.parsers import unpacking
from analyzer.parsers.archive import files_of_tar, is_archive
from analyzer.parsers.unpacking import Budget, Stream
from tests.support.archives import packed

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
NAMES = st.text("abc\u00e9-.", min_size=1, max_size=120).filter(lambda name: name != "..")


def plain_files(data: bytes) -> dict[str, bytes]:
    budget = Budget(1 << 30)
    found = files_of_tar(Stream(io.BytesIO(data), budget), budget)
    return {entry.name: entry.content() for entry in found}


@given(
    st.dictionaries(NAMES, st.binary(max_size=1100), max_size=4),
    st.sampled_from((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)),
)
def test_what_was_packed_is_read(files: dict[str, bytes], form: int) -> None:
    data = packed(files, form)
    assert plain_files(data) == files
    assert is_archive(data) == bool(files)


@given(st.data())
def test_damage_is_refused_or_changes_nothing_else(data: st.DataObject) -> None:
    good = bytearray(packed({"f/a": b"one", "f/b": b"two"}, data.draw(st.sampled_from(FORMATS))))
    at = data.draw(st.integers(0, len(good) - 1))
    good[at] = data.draw(st.integers(0, 255))
    try:
        found = plain_files(bytes(good))
    except InputError:
        return
    assert len(found) <= 2


@pytest.mark.parametrize("form", FORMATS)
def test_every_archive_that_is_cut_off_is_refused(form: int) -> None:
    data = packed({"f/a": b"one"}, form)
    end = data.rindex(b"one") + 3
    for at in range(0, end, 37):
        with pytest.raises(InputError, match="truncated"):
            plain_files(data[:at])


@pytest.mark.parametrize("form", FORMATS)
def test_long_paths_are_read_in_each_format(form: int) -> None:
    files = {f"{'d' * 90}/{'n' * 90}": b"rules", "x": b""}
    assert plain_files(packed(files, form)) == files


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../b", ".."])
@pytest.mark.parametrize("form", FORMATS)
def test_names_that_lead_out_are_refused(name: str, form: int) -> None:
    with pytest.raises(InputError, match="leads out of it"):
        plain_files(packed({name: b""}, form))


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        tarfile.DIRTYPE,
    ],
)
def test_links_devices_and_their_like_are_passed_by(kind: bytes) -> None:
    row = tarfile.TarInfo("f/a")
    row.type, row.linkname = kind, "/etc/passwd"
    data = row.tobuf(tarfile.GNU_FORMAT) + packed({"f/b": b"two"})
    assert plain_files(data) == {"f/b": b"two"}


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_SPARSE, b"Z"])
def test_files_of_other_kinds_are_refused(kind: bytes) -> None:
    row = tarfile.TarInfo("f/a")
    row.type = kind
    with pytest.raises(InputError, match="is not a regular file"):
        plain_files(row.tobuf(tarfile.GNU_FORMAT) + bytes(1024))


def test_a_link_with_a_long_name_is_passed_by() -> None:
    row = tarfile.TarInfo("f/" + "a" * 300)
    row.type, row.linkname = tarfile.SYMTYPE, "b" * 300
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        assert plain_files(row.tobuf(form) + packed({"c": b"two"})) == {"c": b"two"}


def test_a_file_that_is_there_twice_is_refused() -> None:
    one = packed({"f/a": b"one"})
    with pytest.raises(InputError, match="twice"):
        plain_files(one[:1024] + one)


def test_members_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_MOST_MEMBERS", 5)
    assert len(plain_files(packed({str(number): b"" for number in range(5)}))) == 5
    with pytest.raises(InputError, match="more than 5 members"):
        plain_files(packed({str(number): b"" for number in range(6)}))


@pytest.mark.parametrize("size", [b"-0000000001\0", b"\x80" + bytes(10) + b"\1", b"99999999999\0"])
def test_sizes_that_are_none_are_refused(size: bytes) -> None:
    header = bytearray(tarfile.TarInfo("a").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = size
    header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 256)
    with pytest.raises(InputError, match="damaged"):
        plain_files(bytes(header) + bytes(1024))


def test_a_file_with_holes_is_refused() -> None:
    row = tarfile.TarInfo("a")
    row.pax_headers = {"GNU.sparse.major": "1"}
    with pytest.raises(InputError, match="is sparse"):
        plain_files(row.tobuf(tarfile.PAX_FORMAT) + bytes(1024))


def test_a_path_without_end_is_refused() -> None:
    with pytest.raises(InputError, match="too long"):
        plain_files(packed({"a" * 70_000: b""}))
