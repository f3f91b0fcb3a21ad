"""argparse's parser as our verbs have it.

Options that take several values
================================

Such an option is repeated (``--dead A --dead B``) or its values are joined by commas
(``--dead A,B``). Several words behind one option (``--dead A B``) are read too, where it is plain
which words are the option's: those that the verb's own arguments, such as DUMP, do not need.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def several(read: Callable[[str], Any] = str) -> dict[str, Any]:
    """Return how argparse is told of an option that takes several values, each read by `read`."""

    def values(text: str) -> list[Any]:
        # A file may have a comma in its name.
        words = [text] if os.path.exists(text) else text.split(",")  # noqa: PTH110  # is loaded
        return [read(word) for word in words if word or len(words) == 1]

    return {"type": values, "action": "extend", "default": []}


class Parser(argparse.ArgumentParser):
    """argparse's own, for which an option of several values takes one word, or plainly more."""

    def __init__(self, **kinds: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=HelpFormatter, **kinds)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse `args` as argparse does, but for ``--option=--``: it would take that for a list."""
        words = list(args or ())
        for word in words:
            if word == "--":
                break
            if word.startswith("--") and word.endswith("=--"):
                self.error(f"argument {word.removesuffix('=--')}: expected one argument")
        return super().parse_known_args(self._spelled_out(words), namespace)

    def _spelled_out(self, words: list[str]) -> list[str]:
        """Return the words, the option repeated before each of its further values."""
        needed = [str(each.metavar) for each in self._actions if not each.option_strings]
        told = list(self._told(words))
        further = {at: owner for at, owner in told if owner is not None}
        extra = len(told) - len(needed)
        if extra <= 0 or not further or self._subparsers is not None:
            return words
        if extra < len(further):
            option = [*further.values()][-1]
            self.error(
                f"argument {option}: it is not plain which word is {' or '.join(needed)}; repeat "
                f"{option} for each value, or join the values by commas"
            )
        return [f"{further[at]}={word}" if at in further else word for at, word in enumerate(words)]

    def _told(self, words: Sequence[str]) -> Iterator[tuple[int, str | None]]:
        """Give the places of words that are no options nor their first value.

        With each comes the option of several values right behind which it stands.
        """
        owner: str | None = None
        taken = False
        for at, word in enumerate(words):
            if word == "--":
                yield from ((each, None) for each in range(at + 1, len(words)))
                return
            if taken:
                taken = False
            elif word.startswith("-") and word != "-":
                name, joined, _ = word.partition("=")
                action = self._option_string_actions.get(name)
                extends = isinstance(action, argparse._ExtendAction)  # noqa: SLF001  # no other name
                owner = name if extends else None
                taken = not joined and action is not None and action.nargs is None
            else:
                yield at, owner


class HelpFormatter(argparse.HelpFormatter):
    """argparse's own, which asks for the terminal's width only when help is shown.

    It is made anew for each option that is added, and to ask takes a module and a system call.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)

    def format_help(self) -> str:
        """Return the help, fitted to the terminal."""
        import shutil

        self._width = shutil.get_terminal_size().columns - 2
        return super().format_help()
