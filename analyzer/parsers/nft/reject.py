"""``reject``, ``reject with icmpx admin-prohibited``, ``reject with tcp reset``.

A bare ``reject`` means port-unreachable of the table's own IP version.

Source: nft(8), "REJECT STATEMENT"; src/statement.c, ``reject_stmt_print``; src/evaluate.c,
``stmt_evaluate_reject_default``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.model.nft.statements import Reject
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string
from analyzer.parsers.nft.words import Words, number

_OF_FAMILY: Final[Mapping[str, str]] = {"ip": "icmp", "ip6": "icmpv6"}
_TYPES: Final = frozenset({"icmp", "icmpv6", "icmpx"})
_RESET: Final = "tcp reset"


def _usual(family: str) -> Reject:
    return Reject(_OF_FAMILY.get(family, "icmpx"), "port-unreachable")


def _read_json(_: str, body: object, read: JsonReader) -> Reject:
    if body is None:
        return _usual(read.family)
    given = mapping(body)
    known_only(given, frozenset({"type", "expr"}))
    kind, code = string(given.get("type")), given.get("expr")
    if kind == _RESET and code is None:
        return Reject(kind)
    if kind not in _TYPES or type(code) not in {int, str}:
        raise NotUnderstood(given)
    return Reject(kind, code)


def _read_text(words: Words) -> Reject:
    words.expect("reject")
    if not words.accept("with"):
        return _usual(words.family)
    kind = words.take()
    if kind == "tcp":
        words.expect("reset")
        return Reject(_RESET)
    if kind not in _TYPES:
        raise NotUnderstood(kind)
    words.accept("type")
    code = words.string()
    plain = number(code)
    return Reject(kind, code if plain is None else plain)


def _write(given: Reject, _: Write) -> str:
    # In full, because the meaning of a bare `reject` depends on the table.
    return f"reject with {given.type}{'' if given.code is None else f' type {given.code}'}"


REJECT: Final = Extension(
    keys=("reject",),
    words=("reject",),
    types=(Reject,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
