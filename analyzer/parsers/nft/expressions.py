"""Expressions, read from JSON and from text, and rendered as text.

In text ``&`` binds tighter than ``^``, that tighter than ``|``, and all of them tighter than the
dot of a concatenation.

Source: src/parser_bison.y, ``concat_expr`` and below; src/parser_json.c, ``json_parse_expr``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analyzer.model.addresses import Address, address_to_text
from analyzer.model.nft.expressions import (
    AnonymousSet,
    Binary,
    Concat,
    Constant,
    Element,
    Expression,
    Flags,
    MapLookup,
    Prefix,
    Range,
    SetRef,
    Unknown,
    Wildcard,
)
from analyzer.parsers.nft import EXPRESSIONS, constants, elements, payload
from analyzer.parsers.nft.extension import Extension, NotUnderstood
from analyzer.parsers.nft.json_values import JsonReader, array, integer, known_only, mapping
from analyzer.parsers.nft.words import Words, quoted

_PAIR: Final = 2
#: Most operators in a row: each nests one level deeper, and Python's stack is limited.
_LONGEST: Final = 40
#: Precedence of the operators; the words are from iptables-nft's translations.
_PRECEDENCE: Final[Mapping[str, int]] = {
    "|": 1,
    "or": 1,
    "^": 2,
    "xor": 2,
    "&": 3,
    "and": 3,
    "<<": 4,
    ">>": 4,
}
_OPERATORS: Final[Mapping[str, str]] = {"or": "|", "xor": "^", "and": "&"}

_BY_KEY: Final[Mapping[str, Extension]] = {key: e for e in EXPRESSIONS for key in e.keys}
_BY_TYPE: Final[Mapping[type, Extension]] = {kind: e for e in EXPRESSIONS for kind in e.types}
_BY_WORD: Final[dict[str, list[Extension]]] = {}
for _each in EXPRESSIONS:
    for _word in _each.words:
        _BY_WORD.setdefault(_word, []).append(_each)


def json_reader(family: str) -> JsonReader:
    """Return a reader of expressions in tables of this family."""
    return JsonReader(_from_json, family)


def words_of(text: str, family: str) -> Words:
    """Return the words of a rule or set in a table of this family.

    Raises:
        NotUnderstood: a quote is not closed.
    """
    return Words(text, family, _from_words)


def _from_json(given: Any, read: JsonReader) -> Expression:
    if isinstance(given, str):
        return constants.from_string(given)
    if isinstance(given, int):  # and bool
        return given
    if isinstance(given, list):
        return Flags(tuple(_constant(read(each)) for each in given))
    if not isinstance(given, dict) or len(given) != 1:
        raise NotUnderstood(given)
    ((key, body),) = given.items()
    extension = _BY_KEY.get(key)
    if extension is not None:
        found: Expression = extension.read_json(key, body, read)
        return found
    match key:
        case "concat":
            return Concat(tuple(map(read, array(body))))
        case "prefix":
            known_only(mapping(body), frozenset({"addr", "len"}))
            return _prefix(read(body.get("addr")), integer(body.get("len")))
        case "range":
            return _range(*_pair(body, read))
        case "set":
            return AnonymousSet(
                tuple(
                    elements.from_json(each, read)
                    for each in (body if isinstance(body, list) else [body])
                )
            )
        case "map":
            known_only(mapping(body), frozenset({"key", "data"}))
            return MapLookup(read(body.get("key")), map_operand(read(body.get("data"))))
        case "|" | "&" | "^" | "<<" | ">>":
            parts = [read(each) for each in array(body)]
            if not _PAIR <= len(parts) <= _LONGEST:
                raise NotUnderstood(given)
            folded, *rest = parts
            for each in rest:
                folded = Binary(key, folded, each)
            return folded
        case _:
            raise NotUnderstood(given)


def _pair(body: object, read: JsonReader) -> tuple[Expression, Expression]:
    parts = array(body)
    if len(parts) != _PAIR:
        raise NotUnderstood(body)
    return read(parts[0]), read(parts[1])


def _range(first: Expression, last: Expression) -> Range:
    return Range(_constant(first), _constant(last))


def _constant(given: Expression) -> int | str | bool | Address:
    if isinstance(given, int | str | Address):
        return given
    raise NotUnderstood(given)


def _prefix(base: Expression, length: int) -> Prefix:
    if not isinstance(base, Address) or length > base.max_prefixlen:
        raise NotUnderstood(base)
    return Prefix(base, length)


def map_operand(given: Expression) -> SetRef | AnonymousSet:
    """Return the operand of ``map`` or ``vmap``.

    Raises:
        NotUnderstood: it is neither a set nor a map.
    """
    if isinstance(given, SetRef | AnonymousSet):
        return given
    raise NotUnderstood(given)


def _from_words(words: Words, constant: bool) -> Expression:
    found = _binary(words, constant, 0)
    if words.peek() == ".":
        parts = [found]
        while words.accept("."):
            parts.append(_binary(words, constant, 0))
        found = Concat(tuple(parts))
    for _ in range(_LONGEST):
        if constant or not words.accept("map"):
            break
        found = MapLookup(found, map_operand(_primary(words, constant=True)))
    return found


def _binary(words: Words, constant: bool, least: int) -> Expression:
    left = _primary(words, constant)
    folds = 0
    while (bound := _PRECEDENCE.get(words.peek(), -1)) >= least:
        operator = words.take()
        right = _binary(words, constant, bound + 1)
        left = Binary(_OPERATORS.get(operator, operator), left, right)
        folds += 1
        if folds > _LONGEST:
            raise NotUnderstood("more operators than nft prints")
    return left


def _primary(words: Words, constant: bool) -> Expression:
    word = words.peek()
    if not constant:
        for extension in _BY_WORD.get(word, ()):
            found: Expression | None = extension.read_text(words)
            if found is not None:
                return found
    words.take()
    match word[0]:
        case '"':
            if words.peek() == "-" and words.peek(1)[:1] == '"':
                words.at += 1
                return Range(word[1:-1], words.string())
            return word[1:-1]
        case "{" if word[1:]:
            return AnonymousSet(elements.from_text(word[1:-1], words))
        case "(":
            inner = words.operand() if constant else words.expression()
            words.expect(")")
            return inner
        case "@" if "," in word:
            return payload.raw(word)
        case _:
            return constants.from_word(word)


def write(given: Expression) -> str:
    """Return the expression as nft prints it.

    Raises:
        ValueError: a string in it contains a quote.
    """
    match given:
        case int() | str():
            return constants.write(given)
        case _ if isinstance(given, Address):
            return address_to_text(given)
        case Prefix(base, length):
            return f"{address_to_text(base)}/{length}"
        case Range(first, last):
            return f"{_end(first)}-{_end(last)}"
        case Wildcard():
            return "*"
        case SetRef(name):
            return f"@{name}"
        case Flags(names):
            return ",".join(map(constants.write, names))
        case Concat(parts):
            return " . ".join(map(write, parts))
        case AnonymousSet(held):
            return write_group(held)
        case MapLookup(key, data):
            return f"{write(key)} map {write(data)}"
        case Binary(operator, left, right):
            bound = _PRECEDENCE[operator]
            return f"{_bound(left, bound)} {operator} {_bound(right, bound + 1)}"
        case Unknown(text):
            return text
        case _:
            return _BY_TYPE[type(given)].write(given, write)


def _end(given: Constant) -> str:
    # Without quotes the dash would belong to the word: `echo-request`.
    return quoted(given) if isinstance(given, str) else constants.write(given)


def write_group(held: tuple[Element, ...]) -> str:
    """Return elements in braces."""
    return f"{{ {', '.join(elements.write(each, write) for each in held)} }}"


def _bound(given: Expression, least: int) -> str:
    text = write(given)
    loose = isinstance(given, Binary) and _PRECEDENCE[given.operator] < least
    return f"({text})" if loose else text
