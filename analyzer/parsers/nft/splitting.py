"""A ruleset's text split into tables, their blocks, and the statements of a block.

Theory of operation
===================

In unedited output of nft, blocks follow each other, with each line after two tabs: one regular
expression matches a whole block. Anything else (other indents, several statements on a line,
elements or comments with braces) is read token by token, which gives the same blocks. A body is
split into its statements on request.

Source: src/rule.c, ``do_list_ruleset``, ``table_print``, ``chain_print``; src/scanner.l.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NoReturn

from analyzer.errors import ParseError
from analyzer.model.diagnostics import Location
from analyzer.model.value import value

_KINDS: Final = (
    r"chain|set|map|flowtable|counter|quota|limit|ct helper|ct timeout|ct expectation|secmark"
    r"|synproxy|meter|tunnel"
)
_HEAD: Final = re.compile(r"table (\w+) (\S+) \{(?: # handle \d+)?\n((?:\t[^\t{}\n][^{}\n]*\n)*+)")
_BLOCK: Final = re.compile(rf"\t({_KINDS}) (\S+) \{{(?: # handle \d+)?\n((?:\t\t.*\n)*+)\t\}}\n\n?")
_END: Final = re.compile(r"\}\n")
_TOKEN: Final = re.compile(r'"[^"]*"|#[^\n]*|\\\r?\n|[{};\n]|"')
_CONTINUED: Final = re.compile(r'"[^"]*"|\\\r?\n')
_HANDLE: Final = re.compile(r" # handle \d+\r?$")
_QUOTED: Final = re.compile(r'"[^"]*"')
_PIECE: Final = re.compile(r'"[^"]*"|#[^\n]*|\\\r?\n|[{};\n]|[^"#{};\n\\]+|.')
_TABLE: Final = re.compile(r"table\s+(?:(\w+)\s+)?(\S+)")
_BLOCK_HEAD: Final = re.compile(rf"({_KINDS})\s+(\S+)")
_BETWEEN: Final = re.compile(r"(?:#.*\n|\s)*+")
_TABLES: Final = 1
_BLOCKS: Final = 2


@value
class BracedBlock:
    """A chain, set, map or object: the text between its braces, and its line, from 1."""

    kind: str
    name: str
    line: int
    body: str


@value
class RawTable:
    """A table: its own attributes by line, its blocks, and whether it is closed."""

    family: str
    name: str
    line: int
    attributes: tuple[tuple[int, str], ...]
    blocks: tuple[BracedBlock, ...]
    complete: bool


@value
class Split:
    """The tables of a text, and the lines, from 1, that belong to none."""

    tables: tuple[RawTable, ...]
    noise: tuple[int, ...]


def split(text: str, file: str) -> Split:
    """Return the tables of a ruleset.

    Raises:
        ParseError: braces do not match, a quote is not closed, or rules are in something other
            than a table.
    """
    found = _untouched(text)
    return _Careful(text, file).read() if found is None else found


def _untouched(text: str) -> Split | None:
    """Return the tables of unedited nft output; None if the text is anything else."""
    tables: list[RawTable] = []
    at, line = 0, 1
    while True:
        between = _BETWEEN.match(text, at)
        assert between is not None  # it may be empty
        line += between[0].count("\n")
        at = between.end()
        if at == len(text):
            return Split(tuple(tables), ())
        head = _HEAD.match(text, at)
        if head is None or head[3].count('"') % 2:
            return None
        start = line
        line += head[0].count("\n")
        at = head.end()
        blocks: list[BracedBlock] = []
        while (block := _BLOCK.match(text, at)) is not None:
            kind, name, body = block.groups()
            blocks.append(BracedBlock(kind, name, line + 1, body))
            line += block[0].count("\n")
            at = block.end()
        end = _END.match(text, at)
        if end is None:
            return None
        at = end.end()
        line += 1
        attributes = tuple((start + 1 + number, each) for number, each in statements(head[3]))
        tables.append(RawTable(head[1], head[2], start, attributes, tuple(blocks), True))


class _Careful:
    """Splits by braces, whatever the indent."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._tables: list[RawTable] = []
        self._noise: list[int] = []
        self._depth = 0
        self._line = 1
        #: Start of the statement being read: its offset and its line.
        self._start = (0, 1)
        #: Of the open table and the open block: header, its line, start of the body.
        self._table: tuple[re.Match[str], int] | None = None
        self._block: tuple[str, str, int, int] | None = None
        self._blocks: list[BracedBlock] = []
        self._attributes: list[tuple[int, str]] = []

    def read(self) -> Split:
        for token in _TOKEN.finditer(self._text):
            self._token(token)
        if self._depth == 0:
            self._statement(len(self._text))
        if self._block is not None:
            self._end_block(len(self._text))
        if self._table is not None:
            self._end_table(complete=False)
        return Split(tuple(self._tables), tuple(self._noise))

    def _token(self, token: re.Match[str]) -> None:
        match token[0]:
            case "{":
                self._open(token.start())
            case "}":
                self._close(token)
            case "\n" | ";":
                if self._depth < _BLOCKS:
                    self._statement(token.start())
                    self._start = token.end(), self._line + (token[0] == "\n")
            case '"':
                self._fail("this quote is never closed", token.start())
            case comment if comment[0] == "#" and self._depth < _BLOCKS:
                self._statement(token.start())
                self._start = token.end(), self._line
            case _:
                pass
        self._line += token[0].count("\n")

    def _open(self, at: int) -> None:
        head = self._since(at)
        if self._depth == 0:
            found = _TABLE.fullmatch(head)
            if found is None:
                self._fail("expected a table before this brace", at)
            self._table = found, self._start[1]
            self._blocks, self._attributes = [], []
        elif self._depth == _TABLES:
            found = _BLOCK_HEAD.fullmatch(head)
            kind, name = ("", head) if found is None else (found[1], found[2])
            self._block = kind, name, self._line, at + 1
        self._depth += 1
        self._start = at + 1, self._line

    def _close(self, token: re.Match[str]) -> None:
        if self._depth == 0:
            self._fail("no brace is open here", token.start())
        if self._depth == _TABLES:
            self._statement(token.start())
            self._end_table(complete=True)
        elif self._depth == _BLOCKS:
            self._end_block(token.start())
        self._depth -= 1
        self._start = token.end(), self._line

    def _end_block(self, at: int) -> None:
        assert self._block is not None
        kind, name, line, start = self._block
        self._blocks.append(BracedBlock(kind, name, line, self._text[start:at]))
        self._block = None

    def _end_table(self, *, complete: bool) -> None:
        assert self._table is not None
        head, line = self._table
        family = head[1] or "ip"
        found = tuple(self._attributes), tuple(self._blocks)
        self._tables.append(RawTable(family, head[2], line, *found, complete))
        self._table = None

    def _statement(self, end: int) -> None:
        text = self._since(end)
        if text and self._depth == 0:
            self._noise.append(self._start[1])
        elif text and self._depth == _TABLES:
            self._attributes.append((self._start[1], text))

    def _since(self, end: int) -> str:
        """Return the statement up to here; lines that end in a backslash are joined."""
        text = self._text[self._start[0] : end]
        return _CONTINUED.sub(lambda found: found[0] if found[0][0] == '"' else " ", text).strip()

    def _fail(self, message: str, at: int) -> NoReturn:
        start = self._text.rfind("\n", 0, at) + 1
        end = self._text.find("\n", at)
        line = self._text[start : len(self._text) if end < 0 else end]
        column = at - start
        raise ParseError(
            message,
            location=Location(self._file, self._text.count("\n", 0, at) + 1),
            line=line,
            span=(column, column + 1),
        )


def statements(body: str) -> list[tuple[int, str]]:
    """Return the statements of a block, each with its line, from 0.

    Blanks around a statement stay, as they may represent what nft could not print.
    """
    flat = _without_elements(body)
    if flat is not None:
        outside, first, inside = flat
        more = inside.count("\n")
        whole = inside.replace("\n", " ")
        return [
            (number, text.replace("{}", f"{{{whole}}}", 1))
            if number == first
            else (number + (more if number > first else 0), text)
            for number, text in statements(outside)
        ]
    found: list[tuple[int, str]] = []
    for number, line in enumerate(body.split("\n")):
        shown = _HANDLE.sub("", line) if "#" in line else line
        plain = _QUOTED.sub("", shown) if '"' in shown else shown
        if (
            any(mark in plain for mark in ';#\\"')
            or plain.count("{") != plain.count("}")
            or shown[-1:] == "\r"
        ):
            return _without_indent(body, list(_split_carefully(body)))
        text = shown.lstrip("\t")
        if text and not text.isspace():
            found.append((number, text))
    return _without_indent(body, found)


def _without_elements(body: str) -> tuple[str, int, str] | None:
    """Return a body without the first braces' contents, the line of these, and the contents.

    None: they are on one line, as in most bodies, or contain more than elements.
    """
    head, _, rest = body.partition("{")
    inside, brace, _ = rest.partition("}")
    if (
        "\n" not in inside
        or "\t" not in body
        or not brace
        or any(mark in inside for mark in '{;#\\"\r')
    ):
        return None
    before, behind = head.rpartition("\n")[2], rest[len(inside) + 1 :].partition("\n")[0]
    if any(mark in before + behind for mark in ';#\\"\r{}') or head.count('"') % 2:
        return None
    return head + "{" + rest[len(inside) :], head.count("\n"), inside


def _without_indent(body: str, found: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Remove the indent that all statements share: tabs from nft, blanks from editors."""
    if "\t" in body or not found:
        return found
    # Text right after the brace is not a line of its own.
    behind, *lines = body.split("\n")
    indented = [line for line in lines if line and not line.isspace()] or [behind]
    margin = min(len(line) - len(line.lstrip(" ")) for line in indented)
    # The brace that closes the block is indented half as much as its lines.
    if lines and lines[-1] and not lines[-1].strip(" "):
        margin = min(margin, 2 * len(lines[-1]))
    blanks = " " * margin
    return [(number, text.removeprefix(blanks)) for number, text in found]


def _split_carefully(body: str) -> Iterator[tuple[int, str]]:
    pieces: list[str] = []
    line = first = depth = 0
    for token in _PIECE.finditer(body):
        word = token[0]
        if depth == 0 and word in {";", "\n"}:
            yield from _joined(first, pieces)
            pieces = []
        elif word[0] == "#":
            if pieces:  # the blank before it belongs to it
                pieces[-1] = pieces[-1].removesuffix(" ")
        elif word == "\n" or word[0] == "\\":
            pieces.append(" ")
        elif word.strip("\r"):
            if not pieces:
                first = line
            depth += (word == "{") - (word == "}")
            pieces.append(word)
        line += word.count("\n")
    yield from _joined(first, pieces)


def _joined(line: int, pieces: list[str]) -> Iterator[tuple[int, str]]:
    text = "".join(pieces).strip("\t\r\n")
    if text and not text.isspace():
        yield line, text
