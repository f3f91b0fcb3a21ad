"""Command lines of whole words, read without argparse: to load it takes as long as to read a dump.

It takes the declarations that argparse takes, and reads what needs none of its finesse: options
spelled out, each value a word of its own. Of everything else, and of every mistake, it says that
it does not read it; argparse then reads the line by the same declarations, or says what is wrong.
What it does read, argparse reads alike.
"""

from __future__ import annotations

from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class PlainWords:
    """What is declared of a verb; `known` is what its options hold besides."""

    def __init__(self, **known: object) -> None:
        self._defaults: dict[str, object] = known
        self._places: list[str] = []
        self._options: dict[str, tuple[str, dict[str, Any]]] = {}
        self._required: set[str] = set()

    def add_argument(self, *names: str, **kinds: Any) -> None:
        """Declare an option or a place, as `argparse.ArgumentParser.add_argument` does."""
        dest = kinds.get("dest") or names[-1].lstrip("-").replace("-", "_")
        if not names[0].startswith("-"):
            self._places.append(dest)
            return
        self._options.update(dict.fromkeys(names, (dest, kinds)))
        self._defaults[dest] = kinds.get("default", False if _is_flag(kinds) else None)
        if kinds.get("required"):
            self._required.add(dest)

    def read(self, words: Sequence[str]) -> SimpleNamespace | None:
        """Return what `words` say; None for what only argparse can read, or nobody."""
        found = dict(self._defaults)
        places, required = [*self._places], {*self._required}
        rest = [*reversed(words)]
        while rest:
            word = rest.pop()
            if word in self._options:
                dest, kinds = self._options[word]
                value = True if _is_flag(kinds) else _value(kinds, rest, found[dest])
                if value is None:
                    return None
                required.discard(dest)
            elif places and _is_value(word):
                dest, value = places.pop(0), word
            else:
                return None
            found[dest] = value
        return None if places or required else SimpleNamespace(**found)


def _is_flag(kinds: dict[str, Any]) -> bool:
    return kinds.get("action") == "store_true"


def _is_value(word: str) -> bool:
    return not word.startswith("-") or word == "-"


def _value(kinds: dict[str, Any], rest: list[str], held: Any) -> object:
    """Take the words of an option's value off the end of `rest`; None: it is not that plain."""
    if kinds.get("type") is not None or not rest or not _is_value(rest[-1]):
        return None
    kind = kinds.get("action", "store"), kinds.get("nargs")
    if kind == ("store", None):
        word = rest.pop()
        return word if word in kinds.get("choices", (word,)) else None
    if kind != ("extend", "+") or "choices" in kinds:
        return None
    values = []
    while rest and _is_value(rest[-1]):
        values.append(rest.pop())
    return [*held, *values]
