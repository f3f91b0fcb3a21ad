"""``type[/code]``, as in icmp and icmp6."""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.words import Words
from analyzer.parsers.xt.values import number_from_text

_MOST = 0xFF


def read_type(
    words: Words, names: Mapping[str, tuple[int | None, int | None]]
) -> tuple[int | None, int | None]:
    """Return type and code; a code that is not given is None.

    Raises:
        ParseError: neither a name of `names` nor numbers up to 255.
    """
    expected = "an ICMP type, for example 8 or 3/1"
    word = words.take(expected)
    if word.text in names:
        return names[word.text]
    kind, slash, code = word.text.partition("/")
    numbers = [number_from_text(kind)] + ([number_from_text(code)] if slash else [])
    if any(n is None or n > _MOST for n in numbers):
        words.fail(f"expected {expected}", span=word.span)
    return numbers[0], numbers[1] if slash else None


def write_type(kind: int, code: int | None) -> str:
    """Return what iptables-save prints for a type, and for its code if there is one."""
    return str(kind) if code is None else f"{kind}/{code}"
