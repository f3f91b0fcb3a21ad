"""The files that are anonymised together: each recognised by content and given a new path.

Theory of operation: first names are collected from every file, so that each chain's hash can be
explained by any of them; then each file is rewritten. Paths contain names too (of nodes, of files):
a file of `collect` keeps its own, any other is named after its kind, and a folder after the node
whose files it contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from analyzer.anonymise import iptables, nft, node_files, objects
from analyzer.anonymise.naming import Naming
from analyzer.errors import AnalyzerError, InputError
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.value import value
from analyzer.parsers import bundled
from analyzer.parsers.api_objects import decode
from analyzer.parsers.formats import read_ruleset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Files of `collect`, whose names reveal nothing.
_COLLECTED: Final = re.compile(
    r"(?:again/)?(?:ip6?tables-(?:legacy|nft)-save\.txt|nft-list-ruleset\.(?:txt|json)"
    r"|conntrack(?:-ipv[46])?\.txt|addresses\.json|routes6?\.json|neighbours\.json"
    r"|ipset-save\.txt|kube-proxy-metrics\.txt|MANIFEST)(?:\.part)?"
)
#: What other files are called.
_CALLED: Final[Mapping[str, str]] = {
    bundled.SAVED: "iptables-save.txt",
    bundled.LISTED: "iptables-list.txt",
    bundled.NFT: "nft-list-ruleset.txt",
    bundled.NFT_JSON: "nft-list-ruleset.json",
    bundled.ADDRESSES: "addresses.json",
    bundled.ROUTES: "routes.json",
    bundled.NEIGHBOURS: "neighbours.json",
    bundled.CONNTRACK: "conntrack.txt",
    bundled.IPSETS: "ipset-save.txt",
    bundled.METRICS: "kube-proxy-metrics.txt",
}
_HEAD: Final = re.compile(
    r"# kubeodds collect (\d{1,2}(?:\.\d{1,3}){0,2}|unknown), format (\d{1,3})\n"
    r"# node ([^\n]*), begun (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\n"
)
_RESULTS: Final = frozenset(
    (
        *("ok", "failed", "timed out", "too large", "not installed", "not there"),
        *("left out: no time left", "left out: no room left", "left out: no kubeconfig"),
        "left out: the API does not answer",
    )
)
_COLUMNS: Final = 7
_NUMBER: Final = re.compile(r"-|\d{1,12}(?:\.\d{1,6})?")


@value
class File:
    """A file of the input: its path, what it is (`parsers.bundled`), and what it holds."""

    path: str
    kind: str
    data: bytes


class Anonymiser:
    """Rewrites files, all with the same `naming`.

    Attributes:
        told: what was left out, a sentence for each kind of thing.
    """

    def __init__(self, naming: Naming, files: Sequence[File], most: int) -> None:
        self._naming = naming
        self._most = most
        self._rules: dict[str, Any] = {}
        self._items: list[Any] = []
        self._objects: list[File] = []
        for file in files:
            self._learn(file)
        # The Services of all files explain the endpoints in a node's rules.
        objects.learn(naming, self._items)
        for found in self._rules.values():
            if isinstance(found, NftRuleset):
                nft.learn(naming, found)
        # Names of all files first: they explain the chains of Services, and those the endpoints'.
        for take in (iptables.learn, iptables.learn_endpoints):
            for found in self._rules.values():
                if not isinstance(found, NftRuleset):
                    take(naming, found[1])

    def _learn(self, file: File) -> None:
        if file.kind in bundled.RULES:
            found = read_ruleset(file.data, file.path, most=self._most)
            if isinstance(found, NftRuleset):
                self._rules[file.path] = found
                return
            text = _text(file.data)
            if found.input_format != "iptables-save":
                text = iptables.text_of_listing(found)
            lines = iptables.lines_of(text)
            ends = text.endswith("\n")
            sort = ends and iptables.is_untouched(found, lines)
            self._rules[file.path] = (found, lines, ends, sort)
        elif file.kind == bundled.OBJECTS:
            self._items += decode([(file.path, file.data)])
            self._objects.append(file)

    def objects(self) -> str:
        """Return the objects of all files, as one List; empty if there are none."""
        return objects.renamed(self._naming, self._items) if self._objects else ""

    def text(self, file: File) -> str:
        """Return the new content of a file, of any kind but objects.

        Raises:
            AnalyzerError: it is not what its beginning promised.
        """
        naming = self._naming
        try:
            match file.kind:
                case bundled.ADDRESSES:
                    return node_files.addresses(naming, file.data)
                case bundled.ROUTES:
                    return node_files.routes(naming, file.data)
                case bundled.NEIGHBOURS:
                    return node_files.neighbours(naming, file.data)
                case bundled.CONNTRACK:
                    return node_files.flows(naming, file.data)
                case bundled.IPSETS:
                    return node_files.ipsets(naming, file.data, file.path)
                case bundled.METRICS:
                    return node_files.metrics(naming, file.data)
                case bundled.MANIFEST:
                    return _manifest(naming, file.data)
                case bundled.HOSTNAME:
                    return naming.names.name("node", _text(file.data).strip()) + "\n"
                case bundled.PART:
                    return ""
                case _:
                    return self._rules_text(file)
        except InputError as error:
            raise InputError(f"{file.path}: {error}") from None

    def _rules_text(self, file: File) -> str:
        naming = self._naming
        found = self._rules[file.path]
        if isinstance(found, NftRuleset):
            return nft.renamed(naming, found)
        _, lines, ends, sort = found
        return iptables.renamed(naming, lines, ends=ends, sort=sort)


def kind_of(name: str, data: bytes) -> str:
    """Return the kind of a file that an option names.

    Raises:
        InputError: it is of no known kind.
    """
    from analyzer.parsers.archive import HEAD, ArchivedFile
    from analyzer.parsers.formats import FORMATS
    from analyzer.parsers.unpacking import Budget

    left = [data]

    if not data:
        raise InputError(f"{name}: the file is empty")

    def read(number: int) -> bytes:
        found, left[0] = left[0][:number], left[0][number:]
        return found

    entry = ArchivedFile(name, len(data), read, Budget(len(data) + HEAD))
    found = bundled.kind_of(entry, lambda: data)
    if found and found not in {bundled.PART, bundled.WITHOUT_DEVICES}:
        return found
    text = _text(data)
    told = next((each for each, form in FORMATS.items() if form.sniff(text)), None)
    if told is not None:
        return told
    try:
        decode([(name, data)])
    except AnalyzerError as error:
        why = str(error).partition("\n")[0].removeprefix(f"{name}:").strip()
        raise InputError(
            f"{name}: neither rules nor API objects nor anything else recognised: {why}"
        ) from None
    return bundled.OBJECTS


def collected_path(inside: str) -> str | None:
    """Return the path of a file of `collect` below its folder; None if it is not one."""
    return inside if _COLLECTED.fullmatch(inside) is not None else None


def called(kind: str) -> str:
    """Return the new file name for a file of a kind."""
    return _CALLED[kind]


def _text(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def _manifest(naming: Naming, data: bytes) -> str:
    """Return the MANIFEST of `collect`: its head, and the rows of files that are carried along."""
    text = data.decode("utf-8", "replace")
    head = _HEAD.match(text)
    if head is None:
        return "# kubeodds collect unknown, format 1\n"
    version, form, node, begun = head.groups()
    lines = [
        f"# kubeodds collect {version}, format {form}",
        f"# node {naming.names.name('node', node)}, begun {begun}",
        "# file\tstatus\tbegun (s)\ttook (s)\tbytes\tresult\tcommand",
        *_rows(text),
    ]
    return "\n".join(lines) + "\n"


def _rows(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        row = line.split("\t")
        if len(row) == _COLUMNS and _COLLECTED.fullmatch(row[0]):
            numbers = [each if _NUMBER.fullmatch(each) else "-" for each in row[1:5]]
            result = row[5] if row[5] in _RESULTS else "failed"
            yield "\t".join([row[0], *numbers, result, "-"])
