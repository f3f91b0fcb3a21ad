"""How one expression or statement is read from JSON and from text, and rendered as text."""

from __future__ import annotations

from collections.abc import Callable

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from analyzer.model.nft_expressions import Expression
    from analyzer.parsers.nft.json_values import JsonReader
    from analyzer.parsers.nft.words import Words


class NotUnderstood(ValueError):  # noqa: N818  # no error: it is kept as unknown
    """What stands there is none of the shapes that nft prints; it is kept as unknown."""


#: Writes an expression; given to the writers of what holds expressions.
Write = Callable[["Expression"], str]


@value(kw_only=True)
class Extension:
    """One family of expressions or statements.

    Attributes:
        keys: names of its JSON objects.
        words: words that it begins with in text.
        types: the values that it gives.
        read_json: reads the content of the object of that name.
        read_text: reads it, or returns None when the words there are something else's.
        write: gives its text.
    """

    keys: tuple[str, ...]
    words: tuple[str, ...]
    types: tuple[type, ...]
    read_json: Callable[[str, Any, JsonReader], Any]
    read_text: Callable[[Words], Any]
    write: Callable[[Any, Write], str]
