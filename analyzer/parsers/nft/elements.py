"""Elements of sets and maps.

Ten thousand Services give tens of thousands of elements of one shape. They are split at commas and
dots; only those with more than a key and a value are read word by word.

Source: nft(8), "SET ELEMENTS"; src/json.c, ``set_elem_expr_json``; src/expression.c,
``set_elem_expr_print``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from analyzer.model.nft.expressions import Concat, Element, Expression, Unknown
from analyzer.model.value import replace
from analyzer.parsers.nft.constants import from_word
from analyzer.parsers.nft.extension import NotUnderstood, Write
from analyzer.parsers.nft.json_values import (
    JsonReader,
    array,
    integer,
    known_only,
    mapping,
    optional_integer,
    optional_string,
)
from analyzer.parsers.nft.limit import LIMIT
from analyzer.parsers.nft.verdict import VERDICT
from analyzer.parsers.nft.verdict import from_text as verdict_from_text
from analyzer.parsers.nft.words import Words, quoted

_PIECE: Final = re.compile(r'(?:[^",]|"[^"]*")++')
_PROPERTIES: Final = frozenset({"val", "timeout", "expires", "comment", "counter", "limit"})
_PAIR: Final = 2


def from_text(text: str, words: Words) -> tuple[Element, ...]:
    """Return the elements between the braces; `words` are those of the rule or set.

    An element that is not understood has an `Unknown` key.
    """
    pieces = _PIECE.findall(text) if '"' in text else text.split(",")
    return tuple(_element(each, words) for piece in pieces if (each := piece.strip()))


def _element(piece: str, words: Words) -> Element:
    key, colon, data = piece.partition(" : ")
    try:
        found = _plain(key)
        given = (verdict_from_text(data) or _plain(data)) if colon else None
        if found is not None and (given is not None or not colon):
            return Element(key=found, value=given)
        return read(words.inside(f"{{{piece}}}"))
    except NotUnderstood:
        return Element(key=Unknown(piece))


def _plain(text: str) -> Expression | None:
    """Return a constant or a concatenation of constants; None for anything else."""
    if '"' in text:
        return None
    if " " not in text and "\n" not in text and "\t" not in text:
        return from_word(text)
    parts = text.split(" . ")
    if any(" " in part or "\t" in part or "\n" in part for part in parts):
        return None
    return Concat(tuple(map(from_word, parts))) if len(parts) > 1 else None


def read(inner: Words, *, constant: bool = True) -> Element:
    """Read one element; its key is a constant or, unless `constant`, any expression.

    Raises:
        NotUnderstood: it is not an element.
    """
    key = inner.operand() if constant else inner.expression()
    found: dict[str, Any] = {}
    while not inner.done and inner.peek() != ":":
        name = inner.peek()
        if name in found:
            raise NotUnderstood(name)
        if name == "limit":
            found[name] = LIMIT.write(LIMIT.read_text(inner), _no_expression)[len("limit ") :]
            continue
        inner.at += 1
        if name in {"timeout", "expires"}:
            found[name] = inner.seconds()
        elif name == "comment":
            found[name] = inner.string()
        elif name == "counter":
            found[name] = _counts(inner)
        else:
            raise NotUnderstood(name)
    given: Expression | None = None
    if inner.accept(":"):
        given = VERDICT.read_text(inner) if inner.peek() in VERDICT.words else None
        if given is None:
            given = inner.operand() if constant else inner.expression()
    if not inner.done:
        raise NotUnderstood(inner.peek())
    return Element(key=key, value=given, **found)


def _counts(inner: Words) -> tuple[int, int]:
    if not inner.accept("packets"):
        return 0, 0
    packets = inner.number()
    inner.expect("bytes")
    return packets, inner.number()


def _no_expression(_: Expression) -> str:
    raise AssertionError("a limit holds no expression")


def from_json(given: object, reader: JsonReader) -> Element:
    """Return one element; in a map, it is an array of key and value.

    An element that is not understood has an `Unknown` key.
    """
    try:
        return strict_from_json(given, reader)
    except NotUnderstood:
        return Element(key=Unknown(dumped(given)))


def strict_from_json(given: object, reader: JsonReader) -> Element:
    """Return one element.

    Raises:
        NotUnderstood: nft prints no such element.
    """
    key, data = given, None
    if isinstance(given, list) and len(given) == _PAIR:
        key, data = given[0], reader(given[1])
    if isinstance(key, dict) and "elem" in key:
        return _with_properties(mapping(key["elem"]), data, reader)
    return Element(key=reader(key), value=data)


def with_statements(element: Element, given: object, reader: JsonReader) -> Element:
    """Return an element with the counter and limit of these statements.

    Raises:
        NotUnderstood: one of them is another statement.
    """
    for each in array(given):
        match each:
            case {"counter": None}:
                element = replace(element, counter=(0, 0))
            case {"counter": {"packets": packets, "bytes": octets}}:
                element = replace(element, counter=(integer(packets), integer(octets)))
            case {"limit": limit}:
                element = replace(element, limit=_limit(limit, reader))
            case _:
                raise NotUnderstood(each)
    return element


def _limit(given: object, reader: JsonReader) -> str:
    return LIMIT.write(LIMIT.read_json("limit", given, reader), _no_expression)[len("limit ") :]


def _with_properties(given: Any, data: Expression | None, reader: JsonReader) -> Element:
    known_only(given, _PROPERTIES)
    counter = given.get("counter")
    limit = given.get("limit")
    counts = None if counter is None else mapping(counter)
    return Element(
        key=reader(given.get("val")),
        value=data,
        timeout=optional_integer(given.get("timeout")),
        expires=optional_integer(given.get("expires")),
        comment=optional_string(given.get("comment")),
        counter=None
        if counts is None
        else (integer(counts.get("packets")), integer(counts.get("bytes"))),
        limit=None if limit is None else _limit(limit, reader),
    )


def dumped(given: object) -> str:
    """Return input that was not understood as JSON text; only its blanks may differ."""
    import json

    return json.dumps(given)


def write(given: Element, expression: Write) -> str:
    """Return the element as nft prints it."""
    words = [expression(given.key)]
    if given.counter is not None:
        words.append("counter packets {} bytes {}".format(*given.counter))
    if given.limit is not None:
        words.append(f"limit {given.limit}")
    if given.timeout is not None:
        words.append(f"timeout {given.timeout}s")
    if given.expires is not None:
        words.append(f"expires {given.expires}s")
    if given.comment is not None:
        words.append(f"comment {quoted(given.comment)}")
    if given.value is not None:
        words += [":", expression(given.value)]
    return " ".join(words)
