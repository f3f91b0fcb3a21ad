"""The command line, called in a process that goes on, and a capture that it is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from analyzer import cli
from tests.support.captures import FIXTURES

CAPTURE = FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1"
DUMP = str(CAPTURE / "iptables-legacy-save.txt")
OBJECTS = ["--objects", str(CAPTURE / "objects.json")]


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str


class Command:
    """Runs the command line where files of the test lie: the fixture `command`."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self._capsys = capsys
        self.folder = folder

    def __call__(self, *arguments: str) -> Done:
        """Run the command line; exits of argparse are its status too."""
        try:
            status = cli.main(list(arguments))
        except SystemExit as exited:
            status = int(str(exited.code))
        printed = self._capsys.readouterr()
        return Done(status, printed.out, printed.err)

    def file(self, name: str, content: bytes | str) -> str:
        """Write a file where commands are run, and return its name."""
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        (self.folder / name).write_bytes(data)
        return name
