"""``log prefix "x" level debug flags all``.

Source: nft(8), "LOG STATEMENT"; src/statement.c, ``log_stmt_print``; src/json.c,
``log_stmt_json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from analyzer.model.nft.statements import Log
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import (
    JsonReader,
    known_only,
    mapping,
    optional_integer,
    optional_string,
    strings,
)
from analyzer.parsers.nft.words import Words, quoted

_NAMES: Final = frozenset({"prefix", "group", "snaplen", "queue-threshold", "level", "flags"})
_NUMBERS: Final = ("group", "snaplen", "queue-threshold")
_HEADERS: Final = frozenset({"tcp", "ip"})


def _read_json(_: str, body: object, __: JsonReader) -> Log:
    given = {} if body is None else mapping(body)
    known_only(given, _NAMES)
    return Log(
        prefix=optional_string(given.get("prefix")),
        group=optional_integer(given.get("group")),
        snaplen=optional_integer(given.get("snaplen")),
        queue_threshold=optional_integer(given.get("queue-threshold")),
        level=optional_string(given.get("level")),
        flags=strings(given.get("flags")),
    )


def _read_text(words: Words) -> Log:
    words.expect("log")
    found: dict[str, Any] = {}
    flags: list[str] = []
    while words.peek() in _NAMES:
        name = words.take()
        if name == "flags":
            flags += _flags(words)
        elif name in _NUMBERS:
            found[name.replace("-", "_")] = words.number()
        else:
            found[name] = words.string()
    return Log(**found, flags=tuple(flags))


def _flags(words: Words) -> Iterator[str]:
    kind = words.take()
    if kind in _HEADERS:
        yield from (f"{kind} {flag}" for flag in words.flags())
    elif kind in {"skuid", "ether", "all"}:
        yield kind
    else:
        raise NotUnderstood(kind)


def _write(given: Log, _: Write) -> str:
    text = ["log"]
    if given.prefix is not None:
        text.append(f"prefix {quoted(given.prefix)}")
    for name in _NUMBERS:
        number = getattr(given, name.replace("-", "_"))
        if number is not None:
            text.append(f"{name} {number}")
    if given.level is not None:
        text.append(f"level {given.level}")
    for kind, flags in groupby(given.flags, lambda flag: flag.split()[0]):
        if kind in _HEADERS:
            text.append(f"flags {kind} {','.join(flag.split()[1] for flag in flags)}")
        else:
            text += [f"flags {flag}" for flag in flags]
    return " ".join(text)


LOG: Final = Extension(
    keys=("log",),
    words=("log",),
    types=(Log,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
