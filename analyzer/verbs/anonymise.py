"""``anonymise``: rules, objects and other listings of a node, with other names.

One dump, or one file of objects, is printed again; several files and bundles become one bundle.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator

from analyzer.errors import InputError, UsageError
from analyzer.inputs.files import may_be_bundle, read_file
from analyzer.output import DONE, PARTLY, say
from analyzer.verbs.salts import new_salt, salt_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.anonymise.files import Anonymiser, File
    from analyzer.anonymise.naming import Naming

_SCHEMA: Final = "kubeodds/anonymise-map/1"


def anonymise(options: SimpleNamespace) -> int:
    """Write the input with other names; return the exit status."""
    from analyzer.anonymise.files import Anonymiser
    from analyzer.anonymise.naming import Naming

    if options.map is not None and os.path.lexists(options.map):
        raise UsageError(f"--map {options.map}: it already exists")
    salt = new_salt() if options.salt_file is None else salt_of(options.salt_file)
    naming = Naming(salt, well_known=not options.every_name)
    files, is_bundle = _files(options)
    made = Anonymiser(naming, files, options.max_input)
    single = len(files) == 1 and not is_bundle
    if single:
        data = (made.objects() or made.text(files[0])).encode("utf-8", "surrogateescape")
    else:
        data = _archive(naming, made, files)
    if options.map is not None:
        _write_map(options.map, naming)
    try:
        _put(options, data, binary=not single)
    except BaseException:
        # A map without its output would only be in the way of the next attempt.
        if options.map is not None:
            os.unlink(options.map)  # noqa: PTH108  # pathlib is slow to load
        raise
    removed = ", ".join(f"{number:,} of: {what}" for what, number in naming.removals.items())
    if removed:
        say(f"kubeodds: not understood and left out: {removed}")
    return PARTLY if removed and options.strict else DONE


def _files(options: SimpleNamespace) -> tuple[list[File], bool]:
    """Return the files of the input, and whether any of them came in a bundle."""
    from analyzer.anonymise.files import File, kind_of
    from analyzer.inputs.bundle_files import kept_files

    found: list[File] = []
    is_bundle = False
    several = len(options.inputs) > 1
    for number, name in enumerate(options.inputs):
        kept = kept_files(name, options.max_input) if may_be_bundle(name) else None
        if kept is None:
            data = read_file(name, options.max_input)
            path = name.rpartition("/")[2] if several else name
            found.append(File(_unlike(path, found), kind_of(name, data), data))
            continue
        is_bundle = True
        # Each bundle has a folder of its own, as their files may have the same paths.
        before = f"{number}/" if several else ""
        found += [File(f"{before}{each.path}", each.kind, each.data) for each in kept]
    if not found:
        raise InputError(f"{options.inputs[0]}: it contains nothing that is recognised")
    return found, is_bundle


def _unlike(path: str, found: list[File]) -> str:
    """Return a path that no other file has."""
    taken = {each.path for each in found}
    return next(p for n in range(len(found) + 1) if (p := f"{n or ''}{path}") not in taken)


def _archive(naming: Naming, made: Anonymiser, files: list[File]) -> bytes:
    """Return a bundle of all files, packed."""
    import gzip
    import tarfile

    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, text in _members(naming, made, files):
            data = text.encode("utf-8", "surrogateescape")
            row = tarfile.TarInfo(path)
            row.size, row.mode = len(data), 0o600
            archive.addfile(row, io.BytesIO(data))
    return gzip.compress(room.getvalue(), mtime=0)


def _members(naming: Naming, made: Anonymiser, files: list[File]) -> Iterator[tuple[str, str]]:
    from analyzer.anonymise import files as of
    from analyzer.inputs.bundle_files import BundleFile
    from analyzer.inputs.bundle_nodes import root_of, roots_of
    from analyzer.inputs.nodes import without_program
    from analyzer.parsers import bundled

    kept = [BundleFile(each.path, each.kind, each.data) for each in files]
    roots = roots_of(sorted(kept, key=lambda each: each.path))
    taken: set[str] = set()
    objects = made.objects()
    if objects:
        yield "objects.json", objects
    for file in sorted(files, key=lambda each: each.path):
        if file.kind in {bundled.OBJECTS, bundled.WITHOUT_DEVICES}:
            continue
        root = root_of(file.path, roots)
        node = roots[root][0] if root in roots else ""
        inside = file.path.removeprefix(root)
        if root in roots and roots[root][1] is not None:
            path = of.collected_path(inside)
            if path is None and file.kind in {bundled.PART, bundled.MANIFEST}:
                continue
        elif file.kind in {bundled.PART, bundled.MANIFEST}:
            continue
        else:
            path = "hostname" if file.kind == bundled.HOSTNAME else None
        label = node or root.rstrip("/").rpartition("/")[2]
        folder = f"{naming.names.name('node', label)}/" if label else ""
        if path is None:
            # In one folder the rest of a file's name identifies the node.
            rest = without_program(inside.rpartition("/")[2])
            told = naming.names.name("node", rest) + "-" if rest and not node else ""
            path = f"{told}{of.called(file.kind)}"
        full = folder + path
        number = 1
        while full in taken:
            number += 1
            full = f"{folder}{number}/{path}" if node else f"{folder}{number}-{path}"
        taken.add(full)
        yield full, made.text(file)


def _write_map(name: str, naming: Naming) -> None:
    """Write the private map: what everything was called, for its owner only."""
    rows = [{"kind": each.kind, "old": each.old, "new": each.new} for each in naming.rows()]
    text = json.dumps({"schema": _SCHEMA, "names": rows}, indent=1) + "\n"
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def _put(options: SimpleNamespace, data: bytes, *, binary: bool) -> None:
    if options.output not in {None, "-"}:
        with open(options.output, "wb") as file:  # noqa: PTH123  # pathlib is slow to load
            file.write(data)
        return
    if binary and sys.stdout.isatty():
        raise UsageError(
            "stdout is a terminal; write the bundle to a file with --output FILE.tar.gz"
        )
    sys.stdout.flush()
    if binary and hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(data.decode("utf-8", "surrogateescape"))
