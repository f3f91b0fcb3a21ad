"""Rows alike up to addresses, ports and names: one of them is parsed, and the others filled in.

Theory of operation
===================

Nearly all rows of a large dump have one of a few shapes: the same words, except for those after
some options (`_OPTIONS`). A shape is the `Rule` of a row in which such words are replaced by others
that are in no dump. Where `parse_rule` puts their values, it puts those of any other row of the
shape. If it puts one nowhere, or if the shape with the values of a parsed row is not that row's
rule, all rows of the shape are parsed. So are rows that single spaces do not split into words: with
a backslash, another blank, or quotes around anything but a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias

from analyzer.errors import ParseError
from analyzer.model.addresses import network_from_text
from analyzer.model.diagnostics import Location
from analyzer.model.iptables.matches import Match
from analyzer.model.iptables.rules import Counters, Rule
from analyzer.model.iptables.targets import Target
from analyzer.model.probability import threshold_from_text
from analyzer.model.value import fields_of, is_value
from analyzer.parsers.xt.rule import parse_rule
from analyzer.parsers.xt.targets.nat_range import nat_range_from_text
from analyzer.parsers.xt.values import PORT_MAX

#: Returns the value of a word; None: it has none.
_ReadWord: TypeAlias = Callable[[str], object]
#: Makes the matches and the target of a rule from the values of a row's words.
_Make: TypeAlias = Callable[[Sequence[object]], tuple[tuple[Match, ...], Target | None]]
#: The value of a word in a shape, and its type: True is not 1.
_Hole: TypeAlias = tuple[type, object]

_COUNTERS: Final = re.compile(r"\[(\d{1,20}):(\d{1,20})\]")
_PORT: Final = re.compile(r"0|[1-9][0-9]{0,4}")
_BARE: Final = re.compile(r"\w[\w-]*")
_APPEND, _COMMENT = "-A", "--comment"
#: In the place of a word that varies, and of a comment in quotes.
_HOLE, _QUOTED = "", '"'
#: Of a comment.
_QUOTES: Final = 2
#: Most words of a row that vary.
_MOST: Final = 99
#: The same networks are in many rows.
_network: Final = lru_cache(1 << 16)(network_from_text)


@cache
def _port(word: str) -> int | None:
    return int(word) if _PORT.fullmatch(word) and int(word) <= PORT_MAX else None


def _threshold(word: str) -> int | None:
    try:
        return threshold_from_text(word)
    except ValueError:
        return None


#: By option: what reads its word, and the word in a shape, with its number.
_OPTIONS: Final[Mapping[str, tuple[_ReadWord, str]]] = {
    "-s": (_network, "192.0.2.{}/32"),
    "-d": (_network, "192.0.2.{}/32"),
    "--dport": (_port, "471{:02}"),
    "--to-destination": (nat_range_from_text, "192.0.2.{}:47200"),
    "--probability": (_threshold, "0.4711{:02}"),
    "--name": (str, "hole-{}"),
    "-j": (str, "hole-{}"),
    _COMMENT: (str, "hole-{}"),
}
#: Those whose word varies if it is the name of a chain.
_NAMES: Final = frozenset({"--name", "-j"})


class RowShapes:
    """Parses rows as `parse_rule` does, in a fraction of the time if many are alike."""

    def __init__(self) -> None:
        self._met: set[tuple[str, ...]] = set()
        self._known: dict[tuple[str, ...], _Shape | None] = {}

    def parse(self, line: str, location: Location, chains: Container[str]) -> Rule:
        """Read ``[n:n] -A CHAIN words``; `chains` are those that the table declares.

        Raises:
            ParseError: a word that iptables-save cannot have printed there.
        """
        split = _split(line, chains)
        if split is None:
            return parse_rule(line, location, chains)
        key, words, counters = split
        shape = self._known.get(key)
        filled = None if shape is None else shape.fill(words, location, line, counters)
        if filled is not None:
            return filled
        rule = parse_rule(line, location, chains)
        if key not in self._known and key in self._met:
            shape = _shape(key)
            filled = None if shape is None else shape.fill(words, location, line, counters)
            if shape is None or filled is not None:  # a row with odd words says nothing of others
                self._known[key] = shape if filled == rule else None
        self._met.add(key)  # a shape takes longer than a row or two
        return rule


def _split(
    line: str, chains: Container[str]
) -> tuple[tuple[str, ...], list[str], Counters | None] | None:
    """Return the words of a row without those that vary, these, and its counters."""
    if "\\" in line or not line.isprintable():
        return None
    before, *quoted = line.split(_QUOTED)
    words = before.split(" ")
    if quoted:
        if len(quoted) != _QUOTES or words[-2:] != [_COMMENT, ""] or quoted[1][:1] != " ":
            return None
        words[-1:] = [_QUOTED, *quoted[1][1:].split(" ")]
    counted = _COUNTERS.fullmatch(words[0]) if line.startswith("[") else None
    counters = None
    if counted is not None:
        counters = int(counted[1]), int(counted[2])
        del words[0]
    if words[:1] != [_APPEND] or "" in words or not words[1:]:
        return None
    key: list[str] = []
    varying: list[str] = []
    option = ""
    for word in words[2:]:
        kept = word
        if option in _OPTIONS:
            if word == _QUOTED:
                varying.append(quoted[0])
            elif (
                word in chains if option in _NAMES else option != _COMMENT or _BARE.fullmatch(word)
            ):
                varying.append(word)
                kept = _HOLE
        key.append(kept)
        option = kept
    return (tuple(key), varying, counters) if len(varying) <= _MOST else None


class _Shape:
    """Makes matches and target of a rule from what `readers` read of the words that vary."""

    def __init__(self, readers: Sequence[_ReadWord], make: _Make) -> None:
        self._readers = readers
        self._make = make

    def fill(
        self, words: Sequence[str], location: Location, line: str, counters: Counters | None
    ) -> Rule | None:
        """Return the rule of a row with these words; None: one of them has no value."""
        values: list[object] = []
        for read, word in zip(self._readers, words, strict=True):
            value = read(word)
            if value is None:
                return None
            values.append(value)
        matches, target = self._make(values)
        return Rule(matches, target, location, line, counters)


def _shape(key: tuple[str, ...]) -> _Shape | None:
    """Return the shape of rows with these words; None: not all that vary are in the rule."""
    readers: list[_ReadWord] = []
    others: list[str] = []
    row = [_APPEND, "chain"]
    for option, word in pairwise(("", *key)):
        if word in {_HOLE, _QUOTED}:
            read, other = _OPTIONS[option]
            readers.append(read)
            others.append(other.format(len(others)))
            row.append(f'"{others[-1]}"' if word == _QUOTED else others[-1])
        else:
            row.append(word)
    try:
        rule = parse_rule(" ".join(row), Location("", 0, ""), frozenset(others))
    except ParseError:
        return None  # the words of its own rows may be right
    values = [read(word) for read, word in zip(readers, others, strict=True)]
    holes = {(type(value), value): f"v[{at}]" for at, value in enumerate(values)}
    constants: list[object] = []
    made = _expression((rule.matches, rule.target), holes, constants)
    if not all(hole in made for hole in holes.values()):
        return None
    # Compiled, since calling a function for each part takes twice as long.
    make: _Make = eval(f"lambda v: {made}", {"c": constants})  # noqa: S307  # nothing of the row's
    return _Shape(readers, make)


def _expression(part: object, holes: Mapping[_Hole, str], constants: list[object]) -> str:
    """Return an expression for part of a rule, with the values ``v`` and the constants ``c``."""
    cls: Any = type(part)
    if (cls, part) in holes:
        return holes[cls, part]
    here = len(constants)
    constants.append(part)
    if isinstance(part, tuple):
        inner = "".join([f"{_expression(each, holes, constants)}, " for each in part])
        return f"({inner})" if "v[" in inner else f"c[{here}]"
    if is_value(part):
        named = {f: _expression(getattr(part, f), holes, constants) for f in fields_of(cls)}
        inner = ", ".join([f"{name}={text}" for name, text in named.items()])
        constants.append(cls)
        return f"c[{len(constants) - 1}]({inner})" if "v[" in inner else f"c[{here}]"
    return f"c[{here}]"
