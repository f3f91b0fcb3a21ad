"""The bytes of an input, up to a limit, since a pipe need not end."""

from __future__ import annotations

import os

from analyzer.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Final

#: The default limit on the size of an input.
MOST_BYTES: Final = 2 << 30
_LARGE: Final = 1 << 22
_PIECE: Final = 1 << 20
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST_DIGITS: Final = 15


def size_from_text(text: str) -> int | None:
    """Return a number of bytes written like ``512M``; None if it is none, or 0."""
    unit = _UNITS.get(text[-1:].upper(), 1)
    digits = text[:-1] if unit > 1 else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        return None
    return int(digits) * unit or None


def contents(file: BinaryIO, most: int) -> bytes | bytearray | memoryview:
    """Return all bytes of a file.

    A large one is read into huge pages, because the kernel would otherwise supply thousands of
    small pages, which takes longer than reading into them.

    Raises:
        InputError: it has more than `most` bytes.
        OSError: it cannot be read.
    """
    try:
        size = os.fstat(file.fileno()).st_size
    except OSError:  # no file of the system
        size = 0
    if size > most:
        raise too_large(most)
    if size < _LARGE:
        wanted = min(size + 1 if size else _PIECE, most + 1)
        first = file.read(wanted)
        return first if len(first) < wanted else _rest(bytearray(first), file, most)
    import mmap
    from contextlib import suppress

    room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without
            room.madvise(mmap.MADV_HUGEPAGE)
    read: int = file.readinto(room)  # type: ignore[attr-defined]  # BinaryIO forgets it
    more = file.read(1)  # it grows, or is a device
    return _rest(bytearray(room[:read]) + more, file, most) if more else memoryview(room)[:read]


def _rest(found: bytearray, file: BinaryIO, most: int) -> bytearray:
    """Return `found` with the rest of a file, read in pieces so that Ctrl-C works in between."""
    while len(found) <= most:
        piece = file.read(min(_PIECE, most + 1 - len(found)))
        if not piece:
            return found
        found += piece
    raise too_large(most)


def too_large(most: int) -> InputError:
    """Return the error that an input, packed or not, is too large."""
    return InputError(
        f"more than {_size(most)}; --max-input SIZE allows more, for example {_more(most)}"
    )


def _more(most: int) -> str:
    """Return a value of ``--max-input`` that allows at least twice as much, in a whole unit."""
    name, unit = next((row for row in reversed(_UNITS.items()) if row[1] <= most), ("K", 1 << 10))
    return f"{-(-2 * most // unit)}{name}"


def _size(number: int) -> str:
    for unit, size in reversed(_UNITS.items()):
        if number % size == 0:
            return f"{number // size} {unit}iB"
    return f"{number} bytes"
