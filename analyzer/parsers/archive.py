"""Files in a tar archive, which may come from anybody: none of it is ever written anywhere.

The archive is walked header by header, and only plain files are taken. What an archive of a node's
state has no use for (links, devices, names that lead out of it, more members than anybody made) is
refused. tarfile would read all of that, and older ones can be held in a loop by a header.

Source: POSIX, pax(1), ustar and pax formats; GNU tar, tar.h, of long names (`L`).
"""

from __future__ import annotations

from analyzer.errors import InputError
from analyzer.model.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_BLOCK: Final = 512
_MAGIC: Final = slice(257, 262)
_CHECKSUM: Final = slice(148, 156)
_MOST_MEMBERS: Final = 10_000
#: Of what stands before a member: a long name, or pax attributes.
_MOST_BEFORE: Final = 1 << 16


def is_archive(head: bytes) -> bool:
    """Tell whether the first bytes, at least 512, are those of a tar archive."""
    return head[_MAGIC] == b"ustar"


def plain_files(data: bytes) -> dict[str, bytes]:
    """Return the plain files of an archive by their paths in it.

    Raises:
        InputError: it is damaged or cut off, or holds what no bundle does.
    """
    found: dict[str, bytes] = {}
    at = members = 0
    long_name = None
    while True:
        header = data[at : at + _BLOCK]
        if len(header) < _BLOCK:
            raise InputError("the archive is cut off")
        if not any(header):
            return found
        kind, size = header[156:157], _number(header[124:136])
        if not is_archive(header) or _number(header[_CHECKSUM]) != _sum(header):
            raise InputError("the archive is damaged")
        content = data[at + _BLOCK : at + _BLOCK + size]
        if len(content) < size:
            raise InputError("the archive is cut off")
        at += _BLOCK + -(-size // _BLOCK) * _BLOCK
        members += 1
        if members > _MOST_MEMBERS:
            raise InputError(f"more than {_MOST_MEMBERS} members in the archive")
        if kind in b"Lxg" and size > _MOST_BEFORE:
            raise InputError("a name in the archive is too long")
        if kind == b"L":
            long_name = _text(content)
            continue
        if kind == b"x":
            long_name = _pax_path(content) or long_name
            continue
        if kind == b"g":
            continue
        name, long_name = long_name or _name(header), None
        _check_name(name)
        if kind in (b"0", b"\0"):
            if name in found:
                raise InputError(f"{printable(name)} is twice in the archive")
            found[name] = content
        elif kind != b"5":
            raise InputError(f"{printable(name)} in the archive is no plain file")


def _number(field: bytes) -> int:
    """Return an octal number; in base 256, which sizes from 8 GiB have, nothing of ours is."""
    digits = field.strip(b"\0 ")
    if not digits.isdigit() or digits.translate(None, b"01234567"):
        raise InputError("the archive is damaged")
    return int(digits, 8)


def _sum(header: bytes) -> int:
    """Return the sum of a header's bytes; its own eight count as blanks."""
    return sum(header) - sum(header[_CHECKSUM]) + 8 * ord(" ")


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _name(header: bytes) -> str:
    # GNU tar, whose magic has a blank there, keeps times where POSIX has a prefix.
    prefix = _text(header[345:500]) if header[262:263] == b"\0" else ""
    return f"{prefix}/{_text(header[:100])}" if prefix else _text(header[:100])


def _pax_path(content: bytes) -> str | None:
    """Return the path among pax attributes, each ``LENGTH KEY=VALUE`` and the end of a line."""
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
            raise InputError("a file in the archive has holes, or is too large")
        at += length
    return path


def _check_name(name: str) -> None:
    if name.startswith("/") or ".." in name.split("/") or not name:
        raise InputError(f"{printable(name)!r} in the archive leads out of it")
