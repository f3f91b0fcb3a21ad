"""What ``collect`` took from a node, given in place of a dump: an archive, or a folder.

Theory of operation: a bundle stands for the dumps in it, which `dumps` tells apart as if they had
been named one by one; for the API's objects, where no others are named; and for ``trace`` for the
node's addresses. Which file is which is told by how it begins. What was taken again later
(``again/``) is of the same rules, and is left aside. Rules of which some may be missing are
refused: those would count as if they were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from analyzer.errors import InputError
from analyzer.files import Member, files_of_bundle
from analyzer.model.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

_HEAD: Final = 4096
#: What the files are called in which `collect` puts rules.
_RULES: Final = ("iptables-", "ip6tables-", "nft-")
#: Columns of MANIFEST: a file's name, and what became of it.
_NAME, _RESULT, _COLUMNS = 0, 5, 7
_OF_NODE: Final = "# node "
_PART: Final = ".part"
_TEXT, _JSON = "nft-list-ruleset.txt", "nft-list-ruleset.json"
_FORMS: Final = {_TEXT: _JSON, _JSON: _TEXT}


def opened(options: SimpleNamespace, tell: Callable[[str], None]) -> SimpleNamespace:
    """Return the options with the files of bundles in place of bundles; `tell` is told which.

    Raises:
        InputError: a bundle holds no dump, or one that is not whole, or is damaged.
        OSError: it cannot be read.
    """
    given = vars(options)
    if "a" in given:  # two dumps; objects are of both, and of two bundles each has its own
        for place in ("a", "b"):
            bundle = _read(given[place], options)
            if bundle is not None:
                given = {**given, place: bundle.dumps}
                tell(bundle.used(bundle.dumps))
        return options if given == vars(options) else _with(options, given)
    dumps: list[str] = []
    for name in options.dumps:
        bundle = _read(name, options)
        if bundle is None:
            dumps.append(name)
            continue
        dumps += bundle.dumps
        used = [*bundle.dumps]
        for option, found in bundle.others.items():
            if option == "addresses" and given["node_ip"]:  # the user knows better
                continue
            if option in given and not given[option]:
                given = {**given, option: [found] if option == "objects" else found}
                used.append(found)
        tell(bundle.used(used))
    return _with(options, {**given, "dumps": dumps})


def _with(options: SimpleNamespace, given: Mapping[str, object]) -> SimpleNamespace:
    return type(options)(**given)


class _Bundle:
    """Files of one bundle.

    Attributes:
        dumps: the files that hold rules.
        others: by option, the file that the option could name.
    """

    def __init__(self, name: str, files: Mapping[str, bytes]) -> None:
        self._name = name
        manifest = files.get("MANIFEST", b"")
        self._failed = tuple(_failed(manifest))
        for file in self._incomplete(files):
            raise InputError(
                f"{name}: {file} is not whole; collect again with a greater --timeout, or unpack "
                "the bundle and name the files to go by"
            )
        kinds: dict[str, list[Member]] = {}
        node = _node(manifest)
        for file, data in sorted(files.items()):
            if not file.endswith((_PART, ".err")):
                kinds.setdefault(_kind(data), []).append(Member.of(name, file, data, node))
        self.dumps = [*kinds.get("iptables", []), *(kinds.get("nft") or kinds.get("nft-json", []))]
        if not self.dumps:
            raise InputError(f"{name}: no rules in it{self._unknown}; collect as root, on a node")
        self.others = {
            option: kinds[option][0]
            for option in ("objects", "addresses")
            if len(kinds.get(option, [])) == 1
        }

    def _incomplete(self, files: Mapping[str, bytes]) -> Iterator[str]:
        """Give the files of rules that were cut off, or not waited for."""
        cut = {file.removesuffix(_PART) for file in files if file.endswith(_PART)}
        cut |= {file for file, result in self._failed if result != "failed"}
        for file in sorted(cut):
            # Both forms of nft hold the same.
            whole = _FORMS.get(file, "") in files
            if file.startswith(_RULES) and not whole:
                yield file

    def used(self, files: Sequence[str]) -> str:
        """Return what says which files are gone by, and which rules are not known."""
        names = ", ".join(file.removeprefix(f"{self._name}:") for file in files)
        return f"{self._name}: goes by {names}{self._unknown}"

    @property
    def has_unknown(self) -> bool:
        """Tell whether a program that is there gave no rules."""
        return bool(self._failed)

    @property
    def _unknown(self) -> str:
        failed = ", ".join(file for file, _ in self._failed)
        return f"; could not be taken: {failed}" if failed else ""


def _read(name: str, options: SimpleNamespace) -> _Bundle | None:
    files = files_of_bundle(name, options.max_input)
    if files is None:
        return None
    bundle = _Bundle(name, _inside(files))
    if options.strict and bundle.has_unknown:
        raise InputError(f"--strict: {bundle.used(bundle.dumps)}")
    return bundle


def _inside(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of the folder that MANIFEST stands in, or of the outermost."""
    folders = sorted(
        (name.rpartition("/")[0] for name in files),
        key=lambda folder: (f"{folder}/MANIFEST".lstrip("/") not in files, folder.count("/")),
    )
    return {
        name.rpartition("/")[2]: data
        for name, data in files.items()
        if name.rpartition("/")[0] == folders[0]
    }


def _node(manifest: bytes) -> str:
    """Return the node that a bundle was taken from, by its own words; empty: it has none."""
    for line in manifest.decode("utf-8", "replace").split("\n"):
        if line.startswith(_OF_NODE):
            return printable(line.removeprefix(_OF_NODE).partition(",")[0])
    return ""


def _failed(manifest: bytes) -> Iterator[tuple[str, str]]:
    """Give file and result of rules that could not be taken, and not for want of a program."""
    for line in manifest.decode("utf-8", "replace").split("\n"):
        row = line.split("\t")
        if len(row) != _COLUMNS or not row[_NAME].startswith(_RULES):
            continue
        if row[_RESULT] not in {"ok", "not installed"}:
            yield printable(row[_NAME]), row[_RESULT]


def _kind(data: bytes) -> str:
    """Return what a file is, by its beginning; empty: nothing that is asked for."""
    head = data[:_HEAD]
    lines = [line for line in head.split(b"\n") if line.strip() and not line.startswith(b"#")]
    first = lines[0].lstrip() if lines else b""
    if first.startswith(b"*"):
        return "iptables"
    if first.startswith(b"table ") and first.rstrip().endswith(b"{"):
        return "nft"
    # A kernel without rules gives the version of nft alone.
    if first.startswith(b'{"nftables"') and b'"table"' in data:
        return "nft-json"
    if first.startswith(b"{") and b'"apiVersion"' in head and b'"items"' in head:
        return "objects"
    if first.startswith(b"[") and b'"addr_info"' in head:
        return "addresses"
    return ""
