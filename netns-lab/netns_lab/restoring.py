"""Loading of text by iptables-restore, in pieces if it is too large for one message.

iptables-nft-restore sends a table as one netlink message. The socket of an ordinary user has room
for some 800 rules; beyond that it fails with "Message too long". Then chains are created first and
rules appended, a few hundred at a time, and in halves if even that is too much.

Source: iptables, iptables/nft.c, ``mnl_batch_talk``; socket(7), SO_SNDBUFFORCE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from netns_lab.command import run
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: Rules per piece.
_TOGETHER: Final = 400
_TOO_LONG: Final = re.compile(r"Message too long|EMSGSIZE")
_LINE: Final = re.compile(r"line:? (\d+)")


class RefusedError(LabError):
    """The program refuses the text.

    Attributes:
        line: of the text, from 1; None if the program does not say.
    """

    def __init__(self, says: str, line: int | None) -> None:
        super().__init__(says)
        self.line = line


def restore(namespace: Namespace, program: str, text: str) -> None:
    """Replace the tables in `text` by its rules.

    Raises:
        RefusedError: the program refuses it; the message quotes the program.
    """
    said = _run(namespace, [program], text)
    if said is None:
        return
    if not _TOO_LONG.search(said):
        at = _LINE.search(said)
        raise RefusedError(
            f"{program} in {namespace.name}: {said}", None if at is None else int(at[1])
        )
    for table, chains, rules in _tables(text):
        # Tables before the one that was too long are loaded already, so that one starts empty.
        empty = "\n".join([f"*{table}", *(c for c in chains if " - " not in c), "COMMIT"]) + "\n"
        said = _run(namespace, [program], empty)
        if said is not None:
            raise RefusedError(f"{program} in {namespace.name}: {said}", None)
        _pieces(namespace, program, table, chains)
        _pieces(namespace, program, table, rules)


def _pieces(namespace: Namespace, program: str, table: str, lines: Sequence[str]) -> None:
    for first in range(0, len(lines), _TOGETHER):
        _halved(namespace, program, table, lines[first : first + _TOGETHER])


def _halved(namespace: Namespace, program: str, table: str, lines: Sequence[str]) -> None:
    text = "\n".join([f"*{table}", *lines, "COMMIT"]) + "\n"
    said = _run(namespace, [program, "--noflush"], text)
    if said is None:
        return
    if len(lines) == 1 or not _TOO_LONG.search(said):
        raise RefusedError(f"{program} --noflush in {namespace.name}: {said}", None)
    half = len(lines) // 2
    _halved(namespace, program, table, lines[:half])
    _halved(namespace, program, table, lines[half:])


def _run(namespace: Namespace, words: Sequence[str], text: str) -> str | None:
    """Run a program, and return its error message; None if it succeeded."""
    done = run(namespace, words, text, check=False)
    if not done.returncode:
        return None
    return (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"


def _tables(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the tables of a text: name, lines of chains, and lines of rules."""
    table = ""
    chains: list[str] = []
    rules: list[str] = []
    for line in text.splitlines():
        if line.startswith("*"):
            table, chains, rules = line[1:], [], []
        elif line == "COMMIT":
            yield table, chains, rules
        else:
            (chains if line.startswith(":") else rules).append(line)
