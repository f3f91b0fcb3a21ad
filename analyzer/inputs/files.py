"""Files that options name: the only module that opens files for reading."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from analyzer.errors import InputError, UsageError
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import replace
from analyzer.parsers.contents import too_large
from analyzer.parsers.formats import read_ruleset

TYPE_CHECKING = False
if TYPE_CHECKING:  # only loaded when needed
    from types import SimpleNamespace
    from typing import Final, Self

    from analyzer.parsers.rows import Skim
    from analyzer.reports.progress import Advance
    from analyzer.semantics.base_chains import Rules

#: In a folder of objects and below it, of any kind: more than a dump of a large cluster has.
_MOST_FILES: Final = 100_000
_OF_OBJECTS: Final = frozenset(("json", "jsonl", "ndjson", "yaml", "yml"))
_BLOCK: Final = 512
#: How dumps and objects begin; no archive of files has such a name.
_DUMPS: Final = (b"#", b"*", b"{", b"")
_PACKED: Final = frozenset(("gz", "bz2", "xz", "zst"))


class Member(str):
    """The name of a file in a bundle, as reports show it, and its content.

    Attributes:
        bundle: the bundle's name on the command line.
        node: the node that it was taken from; empty if it does not say.
        backend: the backend of rules that do not say it themselves; None if it is not known.
        synced: when kube-proxy last wrote its rules, in seconds since 1970; None if not known.
        taken: when the file was taken, in RFC 3339 form; empty if not known.
    """

    __slots__ = ("backend", "bundle", "data", "node", "synced", "taken")
    data: bytes
    bundle: str
    node: str
    backend: str | None
    synced: float | None
    taken: str

    @classmethod
    def of(cls, bundle: str, file: str, data: bytes, node: str) -> Self:
        """Return the name of a file in a bundle, with its content."""
        found = cls(f"{bundle}:{file}")
        found.data = data
        found.bundle, found.node = bundle, node
        found.backend, found.synced, found.taken = None, None, ""
        return found


def read_rules(
    name: str,
    input_format: str | None,
    table: str | None,
    advance: Advance | None,
    skim: Skim | None,
    *,
    most: int,
) -> Rules:
    """Return the rules of one dump; ``-`` is standard input.

    Raises:
        AnalyzerError: it is none.
        OSError: it cannot be read.
    """
    given = input_format, table, advance, skim
    if isinstance(name, Member):
        found = read_ruleset(name.data, name, *given, most=most)
        is_silent = isinstance(found, Ruleset) and found.backend is None and name.backend
        return replace(found, backend=name.backend) if is_silent else found
    if name == "-":
        return read_ruleset(sys.stdin.buffer, "<stdin>", *given, most=most)
    with open(name, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
        return read_ruleset(file, name, *given, most=most)


def refuse_to_read_twice(options: SimpleNamespace) -> None:
    """Refuse several files that are all ``-``.

    Raises:
        UsageError: there are several.
    """
    given = [
        each
        for name, value in vars(options).items()
        if name not in {"output", "typed"}
        for each in (value if isinstance(value, list) else [value])
    ]
    if given.count("-") > 1:
        raise UsageError(
            "- is standard input, which can be read only once: pass the others as files"
        )


def files_of_objects(names: Sequence[str], most: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file; for a folder, of those named like objects.

    Raises:
        InputError: a folder holds none, more than can be meant, or a link that leads out of it.
        OSError: a file or a folder cannot be read.
    """
    for name in names:
        if not os.path.isdir(name):  # noqa: PTH112  # pathlib is slow to load
            yield from _objects_of_file(name, most)
            continue
        from analyzer.parsers.api_objects import holds_objects

        found, bytes_read = False, 0
        # There may be other files, which need not contain objects.
        for file in sorted(_files_below(name)):
            data = read_file(file, most)
            if holds_objects(data):
                found = True
                bytes_read += len(data)
                if bytes_read > most:
                    raise InputError(f"{name}: altogether {too_large(most)}")
                yield file, data
        if not found:
            raise InputError(
                f"{name}: no file *.json or *.yaml in this folder or below holds API objects"
            )


def may_be_bundle(name: str) -> bool:
    """Return whether a name is a folder, or a file that may be an archive."""
    if isinstance(name, Member):
        return False
    if name == "-":
        stdin = getattr(sys.stdin, "buffer", None)
        if stdin is None or not hasattr(stdin, "peek"):
            return False
        return _may_be_archive(stdin.peek(_BLOCK)[:_BLOCK])
    if os.path.isdir(name):  # noqa: PTH112  # pathlib is slow to load
        return True
    if not os.path.isfile(name):  # noqa: PTH113  # as above
        return False
    with open(name, "rb") as file:  # noqa: PTH123  # as above
        return _may_be_archive(file.read(_BLOCK))


def _may_be_archive(head: bytes) -> bool:
    if head[:1] in _DUMPS:  # no need to load what knows archives
        return False
    from analyzer.parsers.archive import is_archive, is_zip
    from analyzer.parsers.compression import is_compressed

    return is_archive(head) or is_zip(head) or is_compressed(head)


def _objects_of_file(name: str, most: int) -> Iterator[tuple[str, bytes]]:
    """Yield the file itself; of an archive, those in it that hold objects."""
    bundled = None
    if name != "-" and may_be_bundle(name):
        from analyzer.inputs.bundle_files import kept_files

        bundled = kept_files(name, most)
    if bundled is None:
        yield name, read_file(name, most)
        return
    found = [each for each in bundled if each.kind == "objects"]
    if not found:
        raise InputError(f"{name}: no file in this archive holds API objects")
    yield from ((f"{name}:{each.path}", each.data) for each in found)


def _files_below(folder: str) -> Iterator[str]:
    """Yield the files of a folder, and of all folders in it, that may hold objects.

    Of a link that leads to somewhere in the folder nothing is lost: what it leads to is read
    where it stands. What is no file (a pipe has no end) is left out.
    """
    inside = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118  # pathlib is slow to load
    waiting, seen = [folder], 0
    while waiting:
        with os.scandir(waiting.pop()) as listed:
            for each in listed:
                seen += 1
                if seen > _MOST_FILES:
                    raise InputError(
                        f"{folder}: more than {_MOST_FILES:,} files; name those with objects"
                    )
                if each.is_symlink():
                    _refuse_link_out(folder, each, inside)
                elif each.is_dir():
                    waiting.append(each.path)
                elif each.is_file() and _is_named_as_objects(each.name):
                    yield each.path


def _refuse_link_out(folder: str, link: os.DirEntry[str], inside: str) -> None:
    matters = _is_named_as_objects(link.name) or link.is_dir()
    leads_to = os.path.join(os.path.realpath(link.path), "")  # noqa: PTH118  # as above
    if matters and not leads_to.startswith(inside):
        raise InputError(f"{link.path}: a link that leads out of {folder}; name its target instead")


def _is_named_as_objects(name: str) -> bool:
    """Return whether a name ends as those of JSON and YAML do, packed or not."""
    *parts, last = name.lower().split(".")
    if last in _PACKED and parts:
        last = parts.pop()
    return bool(parts) and last in _OF_OBJECTS


def read_file(name: str, most: int) -> bytes:
    """Return the content of a file, decompressed; ``-`` is standard input.

    Raises:
        InputError: that is more than `most` bytes, or damaged.
        OSError: it cannot be read.
    """
    from analyzer.parsers.compression import decompress
    from analyzer.parsers.contents import contents

    if isinstance(name, Member):
        return name.data
    try:
        if name == "-":
            return decompress(bytes(contents(sys.stdin.buffer, most)), most)
        with open(name, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
            return decompress(bytes(contents(file, most)), most)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
