"""``update @affinity-x { ip saddr timeout 3h }``: sets that packets are added to.

Source: nft(8), "SET STATEMENT" and "MAP STATEMENT"; src/json.c, ``set_stmt_json``,
``map_stmt_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Element
from analyzer.model.nft.statements import SetUpdate
from analyzer.model.value import replace
from analyzer.parsers.nft import elements
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string
from analyzer.parsers.nft.words import Words

_OPERATIONS: Final = ("add", "update", "delete")


def _made(operation: str, name: str, element: Element) -> SetUpdate:
    if operation not in _OPERATIONS or name[:1] != "@" or not name[1:]:
        raise NotUnderstood(name)
    return SetUpdate(operation=operation, set=name[1:], element=element)


def _read_json(kind: str, body: object, read: JsonReader) -> SetUpdate:
    given = mapping(body)
    known_only(given, frozenset({"op", "elem", "data", "stmt", kind}))
    element = elements.strict_from_json(given.get("elem"), read)
    if "stmt" in given:
        element = elements.with_statements(element, given["stmt"], read)
    if kind == "map":
        element = replace(element, value=read(given.get("data")))
    return _made(string(given.get("op")), string(given.get(kind)), element)


def _read_text(words: Words) -> SetUpdate | None:
    if words.peek(1)[:1] != "@":
        return None
    operation, name, group = words.take(), words.take(), words.take()
    if group[0] != "{" or not group[1:]:
        raise NotUnderstood(group)
    inner = words.inside(group)
    return _made(operation, name, elements.read(inner, constant=False))


def _write(given: SetUpdate, write: Write) -> str:
    return f"{given.operation} @{given.set} {{ {elements.write(given.element, write)} }}"


SET_UPDATE: Final = Extension(
    keys=("set", "map"),
    words=_OPERATIONS,
    types=(SetUpdate,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
