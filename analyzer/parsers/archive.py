"""Files in archives from untrusted sources; nothing is ever written to disk.

A tar archive is read header by header, and only plain files are yielded: links, devices and folders
are skipped. A path that leads out of the archive, a sparse file, too many members, and anything
inconsistent are refused. tarfile would accept all of that, and some headers make older versions of
it loop forever.

A zip archive has its list of members at its end, which zipfile reads as a whole: a list that is too
long is refused before that.

Source: POSIX, pax(1), ustar and pax formats; GNU tar, tar.h, of long names (`L`, `K`); PKWARE,
APPNOTE.TXT, 4.3.16, the end of central directory record.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

from analyzer.errors import InputError
from analyzer.model.text import printable
from analyzer.parsers.unpacking import Budget, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, BinaryIO, Final

#: Bytes of a file that are enough to recognise its kind.
HEAD: Final = 4096
_BLOCK: Final = 512
_MAGIC: Final = slice(257, 262)
_CHECKSUM: Final = slice(148, 156)
#: Most bytes of what precedes a member: a long name, or pax attributes.
_MOST_BEFORE: Final = 1 << 16
_PLAIN: Final = (b"0", b"\0")
#: Links, devices, folders, pipes: none of them is of use.
_PASSED_BY: Final = b"1234567"
_ZIP: Final = b"PK\x03\x04"
_END_OF_LIST: Final = b"PK\x05\x06"
_LENGTH_OF_LIST: Final = slice(12, 16)
#: Most bytes of a zip archive's list of members: 100,000 with names of 60 letters.
_MOST_LISTED: Final = 10 << 20
_LONGEST_END: Final = 22 + 0xFFFF


class ArchivedFile:
    """A file in an archive or a folder, readable until the next one is requested."""

    def __init__(self, name: str, size: int, read: Callable[[int], bytes], budget: Budget) -> None:
        self.name = name
        self.size = size
        self._read = read
        self._budget = budget
        self._head: bytes | None = None

    @property
    def head(self) -> bytes:
        """The first `HEAD` bytes, or all of a shorter file."""
        if self._head is None:
            self._head = self._read(min(self.size, HEAD))
        return self._head

    def content(self) -> bytes:
        """Return the whole file.

        Raises:
            InputError: it is more than may be kept.
        """
        self._budget.keep(self.size)
        head = self.head
        return head + self._read(self.size - len(head)) if self.size > len(head) else head


def is_archive(head: bytes) -> bool:
    """Return whether the first bytes, at least 512, are those of a tar archive."""
    return head[_MAGIC] == b"ustar"


def is_zip(head: bytes) -> bool:
    """Return whether the first bytes are those of a zip archive that is not empty."""
    return head.startswith(_ZIP)


def files_of_tar(stream: Stream, budget: Budget) -> Iterator[ArchivedFile]:
    """Yield the plain files of a tar archive, one after the other.

    Raises:
        InputError: it is damaged or truncated, or contains what no bundle does.
    """
    seen: set[str] = set()
    long_name = None
    while True:
        header = stream.take(_BLOCK)
        if len(header) < _BLOCK:
            raise InputError("the archive is truncated")
        if not any(header):
            return
        kind, size = header[156:157], _number(header[124:136])
        if not is_archive(header) or _number(header[_CHECKSUM]) != _sum(header):
            raise InputError("the archive is damaged")
        budget.member()
        behind = -size % _BLOCK
        if kind in b"LKxg":
            if size > _MOST_BEFORE:
                raise InputError("a name in the archive is too long")
            long_name = _name_before(kind, _whole(stream, size), long_name)
            _pass_by(stream, behind)
            continue
        name, long_name = long_name or _name(header), None
        _check_name(name)
        if kind in _PLAIN:
            if name in seen:
                raise InputError(f"{printable(name)} is twice in the archive")
            seen.add(name)
            left = _Left(stream, size)
            yield ArchivedFile(name, size, left.read, budget)
            _pass_by(stream, left.size + behind)
        elif kind in _PASSED_BY:
            # For a link, the size is that of its target, which does not follow here.
            _pass_by(stream, size + behind if kind == b"7" else 0)
        else:
            raise InputError(f"{printable(name)} in the archive is not a regular file")


class _Left:
    """The unread rest of a member."""

    def __init__(self, stream: Stream, size: int) -> None:
        self._stream = stream
        self.size = size

    def read(self, number: int) -> bytes:
        found = _whole(self._stream, min(number, self.size))
        self.size -= len(found)
        return found


def _whole(stream: Stream, number: int) -> bytes:
    found = stream.take(number)
    if len(found) < number:
        raise InputError("the archive is truncated")
    return found


def _pass_by(stream: Stream, number: int) -> None:
    if stream.skip(number) < number:
        raise InputError("the archive is truncated")


def _name_before(kind: bytes, content: bytes, before: str | None) -> str | None:
    """Return the name of the next member, if what precedes it has one."""
    if kind == b"L":
        return _text(content)
    return _pax_path(content) or before if kind == b"x" else before


def files_of_zip(file: BinaryIO, budget: Budget) -> Iterator[ArchivedFile]:
    """Yield the plain files of a zip archive, one after the other.

    Raises:
        InputError: it is damaged, or contains what no bundle does.
    """
    import zipfile
    import zlib

    _check_list(file)
    seen: set[str] = set()
    damaged = (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError)
    others = (NotImplementedError, RuntimeError)  # packed as no Python unpacks, or with a password
    try:
        archive = zipfile.ZipFile(file)
    except (*damaged, *others) as error:
        raise InputError(f"the zip archive is damaged: {error}") from None
    for each in archive.infolist():
        budget.member()
        _check_name(each.filename)
        if each.is_dir() or _is_link(each.external_attr >> 16):
            continue
        if each.filename in seen:
            raise InputError(f"{printable(each.filename)} is twice in the archive")
        seen.add(each.filename)
        try:
            with archive.open(each) as packed:
                yield ArchivedFile(
                    each.filename, each.file_size, _reader(packed, budget, damaged), budget
                )
        except damaged as error:
            raise InputError(f"the zip archive is damaged: {error}") from None
        except others as error:
            raise InputError(f"{printable(each.filename)} in the zip archive: {error}") from None


def _reader(
    packed: IO[bytes], budget: Budget, damaged: tuple[type[Exception], ...]
) -> Callable[[int], bytes]:
    """Return a function that reads a number of bytes from a member of a zip archive."""

    def read(number: int) -> bytes:
        found = bytearray()
        while len(found) < number:
            try:
                piece = packed.read(min(_MOST_BEFORE, number - len(found)))
            except damaged as error:
                raise InputError(f"the zip archive is damaged: {error}") from None
            if not piece:
                raise InputError("the zip archive is damaged: a member is shorter than it says")
            budget.passed(len(piece))
            found += piece
        return bytes(found)

    return read


def _check_list(file: BinaryIO) -> None:
    """Refuse a zip archive whose list of members is too long to be read whole."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _LONGEST_END))
    end = file.read(_LONGEST_END)
    at = end.rfind(_END_OF_LIST)
    file.seek(0)
    if at < 0:
        raise InputError("the zip archive is truncated")
    if int.from_bytes(end[at:][_LENGTH_OF_LIST], "little") > _MOST_LISTED:
        raise InputError("more members in the zip archive than any bundle has")


def _is_link(mode: int) -> bool:
    """Return whether a member's mode (stat(2)) is that of a link, a device or a pipe."""
    kind = mode & 0o170000
    return kind not in {0, 0o100000}


def _number(field: bytes) -> int:
    """Return an octal number; base 256, used for sizes from 8 GiB on, is refused."""
    digits = field.strip(b"\0 ")
    if not digits.isdigit() or digits.translate(None, b"01234567"):
        raise InputError("the archive is damaged")
    return int(digits, 8)


def _sum(header: bytes) -> int:
    """Return the sum of a header's bytes; the checksum's own eight count as blanks."""
    return sum(header) - sum(header[_CHECKSUM]) + 8 * ord(" ")


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _name(header: bytes) -> str:
    # GNU tar, whose magic has a blank there, has times where POSIX has a prefix.
    prefix = _text(header[345:500]) if header[262:263] == b"\0" else ""
    return f"{prefix}/{_text(header[:100])}" if prefix else _text(header[:100])


def _pax_path(content: bytes) -> str | None:
    """Return the path among pax attributes, each of the form ``LENGTH KEY=VALUE`` and a newline."""
    path = None
    at = 0
    while at < len(content):
        digits = content[at : at + 8].partition(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        record = content[at : at + length]
        if length <= len(digits) + 1 or len(record) < length or record[-1:] != b"\n":
            raise InputError("the archive is damaged")
        key, _, value = record[len(digits) + 1 : -1].partition(b"=")
        if key == b"path":
            path = _text(value)
        elif key == b"size" or key.startswith(b"GNU.sparse"):
            raise InputError("a file in the archive is sparse, or is too large")
        at += length
    return path


def _check_name(name: str) -> None:
    if name.startswith("/") or ".." in name.split("/") or not name:
        raise InputError(f"{printable(name)!r} in the archive leads out of it")
