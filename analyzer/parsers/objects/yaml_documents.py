"""API objects as YAML: ``kubectl get -o yaml``, manifests, folders of must-gather.

The library, loaded for this form only, yields events, from which the values are built here. So
depth is bounded, only maps, lists and plain values are ever created, and text stays text (a
time, a version ``1.10``). An alias is a copy of its anchor; since a few lines of them can expand to
any number of values, all copies in a file together are bounded.

Source: YAML 1.2.2, 7.1 (aliases), 10.3 (core schema); go-yaml v2, resolve.go, for ``yes`` and
``no``, decode.go, ``merge``: a map's own keys take precedence over merged ones, and of several
merged maps the first does.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NoReturn

from analyzer.errors import InputError, ParseError
from analyzer.model.diagnostics import Location

_BEGINS: Final = re.compile(r"^[\"']?(?:apiVersion|kind|items)[\"']?[ \t]*:(?:\s|$)", re.MULTILINE)
#: Deeper than any API object, and cheap.
_DEEPEST: Final = 200
#: Digits of a number: more than any in the API has.
_LONGEST: Final = 1_000
#: Values that the aliases of one file may expand to, in all.
_MOST_COPIED: Final = 100_000
_MERGE: Final = "<<"
_NUMBER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}


def sniff(text: str) -> bool:
    """Return whether some line begins like a field of API objects."""
    return _BEGINS.search(text) is not None


def parse(text: str, file: str) -> Iterator[object]:
    """Yield the documents; empty ones, as between two ``---``, are left out.

    Raises:
        InputError: the library is missing, or the text has odd characters, a number that is too
            long, or is nested too deeply.
        ParseError: a part is not YAML, or is not accepted: a key that is not text, an alias
            without an anchor or within its own anchor, too many copies.
    """
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        raise InputError(
            f"{file}: YAML, which needs the package pyyaml: pip install '.[yaml]' in a clone of "
            "kubeodds; or take it with `kubectl get ... -o json`"
        ) from None
    # Names are UTF-8, and the library accepts no surrogates.
    plain = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for value in _Documents(plain, file).of(yaml.parse(plain, Loader=loader)):
            if value is not None:
                yield value
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or getattr(error, "reason", None) or "odd characters"
        if mark is None:
            raise InputError(f"{file}: not YAML ({why})") from None
        raise _error(f"not YAML ({why})", plain, file, mark) from None


class _Open:
    """A map or a list that is not complete yet.

    Attributes:
        key: in a map, the key whose value comes next; None if a key comes next.
        merged: what is merged into a map, and where.
    """

    def __init__(self, made: dict[str, object] | list[object], event: Any) -> None:
        self.made = made
        self.event = event
        self.key: str | None = None
        self.is_merge = False
        self.merged: list[tuple[object, Any]] = []


class _Anchored:
    """A value with an anchor; it may be null."""

    def __init__(self, given: object) -> None:
        self.value = given


class _Documents:
    """Builds values; open ones are kept in a list, not on the call stack."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._open: list[_Open] = []
        #: Values by their anchor; None for one that is still open.
        self._anchors: dict[str, _Anchored | None] = {}
        self._copied = 0

    def of(self, events: Iterable[Any]) -> Iterator[object]:
        """Yield the value of each document."""
        for event in events:
            match type(event).__name__:
                case "DocumentStartEvent":
                    self._anchors = {}
                case "MappingStartEvent":
                    self._begin({}, event)
                case "SequenceStartEvent":
                    self._begin([], event)
                case "ScalarEvent" if self._open:
                    self._add(event)
                case "ScalarEvent":
                    yield self._scalar(event)
                case "AliasEvent":
                    self._add_alias(event)
                case "MappingEndEvent" | "SequenceEndEvent":
                    done = self._open.pop()
                    self._end(done)
                    if not self._open:
                        yield done.made
                case _:  # where documents and the stream begin and end
                    pass

    def _begin(self, made: dict[str, object] | list[object], event: Any) -> None:
        if self._open:
            self._put(made, event)
        if len(self._open) == _DEEPEST:
            raise self._too_deep()
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Open(made, event))

    def _end(self, done: _Open) -> None:
        made = done.made
        if isinstance(made, dict):
            for merged in self._maps(done):
                for key, each in merged.items():
                    if key not in made:
                        made[key] = self._copy(each, done.event, len(self._open) + 1)
        if done.event.anchor is not None:
            self._anchors[done.event.anchor] = _Anchored(made)

    def _add(self, event: Any) -> None:
        into = self._open[-1]
        if isinstance(into.made, dict) and into.key is None:
            into.key = self._key(event.value, event)
            into.is_merge = event.value == _MERGE and event.implicit[0]
            made: object = event.value
        else:
            made = self._scalar(event)
            self._put(made, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(made)

    def _add_alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            self._fail(f"an alias without an anchor &{event.anchor} before it", event)
        found = self._anchors[event.anchor]
        if found is None:
            self._fail("an alias inside its own anchor", event)
        made = self._copy(found.value, event, len(self._open))
        into = self._open[-1]
        if isinstance(into.made, dict) and into.key is None:
            into.key = self._key(made, event)
        else:
            self._put(made, event)

    def _copy(self, given: object, event: Any, depth: int) -> object:
        """Return an independent copy of a value."""
        self._copied += 1
        if self._copied > _MOST_COPIED:
            self._fail(f"aliases expand to more than {_MOST_COPIED:,} values", event)
        if depth > _DEEPEST:
            raise self._too_deep()
        if isinstance(given, dict):
            return {key: self._copy(each, event, depth + 1) for key, each in given.items()}
        if isinstance(given, list):
            return [self._copy(each, event, depth + 1) for each in given]
        return given

    def _key(self, given: object, event: Any) -> str:
        if not isinstance(given, str):
            self._fail("expected a key that is text", event)
        return given

    def _put(self, made: object, event: Any) -> None:
        into = self._open[-1]
        key = into.key
        if isinstance(into.made, list):
            into.made.append(made)
        elif key is None:
            self._fail("expected a key that is text", event)
        elif into.is_merge:
            into.merged.append((made, event))
            into.key, into.is_merge = None, False
        elif key in into.made:
            self._fail(f"the key {key!r} a second time", event)
        else:
            into.made[key] = made
            into.key = None

    def _maps(self, into: _Open) -> Iterator[dict[str, object]]:
        """Yield the maps that are merged into a map, now that all of them are complete."""
        for given, event in into.merged:
            for each in given if isinstance(given, list) else [given]:
                if not isinstance(each, dict):
                    self._fail("expected a map, or a list of maps, to merge", event)
                yield each

    def _too_deep(self) -> InputError:
        return InputError(f"{self._file}: nested too deeply to be API objects")

    def _scalar(self, event: Any) -> object:
        text: str = event.value
        if not event.implicit[0]:  # quoted, or with an explicit tag
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.fullmatch(text) is None:
            return text
        if len(text) > _LONGEST:
            raise InputError(f"{self._file}: a number in it is too long")
        return int(text)

    def _fail(self, message: str, event: Any) -> NoReturn:
        raise _error(message, self._text, self._file, event.start_mark)


def _error(message: str, text: str, file: str, mark: Any) -> ParseError:
    lines = text.split("\n")
    line = lines[mark.line].rstrip("\r") if mark.line < len(lines) else ""
    return ParseError(
        message,
        location=Location(file, mark.line + 1),
        line=line,
        span=(mark.column, mark.column + 1),
    )
