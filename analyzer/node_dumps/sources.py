"""The dumps of a cluster that the command line names, node by node.

Theory of operation: a DUMP may be a file, a folder of any depth, a pattern, or an archive. In a
folder, files in one place whose names differ only in words for programs
(``worker1-ip6tables-save.txt``) are of one node; a folder or an archive in which `collect` or
another collector recorded a machine's name (MANIFEST, hostname) is a bundle, and read as one. Other
archives are streamed from beginning to end, whatever their size, and each node is yielded as soon
as it is complete.

A node is named as ``--name-from`` finds it in the path, else by its bundle, else after its files.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from analyzer.cluster.folder import writable
from analyzer.cluster.node_names import NodeNames
from analyzer.errors import InputError, UsageError
from analyzer.inputs.bundle_files import files_one_by_one, is_archive_file
from analyzer.inputs.files import may_be_bundle
from analyzer.inputs.nodes import without_program
from analyzer.model.value import value
from analyzer.parsers.bundled import HOSTNAME, MANIFEST, RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SUFFIXES: Final = re.compile(
    r"(?i)(?:\.(?:txt|out|log|json|nft|rules|dump|gz|xz|bz2|zst|tar|tgz))+$"
)
#: What begins a pattern.
_PATTERN: Final = re.compile(r"[*?\[]")
#: Names of files that make a folder a bundle.
_TELLS: Final = frozenset({"MANIFEST", "hostname"})
#: Endings of files that may be next to rules, and are not rules.
_NOT_RULES: Final = (".err", ".part", ".md", ".yaml", ".yml", ".sql", ".parquet", ".new")
_NO_FILE: Final = "neither a file nor a folder (a pipe, a socket, a device), so it is not read"
#: Most files of an archive that are examined to find out whether it is a bundle.
_LOOKED_AT: Final = 8


@value(kw_only=True)
class Task:
    """The dumps of one node, or a bundle, to read.

    Attributes:
        source: an identifier that is the same in each run.
        node: the node's name; empty if only the bundle contains it.
        files: paths; `held`: for those in an archive, their content.
        is_bundle: whether the one file is to be opened as a bundle.
        fingerprint: changes when the input does.
        why: the reason why it cannot be read, if so.
    """

    source: str
    node: str
    files: tuple[str, ...]
    fingerprint: str = ""
    held: tuple[bytes, ...] = ()
    is_bundle: bool = False
    why: str = ""


class DumpSources:
    """What has to be read of the dumps that were named.

    `known` are the names of the objects' nodes; `name_from` has one group, or none and is the name.
    """

    def __init__(
        self, dumps: Sequence[str], known: Collection[str], name_from: str | None, most: int
    ) -> None:
        self._dumps = dumps
        self._names = NodeNames(known)
        self._pattern = None if name_from is None else re.compile(name_from)
        self._most = most
        #: How many there will be, as far as that is known before all is read.
        self.number = 0
        self._listed: list[Task | str] | None = None
        #: Sources that were reached, and archives that were read to their end.
        self._met: set[str] = set()
        self._whole: set[str] = set()

    def lacks(self, source: str) -> bool:
        """Return whether something read earlier is gone, once all tasks have been returned.

        What was not named this time, and is where it was, is not.
        """
        if source in self._met:
            return False
        return any(source.startswith(f"{each}:") for each in self._whole) or not is_there(source)

    def tasks(self, is_done: Collection[tuple[str, str]]) -> Iterator[Task]:
        """Yield what has yet to be read, by source and fingerprint.

        Raises:
            InputError: nothing is there.
            OSError: it cannot be listed.
        """
        for each in self.listed():
            if isinstance(each, Task):
                self._met.add(each.source)
                if (each.source, each.fingerprint) not in is_done:
                    yield each
            else:
                yield from self._of_archive(each, is_done)

    def listed(self) -> list[Task | str]:
        """Return tasks, and names of archives whose content is not known yet."""
        if self._listed is None:
            # From wherever a later run is called, or a worker elsewhere reads.
            paths = map(os.path.abspath, self._dumps)
            self._listed = [each for name in paths for each in self._of(name)]
            if not self._listed:
                raise InputError(f"{', '.join(self._dumps)}: no dumps there")
            self.number = len(self._listed)
        return self._listed

    def _of(self, name: str) -> Iterator[Task | str]:
        if os.path.isdir(name):  # noqa: PTH112  # paths are text here
            yield from self._of_folder(name)
        elif os.path.exists(name):  # noqa: PTH110  # as above
            yield from self._of_files([name])
        elif _PATTERN.search(name):
            found = sorted(glob.iglob(name, recursive=True))  # noqa: PTH207  # as above
            if not found:
                raise InputError(f"{name}: no file has this name")
            files = [each for each in found if not os.path.isdir(each)]  # noqa: PTH112  # as above
            yield from self._of_files(files)
            for each in found:
                if os.path.isdir(each):  # noqa: PTH112  # as above
                    yield from self._of_folder(each)
        else:
            raise InputError(f"{name}: no such file or directory")

    def _of_folder(self, folder: str) -> Iterator[Task | str]:
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            with os.scandir(here) as listed:
                entries = sorted(listed, key=lambda each: each.name)
            if _TELLS.intersection(each.name for each in entries):
                yield self._bundle(here)
                continue
            yield from (
                self._refused(e.path, why) for e in entries if (why := _why_unread(e, folder))
            )
            files = [e.path for e in entries if _is_read(e)]
            yield from self._of_files([f for f in files if not _is_objects(f)])
            waiting += [e.path for e in reversed(entries) if e.is_dir(follow_symlinks=False)]

    def _of_files(self, files: Iterable[str]) -> Iterator[Task | str]:
        groups: dict[tuple[str, str], list[str]] = {}
        for path in files:
            if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113  # as above
                yield self._refused(path, _NO_FILE)
                continue
            try:
                is_archive = may_be_bundle(path) and is_archive_file(path, self._most)
                is_bundle = is_archive and self._is_bundle(path)
            except (OSError, InputError) as error:
                yield self._failed(path, error)
                continue
            if not is_archive:
                groups.setdefault(self._key(path), []).append(path)
            elif is_bundle:
                yield self._bundle(path)
            else:
                yield path
        for (_, name), paths in groups.items():
            yield Task(
                source=writable(paths[0]),
                node=writable(name),
                files=tuple(paths),
                fingerprint=" ".join(map(_fingerprint, paths)),
            )

    def _failed(self, path: str, error: OSError | InputError) -> Task:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return self._refused(path, why)

    def _refused(self, path: str, why: str) -> Task:
        name = self._key(path)[1]
        return Task(
            source=writable(path), node=writable(name), files=(path,), fingerprint="unread", why=why
        )

    def _bundle(self, path: str) -> Task:
        named = "" if self._pattern is None else self._key(path)[1]
        return Task(
            source=writable(path),
            node=writable(named),
            files=(path,),
            fingerprint=_fingerprint(path),
            is_bundle=True,
        )

    def _is_bundle(self, path: str) -> bool:
        """Return whether an archive says of which machine it is, or is of one node alone."""
        keys = set()
        for at, each in enumerate(files_one_by_one(path, self._most)):
            if each.kind in {MANIFEST, HOSTNAME}:
                return True
            if each.kind in RULES:
                keys.add(self._key(f"{path}/{each.path}"))
            if len(keys) > 1 and at >= _LOOKED_AT:
                return False
        return len(keys) <= 1

    def _of_archive(self, path: str, is_done: Collection[tuple[str, str]]) -> Iterator[Task]:
        fingerprint = _fingerprint(path)
        held: list[tuple[str, bytes]] = []
        key, seen = ("", ""), set[tuple[str, str]]()
        try:
            for each in files_one_by_one(path, self._most):
                if each.kind not in RULES:
                    continue
                own = self._key(f"{path}/{each.path}")
                if own != key and held:
                    yield from self._of_members(path, key, held, fingerprint, is_done, seen)
                    held = []
                key = own
                held.append((each.path, each.data))
            if held:
                yield from self._of_members(path, key, held, fingerprint, is_done, seen)
            self._whole.add(writable(path))
        except (InputError, OSError) as error:
            yield self._failed(path, error)

    def _of_members(
        self,
        path: str,
        key: tuple[str, str],
        held: list[tuple[str, bytes]],
        fingerprint: str,
        is_done: Collection[tuple[str, str]],
        seen: set[tuple[str, str]],
    ) -> Iterator[Task]:
        source = writable(f"{path}:{held[0][0]}")
        self._met.add(source)
        self.number += 1
        if (source, fingerprint) in is_done:
            return
        twice = key in seen
        seen.add(key)
        yield Task(
            source=source,
            node=writable(key[1]),
            files=tuple(f"{path}:{name}" for name, _ in held),
            fingerprint=fingerprint,
            held=tuple(data for _, data in held),
            why=("files of this node are not next to each other in the archive; unpack it")
            if twice
            else "",
        )

    def _key(self, path: str) -> tuple[str, str]:
        """Return the folder and the name of the node of a file."""
        folder, _, last = path.rpartition("/")
        if self._pattern is not None:
            found = self._pattern.search(path)
            if found is not None:
                name = found[1] if self._pattern.groups else found[0]
                return "", self._names.called(name) or name
        bare = _SUFFIXES.sub("", last)
        core = without_program(bare)
        above = folder.rpartition("/")[2]
        possible = (bare, core, above)
        named = next((each for each in possible if each in self._names), None)
        if named is None:
            named = next(filter(None, map(self._names.called, possible)), None)
        return folder, named or core or above or bare


def is_there(source: str) -> bool:
    """Return whether the file of a source exists, or the archive that it is in."""
    ends = [at for at, each in enumerate(source) if each == ":"]
    return any(os.path.lexists(source[:end]) for end in (None, *ends))


def checked_pattern(text: str, option: str = "name-from") -> str:
    """Return a pattern that an option names.

    Raises:
        UsageError: it is no regular expression, or has more than one group.
    """
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise UsageError(f"--{option} {text}: {error}") from None
    if groups > 1:
        what = option.partition("-")[0]
        raise UsageError(
            f"--{option} {text}: it has {groups} groups; the {what} is one group, or the whole "
            "match"
        )
    return text


def _why_unread(entry: os.DirEntry[str], folder: str) -> str:
    """Return why something that may contain dumps is not read; empty if it is, or has none.

    The target of a link within the folder is read at its own path.
    """
    if not _is_named_as_rules(entry):
        return ""
    if entry.is_symlink() and entry.is_dir():
        inside = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118  # paths are text here
        leads_to = os.path.join(os.path.realpath(entry.path), "")  # noqa: PTH118  # as above
        outside = not leads_to.startswith(inside)
        return f"a link that leads out of {folder}; name its target instead" if outside else ""
    is_other = not (entry.is_file() or entry.is_dir()) and os.path.exists(entry.path)  # noqa: PTH110  # as above
    return _NO_FILE if is_other else ""


def _is_named_as_rules(entry: os.DirEntry[str]) -> bool:
    return not entry.name.endswith(_NOT_RULES) and not entry.name.startswith(".")


def _is_read(entry: os.DirEntry[str]) -> bool:
    """Return whether a file may hold rules; of a link that leads nowhere, that is to be said."""
    leads_nowhere = entry.is_symlink() and not os.path.exists(entry.path)  # noqa: PTH110  # as above
    return (entry.is_file() or leads_nowhere) and _is_named_as_rules(entry)


def _is_objects(path: str) -> bool:
    """Return whether a file contains API objects, which may lie beside the dumps."""
    if not path.endswith((".json", ".json.gz")):
        return False
    if path.endswith(".gz"):
        return os.path.basename(path).startswith("objects")  # noqa: PTH119  # as above
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # as above
            return b'"nftables"' not in file.read(256)
    except OSError:
        return False  # who reads it says why it cannot be read


def _fingerprint(path: str) -> str:
    """Return what changes when a file, or what a folder holds, does."""
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114  # as above
        with os.scandir(path) as listed:
            inside = sorted(each.path for each in listed)
        return " ".join(map(_fingerprint, inside))
    try:
        told = os.stat(path)  # noqa: PTH116  # as above
    except OSError:
        return "gone"
    return f"{told.st_size}:{told.st_mtime_ns}"
