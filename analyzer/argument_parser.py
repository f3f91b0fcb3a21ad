"""argparse's parser as our verbs have it."""

from __future__ import annotations

from analyzer.quick_argparse import argparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """argparse's own, which also says where DUMP went: an option of many values took it."""

    def __init__(self, **kinds: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=HelpFormatter, **kinds)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse `args` as argparse does, but for ``--option=--``: it would take that for a list."""
        for word in args or ():
            if word == "--":
                break
            if word.startswith("--") and word.endswith("=--"):
                self.error(f"argument {word.removesuffix('=--')}: expected one argument")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and exit with 2."""
        if message.endswith(("arguments are required: DUMP", "required: A, B", "required: B")):
            message += "; it goes before options that take several values, such as --objects"
        super().error(message)


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
