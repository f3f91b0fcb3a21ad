"""Which files of a bundle belong to which node, and which of them to read.

Theory of operation: the files of a node are in one place. If a file above or beside them has the
machine's name (``MANIFEST`` of ours, ``hostname`` of sos and of Rancher's collector), everything
below its folder is of that machine; otherwise the files of one folder are of one node. A program's
rules may be there more than once (iptables-save, and iptables -nvL for each table; nft, as text and
as JSON; both backends under one name): each table of each program counts once, in the form with
most information.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from analyzer.errors import InputError
from analyzer.inputs.files import Member
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.text import printable
from analyzer.model.value import replace, value
from analyzer.parsers.bundled import (
    HOSTNAME,
    LISTED,
    MANIFEST,
    METRICS,
    NFT,
    NFT_JSON,
    RULES,
    SAVED,
    last_sync,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.inputs.bundle_files import BundleFile

#: What the files are called in which `collect` puts rules.
_RULES: Final = ("iptables-", "ip6tables-", "nft-")
#: Columns of MANIFEST: a file's name, and its result.
_NAME, _RESULT, _COLUMNS = 0, 5, 7
_OF_NODE: Final = "# node "
_PART: Final = ".part"
#: Length of a dump's beginning in which its header is.
_HEADER: Final = 4096
_TEXT, _JSON = "nft-list-ruleset.txt", "nft-list-ruleset.json"
_FORMS: Final = {_TEXT: _JSON, _JSON: _TEXT}
_AGAIN: Final = "again/"
#: Where the file with the host name is below the folder.
_HOSTNAMES: Final = ("etc/", "systeminfo/", "sos_commands/host/", "")
_COUNTERS: Final = re.compile(rb"^\[\d+:\d+\] |\[\d+:\d+\]$|^#.*\n", re.MULTILINE)
_TABLES: Final = re.compile(rb"^\*(\w+)", re.MULTILINE)


@value(kw_only=True)
class NodeFiles:
    """The files of one node in a bundle.

    Attributes:
        label: the name shown for the node; that of its files, if they do not contain its name.
        node: its own name; empty if it is not known.
        root: the folder that contains its files, with a final slash; empty for all of them.
        rules: the files with the rules to use.
        others: files by kind.
        failed: rules that could not be collected, although the program exists.
    """

    label: str
    node: str
    root: str
    rules: tuple[Member, ...]
    others: Mapping[str, Sequence[Member]]
    failed: tuple[str, ...] = ()


def nodes_of(bundle: str, files: Sequence[BundleFile]) -> list[NodeFiles]:
    """Return the nodes whose rules a bundle has, each with its files.

    Raises:
        InputError: rules of a node are not whole.
    """
    files = sorted(files, key=lambda each: each.path)
    roots = roots_of(files)
    groups: dict[str, list[BundleFile]] = {}
    for each in files:
        if each.kind in RULES and not _is_aside(each.path, roots):
            groups.setdefault(root_of(each.path, roots), []).append(each)
    for root, (_, manifest) in roots.items():
        if manifest is not None:  # even if nothing of it could be taken
            groups.setdefault(root, [])
    found = [_node(bundle, root, files, groups, roots) for root in sorted(groups)]
    labels = Counter(each.label for each in found)
    return [
        each if labels[each.label] == 1 else replace(each, label=printable(root.rstrip("/")))
        for each, root in zip(found, sorted(groups), strict=True)
    ]


def parted(files: NodeFiles) -> list[NodeFiles]:
    """Return the nodes whose dumps are all in one folder, each named after its files.

    A single node has the rules of one backend and IP version once. One with a known name is not
    split.
    """
    from analyzer.inputs.nodes import without_program
    from analyzer.parsers.header import headers

    found = (
        next(headers(file.data[:_HEADER].decode("utf-8", "replace")), None)
        for file in files.rules
        if b"KUBE-SERVICES" in file.data
    )
    heads = Counter(each for each in found if each is not None)  # listings have none
    groups: dict[str, list[Member]] = {}
    for file in files.rules:
        groups.setdefault(without_program(file.rpartition("/")[2].rpartition(":")[2]), []).append(
            file
        )
    if files.node or len(groups) <= 1 or max(heads.values(), default=0) <= 1:
        return [files]
    return [
        replace(files, label=printable(label or files.label), rules=tuple(group), others={})
        for label, group in groups.items()
    ]


def roots_of(files: Sequence[BundleFile]) -> dict[str, tuple[str, bytes | None]]:
    """Return for each folder the machine whose files are below it, and its manifest."""
    found: dict[str, tuple[str, bytes | None]] = {}
    for each in files:
        folder = each.path[: each.path.rfind("/") + 1]
        if each.kind == MANIFEST:
            found[folder] = _named(each.data), each.data
        elif each.kind == HOSTNAME:
            for below in _HOSTNAMES:
                if folder.endswith(below) and f"/{folder}".endswith(f"/{below}"):
                    root = folder[: len(folder) - len(below)]
                    found.setdefault(root, (each.data.decode().strip(), None))
                    break
    return found


def root_of(path: str, roots: Mapping[str, tuple[str, bytes | None]]) -> str:
    """Return the folder of a file's node: the nearest that names it, else its own."""
    folder = own = path[: path.rfind("/") + 1]
    while folder not in roots:
        if not folder:
            return own
        folder = folder[: folder.rstrip("/").rfind("/") + 1]
    return folder


def _is_aside(path: str, roots: Mapping[str, tuple[str, bytes | None]]) -> bool:
    """Return whether a file of `collect` is of its second look, or is not whole."""
    root = root_of(path, roots)
    manifest = roots[root][1] if root in roots else None
    inside = path.removeprefix(root)
    return path.endswith(".err") or (manifest is not None and inside.startswith(_AGAIN))


def _node(
    bundle: str,
    root: str,
    files: Sequence[BundleFile],
    groups: Mapping[str, Sequence[BundleFile]],
    roots: Mapping[str, tuple[str, bytes | None]],
) -> NodeFiles:
    node, manifest = roots.get(root, ("", None))
    failed = tuple(_failed(manifest or b""))
    if manifest is not None:
        for file in _incomplete(root, files, failed):
            raise InputError(
                f"{bundle}: {file} is incomplete; collect again with a greater --timeout, or "
                "unpack the bundle and name the files to use"
            )
    # One node of a bundle is the bundle.
    name = bundle if len(groups) == 1 else f"{bundle.rstrip('/')}/{root.rstrip('/')}".rstrip("/")

    def member(each: BundleFile) -> Member:
        found = Member.of(name, each.path.removeprefix(root), each.data, node)
        found.backend = backends.get(each.path)
        found.synced, found.taken = synced, begun
        return found

    synced = max(
        (
            time
            for each in files
            if each.kind == METRICS and root_of(each.path, roots) == root
            if (time := last_sync(each.data)) is not None
        ),
        default=None,
    )
    begun = _begun(manifest or b"")
    rules, backends = chosen_rules(groups[root])
    others: dict[str, list[Member]] = {}
    for each in files:
        # Rules of the second look are gone by for their counters alone.
        later = each.kind == SAVED and each.path.removeprefix(root).startswith(_AGAIN)
        if (each.kind not in RULES or later) and root_of(each.path, roots) == root:
            others.setdefault(each.kind, []).append(member(each))
    return NodeFiles(
        label=printable(node or root.rstrip("/").rpartition("/")[2] or bundle),
        node=node,
        root=root,
        rules=tuple(map(member, rules)),
        others=others,
        failed=tuple(file for file, _ in failed),
    )


def chosen_rules(files: Sequence[BundleFile]) -> tuple[list[BundleFile], dict[str, str]]:
    """Return the files of one node's rules that are used.

    And by path which backend a listing is of, where that is known.
    """
    saved = _different([each for each in files if each.kind == SAVED])
    nft = [each for each in files if each.kind == NFT]
    nft = nft or [each for each in files if each.kind == NFT_JSON]
    told = {
        (_family(each), table.decode()) for each in saved for table in _TABLES.findall(each.data)
    }
    listed: list[BundleFile] = []
    backends: dict[str, str] = {}
    for each in files:
        if each.kind != LISTED:
            continue
        tables = {(_family(each), table) for table in _tables(each)}
        if tables and not tables <= told:
            told |= tables
            listed.append(each)
            if nft:
                backends[each.path] = "nft" if _is_in(each, nft[0]) else "legacy"
    return [*saved, *listed, *_different(nft)], backends


def _different(files: Sequence[BundleFile]) -> list[BundleFile]:
    """Return files without those that hold the same rules of the same backend as another."""
    from analyzer.parsers.header import headers

    found: dict[tuple[object, bytes], BundleFile] = {}
    for each in files:
        said = next(headers(each.data[:_HEADER].decode("utf-8", "replace")), None)
        found.setdefault((said, _COUNTERS.sub(b"", each.data)), each)
    return [*found.values()]


def _family(file: BundleFile) -> str:
    from analyzer.parsers.header import headers

    text = file.data.decode("utf-8", "replace")
    said = next(headers(text), None) if file.kind == SAVED else None
    if said is not None:
        return said[0]
    return str(_parsed(file).family) if file.kind == LISTED else _by_addresses(text)


def _by_addresses(text: str) -> str:
    from analyzer.parsers.header import family_of

    return family_of(text)


def _tables(file: BundleFile) -> list[str]:
    """Return the tables of a listing; empty if it cannot be read."""
    return [*_parsed(file).tables]


def _parsed(file: BundleFile) -> Ruleset:
    from analyzer.parsers.formats import read_ruleset

    found = read_ruleset(file.data, file.path)
    assert isinstance(found, Ruleset)
    return found


def _is_in(listing: BundleFile, nft: BundleFile) -> bool:
    """Return whether nft has all tables of a listing, which iptables-nft has written then."""
    chains = [chain for table in _parsed(listing).tables.values() for chain in table.chains]
    return all(
        f"chain {chain} {{".encode() in nft.data or f'"{chain}"'.encode() in nft.data
        for chain in chains
    )


def _incomplete(
    root: str, files: Sequence[BundleFile], failed: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """Yield the files of rules that were cut off, or not waited for."""
    own = {each.path.removeprefix(root) for each in files if each.path.startswith(root)}
    cut = {file.removesuffix(_PART) for file in own if file.endswith(_PART)}
    cut |= {file for file, result in failed if result != "failed"}
    for file in sorted(cut):
        # Both forms of nft hold the same.
        if file.startswith(_RULES) and _FORMS.get(file, "") not in own:
            yield file


def _named(manifest: bytes) -> str:
    """Return the node that a bundle was taken from, by its own words; empty: it has none."""
    for line in manifest.decode("utf-8", "replace").split("\n"):
        if line.startswith(_OF_NODE):
            return printable(line.removeprefix(_OF_NODE).partition(",")[0])
    return ""


def _begun(manifest: bytes) -> str:
    """Return when a bundle was begun, in UTC, by its own words; empty: it does not say."""
    found = re.search(
        rb"^# node .*, begun (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)$", manifest, re.MULTILINE
    )
    return "" if found is None else found[1].decode()


def _failed(manifest: bytes) -> Iterator[tuple[str, str]]:
    """Yield file and result of rules that could not be collected although the program exists."""
    for line in manifest.decode("utf-8", "replace").split("\n"):
        row = line.split("\t")
        if len(row) != _COLUMNS or not row[_NAME].startswith(_RULES):
            continue
        if row[_RESULT] not in {"ok", "not installed"}:
            yield printable(row[_NAME]), row[_RESULT]
