"""The files of a bundle: in a folder, in an archive, or in an archive inside one.

Nothing is unpacked to disk, and no path of an archive is opened. Files pass by one after the other,
and only those that are of use are kept (`bundled`).
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator

from analyzer.errors import InputError
from analyzer.model.value import value
from analyzer.parsers.archive import (
    HEAD,
    ArchivedFile,
    files_of_tar,
    files_of_zip,
    is_archive,
    is_zip,
)
from analyzer.parsers.bundled import PART, kind_of, unfenced
from analyzer.parsers.compression import is_compressed
from analyzer.parsers.unpacking import Budget, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Final

#: Of what is kept of one bundle.
_MOST_KEPT: Final = 1 << 30
_BLOCK: Final = 512
#: Archives in archives: a sysdump has archives of bugtool, a collector's has those of sos.
_DEEPEST: Final = 2


@value
class BundleFile:
    """A file of a bundle that can be used: its path, kind, and content."""

    path: str
    kind: str
    data: bytes


def kept_files(name: str, most: int) -> list[BundleFile] | None:
    """Return the usable files of a folder or an archive; None if it is neither.

    Raises:
        InputError: there is too much of it, or it is damaged.
        OSError: it cannot be read.
    """
    budget = Budget(min(most, _MOST_KEPT))
    try:
        if name == "-":
            return _of_stdin(budget)
        if os.path.isdir(name):  # noqa: PTH112  # pathlib is slow to load
            return [*_kept(_files_of_folder(name, budget), budget, 0)]
        if not os.path.isfile(name):  # noqa: PTH113  # as above
            return None
        with open(name, "rb") as file:  # noqa: PTH123  # as above
            found = _entries(file, budget)
            return None if found is None else [*_kept(found, budget, 0)]
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(f"{name}: ") else f"{name}: {text}") from None


def files_one_by_one(name: str, most: int) -> Iterator[BundleFile]:
    """Yield the usable files of an archive of any size, with one in memory at a time.

    Raises:
        InputError: one file is too much, or the archive is damaged.
        OSError: it cannot be read.
    """
    budget = Budget(min(most, _MOST_KEPT))
    try:
        with open(name, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
            for each in _kept(_entries(file, budget) or iter(()), budget, 0):
                yield each
                budget.renew()
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(f"{name}: ") else f"{name}: {text}") from None


def is_archive_file(name: str, most: int) -> bool:
    """Return whether a file is an archive, compressed or not, rather than a compressed dump.

    Raises:
        OSError: it cannot be read.
    """
    with open(name, "rb") as file:  # noqa: PTH123  # as above
        return _entries(file, Budget(min(most, _MOST_KEPT))) is not None


def _of_stdin(budget: Budget) -> list[BundleFile] | None:
    """Return the files of an archive that comes from standard input; None if it is a dump.

    That can be read from there again.
    """
    from analyzer.parsers.contents import contents

    data = bytes(contents(sys.stdin.buffer, budget.most))
    found = _entries(io.BytesIO(data), budget)
    if found is None:
        sys.stdin = io.TextIOWrapper(io.BytesIO(data))
        return None
    return [*_kept(found, budget, 0)]


def _entries(file: BinaryIO, budget: Budget) -> Iterator[ArchivedFile] | None:
    """Return the files of an archive, packed or not; None if it is none."""
    head = file.read(_BLOCK)
    file.seek(0)
    if is_zip(head):
        return files_of_zip(file, budget)
    if is_compressed(head):
        try:
            unpacked = Stream(file, budget).take(_BLOCK)
        except InputError as error:
            if "pip install" in str(error):
                raise
            return None  # who reads it says what is wrong
        file.seek(0)
        head = unpacked
    return files_of_tar(Stream(file, budget), budget) if is_archive(head) else None


def _kept(entries: Iterator[ArchivedFile], budget: Budget, depth: int) -> Iterator[BundleFile]:
    for entry in entries:
        head = entry.head
        if is_compressed(head) or is_zip(head) or is_archive(head):
            if depth < _DEEPEST and entry.size <= budget.most:
                yield from _kept_of_packed(entry, budget, depth + 1)
            continue
        whole: list[bytes] = []

        def content(entry: ArchivedFile = entry, whole: list[bytes] = whole) -> bytes:
            if not whole:
                whole.append(entry.content())
            return whole[0]

        kind = kind_of(entry, content)
        if whole and not kind:
            budget.release(entry.size)
        if kind:
            data = b"" if kind == PART else unfenced(content())
            yield BundleFile(_plain(entry.name), kind, data)


def _kept_of_packed(entry: ArchivedFile, budget: Budget, depth: int) -> Iterator[BundleFile]:
    """Yield the files of an archive in an archive, or the one file that is packed."""
    path = _plain(entry.name)
    try:
        file = io.BytesIO(entry.content())
        inside = _entries(file, budget)
        if inside is not None:
            for each in _kept(inside, budget, depth):
                yield BundleFile(f"{path}/{each.path}", each.kind, each.data)
            return
        stream = Stream(file, budget)
        head = stream.take(HEAD)

        def read(number: int) -> bytes:
            nonlocal head
            found, head = head[:number], head[number:]
            return found

        one = ArchivedFile(path, len(head), read, budget)
        whole: list[bytes] = []

        def content() -> bytes:
            if not whole:
                file.seek(0)
                again = Stream(file, budget)
                whole.append(again.take(budget.most + 1))
                budget.keep(len(whole[0]))
            return whole[0]

        kind = kind_of(one, content)
        budget.release(entry.size + (len(whole[0]) if whole and not kind else 0))
        if kind:
            yield BundleFile(path, kind, unfenced(content()))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _files_of_folder(folder: str, budget: Budget) -> Iterator[ArchivedFile]:
    """Yield the plain files of a folder and of all below it; links are not followed."""
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as listed:
            found = sorted(listed, key=lambda each: each.name)
        for each in found:
            budget.member()
            if each.is_dir(follow_symlinks=False):
                waiting.append(each.path)
            elif each.is_file(follow_symlinks=False):
                size = each.stat(follow_symlinks=False).st_size
                with open(each.path, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
                    name = os.path.relpath(each.path, folder)
                    yield ArchivedFile(name, size, file.read, budget)


def _plain(path: str) -> str:
    """Return a path without the ``./`` that tar puts before all of a folder."""
    return path.removeprefix("./")
