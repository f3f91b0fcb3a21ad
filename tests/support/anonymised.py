"""Answers of before under the names of after, so that both can be compared; and what to search."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final

from analyzer import cli
from analyzer.kubeproxy.names import chain_hash
from analyzer.model.addresses import address_and_port_from_text
from tests.support.commands import Command, Done
from tests.support.json_reader import read

#: What quotes rules, counts lines, is a sentence, or stands in the name beside it.
LEFT_OUT: Final = frozenset(
    """
    diagnostics rule chain table files places message says why because assumed rules line
    text assumptions file schema reasons prediction distribution distributions
    probabilities port_name service namespace freshness
    """.split()  # noqa: SIM905  # as long as it is
)
#: What these say is no name.
WORDS: Final = frozenset(
    ("state", "source", "kind", "protocol", "family", "refusal", "mode", "program")
)
#: Which of several that are equally bad: the first by name, which may be another afterwards.
ONE_OF_SEVERAL: Final = frozenset(
    ("worst", "at", "silenced_route", "weakest_route", "smallest_sets")
)
#: The same, of what stands below these.
BELOW: Final = {
    "worst_loss": ("frontend", "source", "network"),
    "loss": ("frontend", "source", "network"),
    "worst_single": ("node",),
    "most_silenced": ("nodes",),
}
_KINDS: Final = ("ServicePort", "comment", "zone", "node", "device", "pod", "service", "namespace")


class Translation:
    """The private map, applied to the documents of answers."""

    def __init__(self, private: str) -> None:
        self._by_kind: dict[str, dict[str, str]] = {}
        for row in json.loads(private)["names"]:
            self._by_kind.setdefault(row["kind"], {})[row["old"]] = row["new"]

    def of(self, kind: str, old: str) -> str:
        return self._by_kind.get(kind, {}).get(old, old)

    def text(self, old: str) -> str:
        """Return a name, address or place of an answer as it is called afterwards."""
        for kind in _KINDS:
            if old in self._by_kind.get(kind, {}):
                return self.of(kind, old)
        for convert, kind in ((ip_address, "address"), (ip_network, "network")):
            try:
                spelt = str(convert(old))
            except ValueError:
                continue
            host = spelt.removesuffix("/32").removesuffix("/128")
            if kind == "network" and host != spelt:  # the map has it as an address
                return f"{self.of('address', host)}{spelt[len(host) :]}"
            return self.of(kind, spelt)
        place = address_and_port_from_text(old)
        if place is not None:
            address = self.of("address", str(place[0]))
            return f"[{address}]:{place[1]}" if ":" in address else f"{address}:{place[1]}"
        name, blank, more = old.partition(" ")
        if blank:
            return f"{self.text(name)} {more}"
        namespace, slash, pod = old.partition("/")
        return f"{self.of('namespace', namespace)}/{self.of('pod', pod)}" if slash else old

    def document(self, given: Any) -> Any:
        """Return a document with its names translated, and its lists in no order."""
        return _plain(given, self.text)


def plain(given: Any) -> Any:
    """Return a document without what quotes rules, its lists in no order."""
    return _plain(given, str)


def _plain(given: Any, text: Callable[[str], str]) -> Any:
    match given:
        case str():
            return text(given)
        case Fraction():
            return f"{given.numerator:x}/{given.denominator:x}"  # of thousands of digits
        case tuple():
            return [_plain(each, text) for each in given]
        case list():
            return sorted((_plain(each, text) for each in given), key=json.dumps)
        case dict():
            return {
                key: each
                if key in WORDS and isinstance(each, str)
                else _plain(_but(each, BELOW.get(key, ())), text)
                for key, each in sorted(given.items())
                if key not in LEFT_OUT and key not in ONE_OF_SEVERAL
            }
        case _:
            return given


def _but(given: Any, names: Iterable[str]) -> Any:
    if not isinstance(given, dict):
        return given
    return {key: each for key, each in given.items() if key not in names}


def codes(document: Mapping[str, Any]) -> list[str]:
    """Return the codes of diagnostics: one may tell of several texts that have one name now."""
    return sorted({each["code"] for each in document.get("diagnostics", ())})


@dataclass(frozen=True)
class Shown:
    """Files and what they became: dumps, objects, and the private map."""

    dumps: tuple[str, ...]
    objects: str | None
    names: Translation
    before: tuple[str, ...]
    objects_before: str | None

    def words(self, *, after: bool) -> list[str]:
        dumps, objects = (self.dumps, self.objects) if after else (self.before, self.objects_before)
        return [*dumps, *(() if objects is None else ("--objects", objects))]


def shown(command: Command, dumps: Sequence[str], objects: str | None, *more: str) -> Shown:
    """Anonymise files together, several as the bundle ``b.tgz``."""
    command.file("salt", "s" * 16)
    (command.folder / "map").unlink(missing_ok=True)
    given = [*dumps, *([] if objects is None else [objects])]
    words = ("--salt-file", "salt", "--map", "map", "--output", "b.tgz", *more)
    done = command("anonymise", *given, *words)
    assert done.status == 0, done.err
    if len(given) == 1:
        (command.folder / "b.tgz").rename(command.folder / "shown.txt")
        names = Translation((command.folder / "map").read_text())
        return Shown(("shown.txt",), None, names, tuple(dumps), None)
    members = unpacked(command.folder / "b.tgz")
    found = [
        command.file(f"{number}-{name.rpartition('/')[2]}", data)
        for number, (name, data) in enumerate(members.items())
        if name != "objects.json"
    ]
    made = None if objects is None else command.file("shown.json", members["objects.json"])
    names = Translation((command.folder / "map").read_text())
    return Shown(tuple(found), made, names, tuple(dumps), objects)


class InFolder(Command):
    """The command line in a folder, for properties, which cannot have a test's own one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str) -> Done:
        out, err = io.StringIO(), io.StringIO()
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = cli.main(list(arguments))
        finally:
            os.chdir(before)
        return Done(status, out.getvalue(), err.getvalue())


def unpacked(path: Path) -> dict[str, bytes]:
    """Return the files of an archive, by the paths in it."""
    import tarfile

    with tarfile.open(path) as archive:
        return {
            each.name: file.read()
            for each in archive
            if each.isfile() and (file := archive.extractfile(each)) is not None
        }


def answers_are_the_same(
    command: Command, given: Shown, *words: str, names: Sequence[str] = ()
) -> None:
    """Ask a verb before and after; `names` are words behind options that are names."""
    before = command(words[0], *given.words(after=False), *words[1:], *names, "-o", "json")
    translated = [given.names.text(each) if each[:2] != "--" else each for each in names]
    after = command(words[0], *given.words(after=True), *words[1:], *translated, "-o", "json")
    assert before.status == after.status, (before.err, after.err)
    if before.status == 2:
        return
    old, new = read(before.out), read(after.out)
    assert codes(old) == codes(new)
    assert given.names.document(old) == plain(new)


#: What every cluster has, and what `--every-name` leaves of it: a word of comments and labels.
WELL_KNOWN: Final = frozenset(
    ("default", "kube-system", "kubernetes", "kube-dns", "https", "dns", "dns-tcp", "metrics")
)
ALWAYS_THERE: Final = frozenset(("kubernetes",))
_PLACE: Final = re.compile(r"(?<![\w.:/])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|[0-9a-f]{0,4}:[0-9a-f:]+")
_CHAIN: Final = re.compile(
    r"\bKUBE-(?:SVC|SVL|SEP|FW|XLB|EXT)-([A-Z2-7]{16})\b|-([A-Z2-7]{8})-[a-z0-9-]+/"
)
_COMMENT: Final = re.compile(r'--comment (?:"([^"]*)"|(\S+))|[A-Z2-7]{8}-([a-z0-9-]+/[a-z0-9/-]+)')
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
_KEPT: Final = ("0.", "127.", "255.", "ffff:")
#: Words of kube-proxy's between slashes.
_NO_NAMES: Final = frozenset(("tcp", "udp", "sctp"))


def originals(texts: Iterable[str], objects: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return all names, addresses and hashes of chains that files hold."""
    found: set[str] = set()
    for text in texts:
        found |= {each for pair in _CHAIN.findall(text) for each in pair if each}
        found |= {
            each
            for each in _PLACE.findall(text)
            if not each.startswith(_KEPT) and _is_address(each)
        }
        for said in _COMMENT.findall(text):
            for word in " ".join(said).split():
                if "/" in word:
                    found |= {each for each in _NAME.findall(word) if re.search("[a-z]", each)}
    for item in objects:
        found |= set(_names(item))
    return found - _NO_NAMES


def of_every_cluster() -> set[str]:
    """Return the names that stay unless they are to go, with the hashes of their chains."""
    found = set(WELL_KNOWN)
    for name in ("default/kubernetes:https", *(f"kube-system/kube-dns:{p}" for p in _DNS)):
        path = name.replace(":", "/{}/")
        for protocol in ("tcp", "udp"):
            found.add(chain_hash(name, protocol))
            found.add(chain_hash(path.format(protocol))[:8])
    return found


_DNS: Final = ("dns", "dns-tcp", "metrics")


def _is_address(text: str) -> bool:
    try:
        return not (found := ip_address(text)).is_loopback and not found.is_unspecified
    except ValueError:
        return False


def _names(item: Mapping[str, Any]) -> Iterator[str]:
    metadata = item["metadata"]
    yield from filter(None, (metadata.get("name"), metadata.get("namespace"), metadata.get("uid")))
    for each in (*item.get("ports", ()), *item.get("spec", {}).get("ports", ())):
        yield from filter(None, [each.get("name")])


def held_in(text: str, names: Iterable[str]) -> set[str]:
    """Return the names that a text has as words of their own."""
    return words_of(text) & set(names)


def words_of(text: str) -> set[str]:
    """Return all that may be a name: between blanks, slashes, colons, dots, quotes."""
    found: set[str] = set()
    # The last are hashes in names of chains.
    for letters in (r"[\w.:-]+", r"[\w.-]+", r"[\w-]+", r"[A-Z2-7]{8,16}"):
        found.update(re.findall(letters, text))
    return found
