"""Values in nft's JSON, type-checked.

Source: libnftables-json(5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from analyzer.parsers.nft.extension import NotUnderstood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.model.nft.expressions import Expression

#: Deeper than nft nests, and well within Python's stack.
_DEEPEST: Final = 40


class JsonReader:
    """Reads expressions; call it with the JSON of one.

    Attributes:
        family: of the table.
    """

    __slots__ = ("_depth", "_read", "family")

    def __init__(self, read: Callable[[Any, JsonReader], Expression], family: str) -> None:
        self._read = read
        self._depth = 0
        self.family = family

    def __call__(self, given: object) -> Expression:
        """Return the expression.

        Raises:
            NotUnderstood: nft prints no such expression.
        """
        if self._depth > _DEEPEST:
            raise NotUnderstood("nested too deep")
        self._depth += 1
        try:
            return self._read(given, self)
        finally:
            self._depth -= 1


def mapping(given: object) -> Mapping[str, Any]:
    """Return `given` if it is a JSON object."""
    if isinstance(given, dict):
        return given
    raise NotUnderstood(given)


def array(given: object) -> list[Any]:
    """Return `given` if it is an array."""
    if isinstance(given, list):
        return given
    raise NotUnderstood(given)


def integer(given: object) -> int:
    """Return `given` if it is a whole number of at least 0."""
    if type(given) is int and given >= 0:
        return given
    raise NotUnderstood(given)


def string(given: object) -> str:
    """Return `given` if it is a string."""
    if isinstance(given, str):
        return given
    raise NotUnderstood(given)


def optional_string(given: object) -> str | None:
    """Return `given` if it is a string or None."""
    return None if given is None else string(given)


def optional_integer(given: object) -> int | None:
    """Return `given` if it is a number or None."""
    return None if given is None else integer(given)


def strings(given: object) -> tuple[str, ...]:
    """Return the strings of an array, of a single string, or of None."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    return tuple(string(each) for each in array(given))


def boolean(given: object) -> bool:
    """Return a truth value; None is false."""
    if given is None or isinstance(given, bool):
        return bool(given)
    raise NotUnderstood(given)


def known_only(given: Mapping[str, object], names: frozenset[str]) -> None:
    """Refuse an object with a property that is not read, since it may change the meaning."""
    if not names.issuperset(given):
        raise NotUnderstood(given)
