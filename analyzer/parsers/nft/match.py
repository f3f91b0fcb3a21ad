"""``left operator right``: the rule continues if the comparison is true.

Text omits ``==``. It also omits ``in``, which is meant if the left side is a bit field.

Source: nft(8), "EXPRESSIONS"; src/expression.c, ``relational_expr_print``; src/json.c,
``relational_expr_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.addresses import Address
from analyzer.model.nft.expressions import (
    AnonymousSet,
    Binary,
    Ct,
    Expression,
    Flags,
    Meta,
    Payload,
    Range,
    Rt,
    SetRef,
    Wildcard,
)
from analyzer.model.nft.statements import Match
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string
from analyzer.parsers.nft.words import Words, number, seconds

OPERATORS: Final = frozenset({"==", "!=", "<", ">", "<=", ">=", "!"})
_BITS: Final = frozenset({"state", "status", "label"})
_CLASSES: Final = frozenset({"rtclassid", "classid"})


def _read_json(_: str, body: object, read: JsonReader) -> Match:
    given = mapping(body)
    known_only(given, frozenset({"op", "left", "right"}))
    operator = string(given.get("op"))
    if operator not in OPERATORS and operator != "in":
        raise NotUnderstood(operator)
    left, right = read(given.get("left")), read(given.get("right"))
    if isinstance(right, str) and isinstance(left, Meta | Rt) and left.key in _CLASSES:
        # A class without a name is printed as a string of digits.
        plain = number(right)
        right = right if plain is None else plain
    return made(operator, left, right)


def made(operator: str, left: Expression, right: Expression) -> Match:
    """Return the match.

    Raises:
        NotUnderstood: the left side is a constant, or nft prints no such right side.
    """
    if isinstance(left, int | str | Address | AnonymousSet | SetRef | Range | Wildcard | Flags):
        raise NotUnderstood(left)
    return Match(operator, left, right)


def is_bits(left: Expression) -> bool:
    """Return whether the left side is a bit field, for which no operator means ``in``."""
    match left:
        case Ct(key):
            return key in _BITS
        case Payload("tcp", "flags"):
            return True
        case _:
            return False


def behind(left: Expression, words: Words) -> Match:
    """Read what follows the left side.

    Raises:
        NotUnderstood: it is not a match.
    """
    operator = words.take() if words.peek() in OPERATORS else ""
    right = _right(left, words)
    if words.accept("/"):  # tcp flags syn / syn,ack
        return made(operator or "==", Binary("&", left, _right(left, words)), right)
    if not operator:
        plain = not isinstance(right, AnonymousSet | SetRef)
        operator = "in" if plain and is_bits(left) else "=="
    return made(operator, left, right)


def _right(left: Expression, words: Words) -> Expression:
    if isinstance(left, Ct) and left.key == "expiration":
        found = seconds(words.peek())
        if found is not None:
            words.at += 1
            return found
    return _flags(words.operand(), words)


def _flags(first: Expression, words: Words) -> Expression:
    if words.peek() != ",":
        return first
    names = [first]
    while words.accept(","):
        names.append(words.operand())
    constants = [name for name in names if isinstance(name, int | str | Address)]
    if len(constants) < len(names):
        raise NotUnderstood(names)
    return Flags(tuple(constants))


def value_behind(words: Words) -> Expression:
    """Read the value after ``set``: ``meta mark | 0x1``, ``new,destroy``."""
    return _flags(words.expression(), words)


def _read_text(_: Words) -> None:
    """Return None: the reader of the left side reads it."""


def _write(given: Match, write: Write) -> str:
    left, right = given.left, write(given.right)
    shown = write(left)
    match given:
        case Match("in"):
            return f"{shown} {right}"
        case Match(
            "==" | "!=" as operator, Binary("&", Payload() | Ct() as field, Flags() as mask)
        ):
            sign = "" if operator == "==" else "!= "
            return f"{write(field)} {sign}{right} / {write(mask)}"
        case Match("==") if _needs_no_sign(given):
            return f"{shown} {right}"
        case _:
            return f"{shown} {given.operator} {right}"


def _needs_no_sign(given: Match) -> bool:
    """Return whether nft would read ``left right`` without an operator correctly."""
    if isinstance(given.left, Binary):
        return False
    group = isinstance(given.right, AnonymousSet | SetRef)
    return group or not is_bits(given.left)


MATCH: Final = Extension(
    keys=("match",),
    words=(),
    types=(Match,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
