"""The type of a row of MATCHES or TARGETS, loaded when a rule first needs it.

Sixty modules parse what xtables has, and the rules of one node need ten of them: loading the others
would take longer than evaluating a small node's rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from analyzer.parsers.words import Words

T = TypeVar("T")


class Extension(Protocol[T]):
    """Parses the options of one match or target, and renders them as iptables-save does."""

    def parse(self, words: Words) -> T:
        """Take the extension's options; stop before the first word that is none.

        Raises:
            ParseError: a value is malformed, or an option is missing.
        """
        ...

    def render(self, value: T) -> str:
        """Return the options as iptables-save prints them."""
        ...


class Extensions(Mapping[str, Extension[Any]]):
    """Extensions by the name that follows ``-m`` or ``-j``.

    Each is a constant of that name in capitals, in the module of `package` with that name, or in
    the one that `files` gives for it.
    """

    def __init__(
        self, package: str, names: Collection[str], files: Mapping[str, str] | None = None
    ) -> None:
        self._package = package
        self._names = names
        self._files = files or {}
        self._loaded: dict[str, Extension[Any]] = {}

    def __getitem__(self, name: str) -> Extension[Any]:
        found = self._loaded.get(name)
        if found is None:
            if name not in self._names:
                raise KeyError(name)
            constant = name.upper()
            file = f"{self._package}.{self._files.get(name, name.lower())}"
            found = self._loaded[name] = getattr(__import__(file, fromlist=[constant]), constant)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names))

    def __len__(self) -> int:
        return len(self._names)
