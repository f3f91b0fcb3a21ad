"""The type of a row of MATCHES or TARGETS."""

from __future__ import annotations

from typing import Protocol, TypeVar

from analyzer.parsers.words import Words

T = TypeVar("T")


class Extension(Protocol[T]):
    """Reads the options of one match or target, and writes them as iptables-save does."""

    def parse(self, words: Words) -> T:
        """Take the extension's options; stop before the first word that is none.

        Raises:
            ParseError: a value is malformed, or an option is missing.
        """
        ...

    def render(self, value: T) -> str:
        """Return the options as iptables-save prints them."""
        ...
