"""Files that options name: the only module that opens files to read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from analyzer.errors import InputError
from analyzer.parsers.formats import read_ruleset

TYPE_CHECKING = False
if TYPE_CHECKING:  # only what is asked for is loaded
    from analyzer.parsers.rows import Skim
    from analyzer.reports.progress import Advance
    from analyzer.semantics.base_chains import Rules


def read_rules(
    name: str,
    input_format: str | None,
    table: str | None,
    advance: Advance | None,
    skim: Skim | None,
    *,
    most: int,
) -> Rules:
    """Return the rules of one dump; of ``-``, standard input.

    Raises:
        AnalyzerError: it is none.
        OSError: it cannot be read.
    """
    given = input_format, table, advance, skim
    if name == "-":
        return read_ruleset(sys.stdin.buffer, "<stdin>", *given, most=most)
    with open(name, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
        return read_ruleset(file, name, *given, most=most)


def files_of_objects(names: Sequence[str], most: int) -> Iterator[tuple[str, bytes]]:
    """Give name and content of each file; of a folder, of all that hold objects by their names.

    Raises:
        InputError: a folder holds none.
    """
    for name in names:
        if not os.path.isdir(name):  # noqa: PTH112  # pathlib is slow to load
            yield name, read_file(name, most)
            continue
        from analyzer.parsers.api_objects import holds_objects

        with os.scandir(name) as listed:
            inside = sorted(each.path for each in listed if each.name.split(".")[1:2] == ["json"])
        # Beside them other files may stand, of which nobody said that they are objects.
        found = [(file, data) for file in inside if holds_objects(data := read_file(file, most))]
        if not found:
            raise InputError(f"{name}: no file *.json of this folder holds API objects")
        yield from found


def read_file(name: str, most: int) -> bytes:
    """Return what a file holds, unpacked; of ``-``, standard input.

    Raises:
        InputError: that is more than `most` bytes, or damaged.
        OSError: it cannot be read.
    """
    from analyzer.parsers.compression import decompress
    from analyzer.parsers.contents import contents

    try:
        if name == "-":
            return decompress(bytes(contents(sys.stdin.buffer, most)), most)
        with open(name, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
            return decompress(bytes(contents(file, most)), most)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
