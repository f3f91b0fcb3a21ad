"""``accept``, ``drop``, ``continue``, ``return``, ``jump`` and ``goto``.

Source: nft(8), "VERDICT STATEMENT"; libnftables-json(5), "VERDICT".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.model.nft.expressions import Accept, Continue, Drop, Goto, Jump, Return, Verdict
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string
from analyzer.parsers.nft.words import Words

_PLAIN: Final[Mapping[str, Verdict]] = {
    "accept": Accept(),
    "drop": Drop(),
    "continue": Continue(),
    "return": Return(),
}
_TARGET: Final = frozenset({"target"})


def _read_json(kind: str, body: object, _: JsonReader) -> Verdict:
    plain = _PLAIN.get(kind)
    if plain is not None:
        if body is not None:
            raise NotUnderstood(body)
        return plain
    given = mapping(body)
    known_only(given, _TARGET)
    target = string(given.get("target"))
    return Jump(target) if kind == "jump" else Goto(target)


def from_text(text: str) -> Verdict | None:
    """Return the verdict that `text` consists of; None for other text."""
    kind, _, chain = text.partition(" ")
    if not chain:
        return _PLAIN.get(kind)
    if kind not in {"jump", "goto"} or not chain[0].isalnum() or '"' in chain or " " in chain:
        return None
    return Jump(chain) if kind == "jump" else Goto(chain)


def _read_text(words: Words) -> Verdict:
    kind = words.take()
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain
    chain = words.take()
    if not chain[0].isalnum() and chain[0] != "_":
        raise NotUnderstood(chain)
    return Jump(chain) if kind == "jump" else Goto(chain)


def _write(given: Verdict, _: Write) -> str:
    match given:
        case Jump(chain):
            return f"jump {chain}"
        case Goto(chain):
            return f"goto {chain}"
        case _:
            return type(given).__name__.lower()


VERDICT: Final = Extension(
    keys=(*_PLAIN, "jump", "goto"),
    words=(*_PLAIN, "jump", "goto"),
    types=(Accept, Drop, Continue, Return, Jump, Goto),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
