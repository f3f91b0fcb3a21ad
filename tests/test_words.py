"""Messages, docstrings and comments use plain words: replaced phrases do not come back."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
#: Phrases, in lower case, with what to say instead.
INSTEAD: Final = {
    "everybody": "all programs, all tables, every client",
    "nobody says": "not known, unknown",
    "nobody said": "not given, not declared",
    "nobody told": "not given",
    "nobody knows": "not known, unknown",
    "who says": "verification, source",
    "fares": "loses, ends, has the result",
    "fare alike": "have the same result",
    "of which nothing is known": "unknown, without known X",
    "of which nothing is told": "without an answer, not judged",
    "read over": "evaluated, scanned",
    "heir": "subclass",
    "either / either": "if it matches / if not",
    "no draws of their own": "not independent",
    "is no percentage": "is not a percentage (for example 10%)",
    "passes on to": "forwarded unchanged",
    "passed on": "forwarded unchanged",
    "calls itself": "hairpin: a pod that reaches itself through its Service",
    "that nobody has": "unallocated",
    "none mode": "no kube-proxy rules found",
    "lives again": "is back",
    "let go of": "closed, released",
    "held against": "compared with",
    "holds both together": "compares the two",
    "tell whether": "return whether, know whether",
    "fare": "lose, end, have the result",
    "becomes of": "happens to",
    "became of": "happened to",
    "nobody": "no host, no client, not known",
    "somebody": "another host, another program, a client",
    "whoever": "any client, code that",
    "for want of": "for lack of",
    "one and the same": "the same, the same object",
    "in vain": "of no use, without a result",
    "behind nat": "after nat",
    "behind its dnat": "after DNAT",
    "behind the dnat": "after DNAT",
    "lets go": "forwards, lets pass",
}
#: A name of an attribute before its description, or alone, is no prose.
_PHRASES: Final = re.compile(rf"\b(?:{'|'.join(map(re.escape, INSTEAD))})\b(?!:)", re.IGNORECASE)


def _rooms() -> list[Path]:
    """Return the folders of modules: a test for each of a thousand modules is mostly pytest's."""
    found = [*(ROOT / "analyzer").rglob("*.py"), *(ROOT / "netns-lab/netns_lab").rglob("*.py")]
    return sorted({each.relative_to(ROOT).parent for each in found})


def _found(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each string or comment that has such a phrase, and the phrase."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.isidentifier():
                continue
            for each in _PHRASES.finditer(" ".join(node.value.split())):
                yield node.lineno, each[0].lower()
    if not _PHRASES.search(source):  # a comment stands on one line: splitting takes longest
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for each in _PHRASES.finditer(token.string):
                yield token.start[0], each[0].lower()


@pytest.mark.parametrize("room", _rooms(), ids=str)
def test_strings_and_comments_use_plain_words(room: Path) -> None:
    says = [
        f"{path.relative_to(ROOT)}:{line}: {phrase}: say {INSTEAD[phrase]}"
        for path in sorted((ROOT / room).glob("*.py"))
        for line, phrase in _found(path.read_text(encoding="utf-8"))
    ]
    assert says == []


def test_a_phrase_is_found_across_lines_of_a_string() -> None:
    source = '"""A Service.\n\nIt has endpoints of which nothing\nis known.\n"""'
    assert list(_found(source)) == [(1, "of which nothing is known")]


def test_a_phrase_is_found_in_a_comment() -> None:
    assert list(_found("MOST = 4  # as nobody answers\n")) == [(1, "nobody")]
