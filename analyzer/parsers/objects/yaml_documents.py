"""API objects as YAML: ``kubectl get -o yaml``, manifests, folders of must-gather.

The library, loaded for this form only, gives events; what they spell is put together here. So
depth is bounded, nothing but maps, lists and plain values is ever made, and text stays text (a
time, a version ``1.10``). An alias is refused: kubectl writes none, and a few lines of them can
stand for any number of objects.

Source: YAML 1.2.2, 10.3 (core schema); go-yaml v2, resolve.go, for ``yes`` and ``no``.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NoReturn

from analyzer.errors import InputError, ParseError
from analyzer.model.diagnostics import Location

_BEGINS: Final = re.compile(r"^[\"']?(?:apiVersion|kind|items)[\"']?[ \t]*:(?:\s|$)", re.MULTILINE)
#: More than any API object has, fewer than would cost much.
_DEEPEST: Final = 200
#: Of a number, in digits: more than of any that the API has.
_LONGEST: Final = 1_000
_NUMBER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}


def sniff(text: str) -> bool:
    """Tell whether some line begins as a field of API objects does."""
    return _BEGINS.search(text) is not None


def parse(text: str, file: str) -> Iterator[object]:
    """Give the documents; empty ones, as between two ``---``, are left out.

    Raises:
        InputError: the library is missing, the text has odd characters, a number that is too long,
            or is nested too deeply.
        ParseError: a part is no YAML, or is not taken: an alias, a key that is no text.
    """
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        raise InputError(
            f"{file}: YAML, which needs the package pyyaml: pip install 'kubeodds[yaml]'; "
            "or take it with `kubectl get ... -o json`"
        ) from None
    # Bytes that are no UTF-8 stand in no name, and the library takes no surrogates.
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


class _Documents:
    """Puts values together; those that are open stand in a list, not on the stack of calls."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._open: list[dict[str, object] | list[object]] = []
        #: Of each open map the key whose value comes next; None: a key comes next.
        self._keys: list[str | None] = []

    def of(self, events: Iterable[Any]) -> Iterator[object]:
        """Give the value of each document."""
        for event in events:
            match type(event).__name__:
                case "MappingStartEvent":
                    self._begin({}, event)
                case "SequenceStartEvent":
                    self._begin([], event)
                case "ScalarEvent" if self._open:
                    self._add(event)
                case "ScalarEvent":
                    yield self._scalar(event)
                case "AliasEvent":
                    self._fail("an alias; kubectl writes none, write what it stands for", event)
                case "MappingEndEvent" | "SequenceEndEvent":
                    self._keys.pop()
                    done = self._open.pop()
                    if not self._open:
                        yield done
                case _:  # where documents and the stream begin and end
                    pass

    def _begin(self, made: dict[str, object] | list[object], event: Any) -> None:
        if self._open:
            self._put(made, event)
        if len(self._open) == _DEEPEST:
            raise InputError(f"{self._file}: nested too deeply to be API objects")
        self._open.append(made)
        self._keys.append(None)

    def _add(self, event: Any) -> None:
        if isinstance(self._open[-1], dict) and self._keys[-1] is None:
            # << takes in another map: read as a key it would hide what that says.
            if event.value == "<<" and event.implicit[0]:
                self._fail("a merge key; kubectl writes none, write what it stands for", event)
            self._keys[-1] = event.value
        else:
            self._put(self._scalar(event), event)

    def _put(self, made: object, event: Any) -> None:
        into, key = self._open[-1], self._keys[-1]
        if isinstance(into, list):
            into.append(made)
        elif key is None:
            self._fail("expected a key that is text", event)
        elif key in into:
            self._fail(f"the key {key!r} for the second time", event)
        else:
            into[key] = made
            self._keys[-1] = None

    def _scalar(self, event: Any) -> object:
        text: str = event.value
        if not event.implicit[0]:  # between quotes, or of a kind that is told
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
