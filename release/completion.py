"""Completion of the command line in bash, zsh and fish, made of the parser by shtab.

The scripts are data of the package: nothing is computed when a shell starts, and the program does
not load them but for ``kubeodds completion``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import shtab

from release.commands import every_command, walk

SHELLS: Final = ("bash", "zsh", "fish")
#: Below the root of the project.
FOLDER: Final = Path("analyzer", "data", "completion")
#: What stands for the name of a file in help.
_FOLDER: Final = "DIR"
_FILES: Final = frozenset({"A", "B", "DUMP", "FILE"})


def scripts() -> Iterator[tuple[Path, str]]:
    """Give each shell's script and where it is kept, below the root of the project."""
    for shell in SHELLS:
        parser = every_command()
        for each in walk(parser):
            for action in each._actions:  # noqa: SLF001  # argparse has no public name for them
                if action.metavar == _FOLDER:
                    action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # shtab's own
                if action.metavar in _FILES:
                    action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's own
        made = shtab.complete(parser, shell).rstrip("\n")
        yield FOLDER / f"kubeodds.{shell}", f"{made}\n"
