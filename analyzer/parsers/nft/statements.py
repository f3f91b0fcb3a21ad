"""Statements of a rule, read from JSON and from text, and rendered as text.

Source: src/parser_bison.y, ``rule`` and ``stmt``; src/parser_json.c, ``json_parse_stmt``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from analyzer.model.nft.expressions import Unknown
from analyzer.model.nft.statements import Statement, Vmap
from analyzer.parsers.nft import STATEMENTS
from analyzer.parsers.nft.elements import dumped
from analyzer.parsers.nft.expressions import json_reader, map_operand, words_of
from analyzer.parsers.nft.expressions import write as write_expression
from analyzer.parsers.nft.extension import Extension, NotUnderstood
from analyzer.parsers.nft.json_values import JsonReader
from analyzer.parsers.nft.mangle import made as set_made
from analyzer.parsers.nft.match import behind, value_behind
from analyzer.parsers.nft.words import Words

_BY_KEY: Final[Mapping[str, Extension]] = {key: e for e in STATEMENTS for key in e.keys}
_BY_TYPE: Final[Mapping[type, Extension]] = {kind: e for e in STATEMENTS for kind in e.types}
_BY_WORD: Final[dict[str, list[Extension]]] = {}
for _each in STATEMENTS:
    for _word in _each.words:
        _BY_WORD.setdefault(_word, []).append(_each)

_COMMENT: Final = re.compile(r'(.*?) ?comment "([^"]*)"\s*', re.DOTALL)
_BLANKS: Final = re.compile(r'"[^"]*"|^ +| {2,}| $')
#: Tables written by iptables-nft.
_IPTABLES: Final = frozenset({"filter", "nat", "mangle", "raw", "security", "broute"})


def from_json(given: object, family: str) -> tuple[Statement, ...]:
    """Return the statements of ``expr``; what is not understood is `Unknown`."""
    if not isinstance(given, list):
        return (Unknown(dumped(given)),)
    reader = json_reader(family)
    return tuple(_from_json(each, reader) for each in given)


def _from_json(given: object, reader: JsonReader) -> Statement:
    try:
        if isinstance(given, str):
            # What nft cannot express in JSON it prints as text.
            words = words_of(given, reader.family)
            found = read(words)
            return found if words.done else Unknown(dumped(given))
        if isinstance(given, dict) and len(given) == 1:
            ((key, body),) = given.items()
            if key in _BY_KEY:
                made: Statement = _BY_KEY[key].read_json(key, body, reader)
                return made
    except NotUnderstood:
        pass
    return Unknown(dumped(given))


def from_text(text: str, family: str) -> tuple[tuple[Statement, ...], str | None]:
    """Return the statements and the comment of a rule, `Unknown` from what is not understood on."""
    comment = None
    found: list[Statement] = []
    if 'comment "' in text:
        behind_all = _COMMENT.fullmatch(text)
        if behind_all is not None and behind_all[1].count('"') % 2 == 0:
            text, comment = behind_all.groups()
    try:
        words = words_of(text, family)
    except NotUnderstood:
        return (Unknown(text.strip()),), comment
    while not words.done:
        start = words.at
        try:
            found.append(read(words))
        except NotUnderstood:
            words.at = start
            found.append(Unknown(words.rest()))
            break
    return tuple(found), comment


def read(words: Words) -> Statement:
    """Read the next statement.

    Raises:
        NotUnderstood: nft prints no such statement.
    """
    for extension in _BY_WORD.get(words.peek(), ()):
        found: Statement | None = extension.read_text(words)
        if found is not None:
            return found
    left = words.expression()
    if words.accept("vmap"):
        return Vmap(left, map_operand(words.operand()))
    if words.accept("set"):
        return set_made(left, value_behind(words))
    return behind(left, words)


def is_of_iptables(family: str, table: str) -> bool:
    """Return whether a table has a name that iptables-nft uses."""
    return table in _IPTABLES and family in {"ip", "ip6", "arp", "bridge"}


def translated(text: str) -> str:
    """Insert marks where nft printed only the following blank.

    An xtables extension whose translation is empty leaves a blank at the beginning of the rule or
    between two statements; a target leaves one at the end. Rules written by iptables-nft look like
    that: a DNAT that this nft cannot translate is a blank at the end of its rule.

    Source: src/xt.c, ``xt_stmt_xlate``; fixture 1.36.2-iptables-nft/two-node.
    """
    return _BLANKS.sub(_marks, text)


def _marks(found: re.Match[str]) -> str:
    blanks = found[0]
    if blanks[0] == '"':
        return blanks
    if found.end() == len(found.string):
        return " \0match" * (len(blanks) - 1) + " \0target"
    count = len(blanks) if found.start() == 0 else len(blanks) - 1
    return " \0match" * count + " "


def write(given: Statement) -> str:
    """Return the statement as text that nft reads.

    Raises:
        ValueError: a string in it contains a quote.
    """
    if isinstance(given, Unknown):
        return given.text
    return _BY_TYPE[type(given)].write(given, write_expression)
