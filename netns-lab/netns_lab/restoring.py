"""Text for iptables-restore on its way into the kernel, in pieces where it takes none so large.

iptables-nft-restore sends a table as one message of netlink. The socket of an ordinary user has
room for some 800 rules; then it says "Message too long". Chains are made first, then rules are
appended, a few hundred at a time, and by halves where even that is too much.

Source: iptables, iptables/nft.c, ``mnl_batch_talk``; socket(7), SO_SNDBUFFORCE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from netns_lab.command import run
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: Rules of a piece.
_TOGETHER: Final = 400
_TOO_LONG: Final = re.compile(r"Message too long|EMSGSIZE")
_LINE: Final = re.compile(r"line:? (\d+)")


class RefusedError(LabError):
    """A line that the program does not take.

    Attributes:
        line: of the text, from 1; None: it does not say.
    """

    def __init__(self, says: str, line: int | None) -> None:
        super().__init__(says)
        self.line = line


def restore(namespace: Namespace, program: str, text: str) -> None:
    """Put the rules of `text` in place of those of its tables.

    Raises:
        RefusedError: the program does not take it; the message quotes it.
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
        # Tables before the one that was too long are there already, and pieces add to them.
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
    """Run a program, and return what it says of its failure; None: it did what it was to."""
    done = run(namespace, words, text, check=False)
    if not done.returncode:
        return None
    return (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"


def _tables(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Give the tables of a text: name, lines of chains, and of rules."""
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
