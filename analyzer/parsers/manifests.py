"""Manifests, each with the line on which its document begins.

Source: YAML 1.2.2, 9.2: ``---`` in the first column always begins a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from analyzer.errors import InputError, ParseError
from analyzer.model.diagnostics import Location
from analyzer.model.value import value
from analyzer.parsers.api_objects import Object, at, listed, text
from analyzer.parsers.objects import yaml_documents
from analyzer.parsers.objects.forms import documents
from analyzer.parsers.objects.text import object_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, NoReturn

_DOCUMENT: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_EMPTY: Final = re.compile(r"(?:\s|#[^\n]*|---|\.\.\.|%[^\n]*)*")
_TEMPLATE: Final = re.compile(r"\{\{")
_STDIN: Final = "<stdin>"


@value
class Manifest:
    """An object of a manifest.

    Attributes:
        place: where its document begins.
        line: the text of that line.
    """

    item: Object
    place: Location
    line: str

    @property
    def kind(self) -> str:
        """Its kind; empty if it has none."""
        return text(self.item.get("kind")) or ""

    @property
    def group(self) -> str:
        """The group of its API; empty for the core group, whose ``apiVersion`` is ``v1``."""
        return (text(self.item.get("apiVersion")) or "").rpartition("/")[0]

    @property
    def name(self) -> str:
        """Its name; with ``generateName``, that prefix and a star; empty if it has neither."""
        told = text(at(self.item, "metadata", "name"))
        begins = text(at(self.item, "metadata", "generateName"))
        return told or (f"{begins}*" if begins else "")

    @property
    def is_named(self) -> bool:
        """Whether it has a name of its own; with ``generateName`` there may be any number."""
        return text(at(self.item, "metadata", "name")) is not None

    @property
    def namespace(self) -> str:
        """Its namespace, ``default`` if it names none."""
        return text(at(self.item, "metadata", "namespace")) or "default"

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def title(self) -> str:
        """Kind, namespace and name, for messages."""
        return f"{self.kind} {self.namespace}/{self.name}"

    def fail(self, message: str) -> NoReturn:
        """Refuse it.

        Raises:
            ParseError: always, with the place of its document.
        """
        raise ParseError(
            f"{self.title}: {message}",
            location=self.place,
            line=self.line,
            span=(0, max(1, len(self.line))),
        )


def manifests(files: Iterable[tuple[str, bytes]]) -> list[Manifest]:
    """Return the objects of all `files`, given as name and content; for lists, their items.

    Raises:
        InputError: a file contains no objects, or cannot be read.
        ParseError: a part of a file is malformed.
    """
    return [each for file, data in files for each in _of_file(file, data)]


def _of_file(file: str, data: bytes) -> Iterator[Manifest]:
    shown = _STDIN if file == "-" else file
    try:
        whole = object_text(data)
    except InputError as error:
        raise InputError(f"{shown}: {_why(error)}") from None
    lines = whole.split("\n")
    is_flow = whole.lstrip()[:1] in {"{", "["}
    # JSON between --- is YAML.
    if not _DOCUMENT.search(whole) and (is_flow or not yaml_documents.sniff(whole)):
        for document in documents(whole, shown):
            yield from _objects(document, Location(shown, 1), lines)
        return
    for first, part in _parts(whole):
        # Lines before it are blank, so that messages have the line of the file.
        try:
            for document in yaml_documents.parse("\n" * (first - 1) + part, shown):
                begins = _first_line(part, first)
                yield from _objects(document, Location(shown, begins), lines)
        except ParseError as error:
            if not _TEMPLATE.search(error.line):
                raise
            raise ParseError(
                "an unrendered template; try helm template CHART | kubeodds gate -",
                location=error.location,
                line=error.line,
                span=error.span,
            ) from None


def _why(error: InputError) -> str:
    """Return what is wrong with a file, worded for manifests."""
    said = str(error)
    return "it is empty" if said.startswith("kubectl printed nothing") else said


def _parts(whole: str) -> Iterator[tuple[int, str]]:
    """Yield each document's text with the line on which it begins, from 1, but no empty ones."""
    ends = [each.start() for each in _DOCUMENT.finditer(whole)]
    first, before = 1, 0
    for end in [*ends, len(whole)]:
        part = whole[before:end]
        if _EMPTY.fullmatch(part) is None:
            yield first, part
        first, before = first + part.count("\n"), end


def _first_line(part: str, first: int) -> int:
    """Return the line of the first field, after comments and document separators."""
    found = _EMPTY.match(part)
    assert found is not None  # it matches nothing, too
    return first + part.count("\n", 0, found.end())


def _objects(document: object, place: Location, lines: Sequence[str]) -> Iterator[Manifest]:
    line = lines[place.line - 1].rstrip("\r") if place.line else ""
    if not isinstance(document, dict):
        raise ParseError(
            "expected an object with apiVersion and kind", location=place, line=line, span=(0, 1)
        )
    try:
        yield from (Manifest(item, place, line) for item in listed(document, place.file))
    except InputError:
        raise ParseError(
            "expected an object with apiVersion and kind", location=place, line=line, span=(0, 1)
        ) from None
