"""The type of a reader of expressions or statements, from JSON and text, and its writer."""

from __future__ import annotations

from collections.abc import Callable

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from analyzer.model.nft.expressions import Expression
    from analyzer.parsers.nft.json_values import JsonReader
    from analyzer.parsers.nft.words import Words


class NotUnderstood(ValueError):  # noqa: N818  # no error: it is kept as unknown
    """Input in none of the forms that nft prints; it is kept as unknown."""


#: Writes an expression; passed to the writers of everything that contains expressions.
Write = Callable[["Expression"], str]


@value(kw_only=True)
class Extension:
    """One family of expressions or statements.

    Attributes:
        keys: names of its JSON objects.
        words: words that it begins with in text.
        types: the types of its values.
        read_json: reads the content of the JSON object of that name.
        read_text: reads the text, or returns None if the words belong to something else.
        write: returns its text.
    """

    keys: tuple[str, ...]
    words: tuple[str, ...]
    types: tuple[type, ...]
    read_json: Callable[[str, Any, JsonReader], Any]
    read_text: Callable[[Words], Any]
    write: Callable[[Any, Write], str]
