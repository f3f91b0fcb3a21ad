"""A table's sets, maps, named objects and flowtables, from text.

Each block is given as statements: its lines, or the parts between semicolons.

Source: nft(8), "SETS", "MAPS", "STATEFUL OBJECTS", "FLOWTABLES"; src/rule.c,
``set_print_declaration``, ``obj_print_data``, ``flowtable_print_declaration``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from analyzer.model.nft import names as nft_names
from analyzer.model.nft.expressions import Constant, Element, Unknown
from analyzer.model.nft.ruleset import Flowtable, NamedObject, Set
from analyzer.model.nft.statements import Limit, Quota, Statement
from analyzer.model.nft.written import WrittenElements
from analyzer.parsers.nft import elements, set_types
from analyzer.parsers.nft.expressions import words_of
from analyzer.parsers.nft.extension import NotUnderstood
from analyzer.parsers.nft.limit import read_rate
from analyzer.parsers.nft.quota import read_amount
from analyzer.parsers.nft.statements import read as read_statement
from analyzer.parsers.nft.words import Words

_PRIORITY: Final = re.compile(r"(?:([a-z]+)\s*)?(?:([-+])?\s*(\d{1,10}))?")
_UNITS: Final[Mapping[str, int]] = {"bytes": 1, "kbytes": 1024, "mbytes": 1024 * 1024}
#: Objects whose properties are understood; those of others are kept as text.
_UNDERSTOOD: Final = frozenset({"counter", "quota", "limit", "ct helper"})


def priority(text: str, family: str) -> int | None:
    """Return the number of ``dstnat - 10``, ``-110`` or ``filter``; None for other text."""
    found = _PRIORITY.fullmatch(text.strip())
    if found is None or not text.strip():
        return None
    name, sign, digits = found.groups()
    base = nft_names.priority_number(name, family) if name else 0
    if base is None or (name and digits and not sign):
        return None
    return base + int(f"{sign or ''}{digits or 0}")


def unquoted(text: str) -> str:
    """Return the text without the quotes around it."""
    return text.strip().strip('"')


def read_set(name: str, family: str, lines: Sequence[str]) -> Set:
    """Read a set or map from its lines.

    Raises:
        NotUnderstood: nft prints no such line.
    """
    found: dict[str, Any] = {}
    statements: list[Statement] = []
    for line in lines:
        head, _, rest = line.partition(" ")
        rest = rest.strip()
        if head in found:
            raise NotUnderstood(line)  # which of the two counts
        match head:
            case "type" | "typeof":
                found |= _types(rest, family, by_expression=head == "typeof")
            case "flags":
                found["flags"] = tuple(each.strip() for each in rest.split(","))
            case "timeout" | "gc-interval":
                found[head.replace("-", "_")] = words_of(rest, family).seconds()
            case "size":
                found[head] = words_of(rest, family).number()
            case "policy":
                found[head] = rest
            case "auto-merge":
                found["auto_merge"] = True
            case "comment":
                found[head] = unquoted(rest)
            case "elements":
                found[head] = rest
            case _:
                words = words_of(line, family)
                statements.append(read_statement(words))
                if not words.done:
                    raise NotUnderstood(line)
    if "key" not in found:
        raise NotUnderstood("a set without a type")
    if "elements" in found:
        found["elements"] = _elements(found["elements"], family, found["key"])
    return Set(name=name, statements=tuple(statements), **found)


def _types(text: str, family: str, *, by_expression: bool) -> dict[str, Any]:
    key, colon, data = text.partition(" : ")
    if not by_expression:
        return {"key": set_types.types(key), "value": set_types.types(data) if colon else None}
    given = set_types.typeof(key, family), set_types.typeof(data, family) if colon else ()
    return {
        "key": tuple(map(set_types.type_of, given[0])),
        "value": tuple(map(set_types.type_of, given[1])) if colon else None,
        "typeof": given,
    }


def _elements(text: str, family: str, types: Sequence[str]) -> Sequence[Element]:
    body = text.removeprefix("=").strip()
    if body[:1] != "{" or body[-1:] != "}":
        raise NotUnderstood(text)
    words = words_of("", family)

    def make(inner: str) -> tuple[Element, ...]:
        if inner.count('"') % 2:
            return (Element(key=Unknown(inner)),)
        return elements.from_text(inner, words)

    return WrittenElements(body[1:-1], make, types)


def read_flowtable(name: str, family: str, lines: Sequence[str]) -> Flowtable:
    """Read a flowtable from its lines."""
    hook: str | None = None
    number: int | None = None
    devices: tuple[str, ...] = ()
    for line in lines:
        found = re.fullmatch(r"hook (\S+) priority (.+)", line)
        if found is not None:
            hook, number = found[1], priority(found[2], family)
        elif line.startswith("devices"):
            devices = tuple(unquoted(each) for each in line.partition("{")[2][:-1].split(","))
    return Flowtable(name=name, hook=hook, priority=number, devices=devices)


def read_object(kind: str, name: str, family: str, lines: Sequence[str]) -> NamedObject:
    """Read a named object from its lines.

    Raises:
        NotUnderstood: nft prints no such line.
    """
    comment = None
    properties: list[tuple[str, Constant]] = []
    for line in lines:
        if line.startswith("comment "):
            comment = unquoted(line[len("comment ") :])
        elif kind not in _UNDERSTOOD:
            properties.append(("text", line))
        else:
            properties += _properties(kind, words_of(line, family))
    return NamedObject(kind=kind, name=name, properties=tuple(properties), comment=comment)


def _properties(kind: str, words: Words) -> list[tuple[str, Constant]]:
    if kind == "counter":
        words.expect("packets")
        packets = words.number()
        words.expect("bytes")
        return [("packets", packets), ("bytes", words.number())]
    if kind == "quota":
        return quota_properties(read_amount(words))
    if kind == "limit":
        words.expect("rate")
        return limit_properties(read_rate(words))
    found: list[tuple[str, Constant]] = []
    while not words.done:
        found.append((words.string(), words.string()))
    return found


def quota_properties(given: Quota) -> list[tuple[str, Constant]]:
    """Return the properties of a quota, in bytes."""
    return [
        ("bytes", given.amount * _UNITS[given.unit]),
        ("used", given.used * _UNITS[given.used_unit]),
        ("over", given.over),
    ]


def limit_properties(given: Limit) -> list[tuple[str, Constant]]:
    """Return the properties of a limit."""
    names = ("rate", "per", "burst", "over", "rate_unit", "burst_unit")
    return [(name, getattr(given, name)) for name in names]
