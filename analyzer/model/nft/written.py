"""Elements of a set as nft lists them, of which a lookup parses those that it finds.

A map of ten thousand Services is looked up for a few. Its keys are columns of numbers and words,
from which an index is made; they are split all at once, if all are written plainly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from analyzer.model.addresses import are_ipv4, ipv4_number
from analyzer.model.nft.expressions import Element
from analyzer.model.nft.lazy import Lazy

#: Longer words are no ports, and may be longer than Python reads as numbers.
_PORT_DIGITS: Final = 5
#: The values of one part of all keys, in the order of the elements.
ElementColumn: TypeAlias = Sequence[int] | Sequence[str]


class WrittenElements(Lazy[Element]):
    """Elements between two braces, whose keys have parts of these `types`.

    `make` parses some of them.
    """

    __slots__ = ("_columns", "_is_split", "_pieces", "_types")

    def __init__(
        self, source: str, make: Callable[[str], tuple[Element, ...]], types: Sequence[str]
    ) -> None:
        super().__init__(source, make)
        self._types = types
        self._pieces: list[str] = []
        self._columns: tuple[ElementColumn, ...] | None = None
        self._is_split = False

    def __bool__(self) -> bool:
        """Return whether there are any, without parsing one."""
        return bool(self.source.strip(" \t\n,"))

    def columns(self) -> tuple[ElementColumn, ...] | None:
        """Return the parts of the keys: addresses and ports as numbers, protocols as words.

        None: not all keys are single values of such types, or one is not written as nft does.
        """
        if not self._is_split:
            self._columns, self._is_split = self._split(), True
        return self._columns

    @property
    def has_values(self) -> bool:
        """Whether they are those of a map; only for elements that have columns."""
        return " : " in self.source

    def numbers(self) -> Sequence[int] | None:
        """Return the keys of a set, if each is one number; None: they are not, or it is a map."""
        columns = None if ":" in self.source else self.columns()
        if columns is None or len(columns) != 1:
            return None
        return [each for each in columns[0] if not isinstance(each, str)] or None

    def one(self, at: int) -> Element:
        """Return one element, without parsing the others if `columns` did not."""
        if self._made is None and self._pieces:
            return self._make(self._pieces[at])[0]
        return self._all()[at]

    def _split(self) -> tuple[ElementColumn, ...] | None:
        text, number = self.source, len(self._types)
        if '"' in text or not all(each in _READERS for each in self._types):
            return None
        pieces = text.split(",")
        keys = [piece.partition(" : ")[0].strip() for piece in pieces]
        # Blanks within a key are those around its dots: what else has any is not split evenly.
        words = " . ".join(keys).split(" . ")
        if len(words) != number * len(keys) or any(key.count(" . ") != number - 1 for key in keys):
            return None
        found = [_READERS[kind](words[part::number]) for part, kind in enumerate(self._types)]
        columns = [each for each in found if each is not None]
        if len(columns) < number:
            return None
        self._pieces = pieces
        return tuple(columns)


def _addresses(words: Sequence[str]) -> Sequence[int] | None:
    return list(map(ipv4_number, words)) if are_ipv4(words) else None


def _protocols(words: Sequence[str]) -> Sequence[str] | None:
    return words if set(words) <= _PROTOCOLS else None


def _ports(words: Sequence[str]) -> Sequence[int] | None:
    plain = all(
        len(each) <= _PORT_DIGITS and each.isascii() and each.isdecimal() and each == str(int(each))
        for each in set(words)
    )
    return list(map(int, words)) if plain else None


_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})
_READERS: Final[dict[str, Callable[[Sequence[str]], ElementColumn | None]]] = {
    "ipv4_addr": _addresses,
    "inet_proto": _protocols,
    "inet_service": _ports,
}
