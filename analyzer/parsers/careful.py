"""Edited or damaged iptables-save text, read line by line; nothing is dropped silently.

Public dumps contain prompts, diff markers, continuation lines, several rules on one line, two nodes
in one paste, no header, no end. What can be read is read; each oddity gives a diagnostic, and a
chain that may have lost rules ends in an unknown one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from analyzer.errors import InputError
from analyzer.model.hooks import POLICIES
from analyzer.model.iptables.rules import Counters, Ruleset, Table
from analyzer.parsers.header import family_of, header, taken, version
from analyzer.parsers.headerless import parted
from analyzer.parsers.listed_rows import ListedRows
from analyzer.parsers.open_table import BASE_CHAINS, BUILT_IN, LEADS, OpenTable
from analyzer.parsers.telling import Telling

_TABLE: Final = re.compile(r"\*\s*([A-Za-z]+)\s*$")
_CHAIN: Final = re.compile(r":\s*(\S+)\s+(\S+)(?:\s+\[(\d{1,20}):(\d{1,20})\])?\s*$")
_ROW: Final = re.compile(r"(?:\[\d+:\d+\]\s*)?(?:-A|--append|-I|--insert)\s+(\S+)")
_POLICY: Final = re.compile(r"-P\s+(\S+)\s+(\S+)(?:\s+-c\s+(\d{1,20})\s+(\d{1,20}))?\s*$")
_NEW_CHAIN: Final = re.compile(r"-N\s+(\S+)\s*$")
_DELETED: Final = re.compile(r"-X\s+(\S+)\s*$")
#: What a diff, an indented paste or a quotation puts before a line.
_MARK: Final = re.compile(r"[+ \t>]+(?=[*:]|\[\d+:\d+\]|-[APNIX]\b|COMMIT\b)")
_DIFF_REMOVED: Final = re.compile(r"-(?:-A |:|\*)")
#: Beginnings of lines that do not continue the line before.
_BEGINS: Final = re.compile(
    r"(?:\[\d+:\d+\]\s*)?(?:-A|--append|-I|--insert)\s|[:*#]|-[PNX]\s|COMMIT\b|\s*$"
)
#: Another rule on the same line, outside quotes.
_NEXT_ROW: Final = re.compile(r'(?:[^"]|"(?:[^"\\]|\\.)*+")*?\s(?=-A\s+\S+\s+-)')

#: A rule that is inserted before all others, or at a number.
_INSERTED: Final = re.compile(
    r"\s*(?:\[\d+:\d+\]\s*)?(?:-I|--insert)\s+\S+(?:\s+(\d{1,9})(?=\s|$))?"
)


class CarefulReader(Telling):
    """Reads one file.

    Args:
        table: the table of rules without a header.
        advance: called for each line read, with the number of lines in all.
    """

    def __init__(
        self,
        file: str,
        table: str | None = None,
        advance: Callable[[int, int | None], None] | None = None,
    ) -> None:
        self._advance = advance
        super().__init__(file)
        self._wanted_table = table
        self._tables: dict[str, Table] = {}
        self._open: OpenTable | None = None
        self._noise: list[int] = []
        #: Lines before a table without a header, which may be rules of it.
        self._before: list[tuple[int, str]] = []
        self._rules = 0
        self._backend: str | None = None
        self._family = "ip"
        self._current = "ip"

    def read(self, text: str) -> Ruleset:
        """Return the rules of `text`.

        Raises:
            InputError: it contains no rule and no chain.
        """
        self._family = self._current = family_of(text)
        lines = list(joined(text))
        cut = self._cut_off(text, lines)
        for number, line in lines:
            self._line(line, number)
            if self._advance is not None:
                self._advance(1, len(lines))
        if cut is not None:
            self._last_line(*cut)
        self._end(text.count("\n") + 1)
        if not self._tables:
            raise InputError(f"{self._file}: it contains no rule and no chain of iptables-save")
        self._report_noise()
        return Ruleset(
            tables=self._tables,
            family=self._family,
            input_format="iptables-save",
            counted=self._rules,
            file=self._file,
            backend=self._backend,
            taken=taken(text),
            version=version(text),
            diagnostics=tuple(self._diagnostics),
        )

    @staticmethod
    def _cut_off(text: str, lines: list[tuple[int, str]]) -> tuple[int, str] | None:
        """Remove and return a last rule without a newline, whose last number may be truncated."""
        if text.endswith("\n") or not lines or not _ROW.match(unmarked(lines[-1][1])):
            return None
        return lines.pop()

    def _line(self, line: str, number: int) -> None:
        plain = unmarked(line)
        if _ROW.match(plain):
            for each in rules_of(plain):
                self._row(each, number)
        elif found := _CHAIN.match(plain):
            self._chain(found, number)
        elif plain.startswith("#"):
            self._comment(plain)
        elif found := _TABLE.match(plain):
            self._end(number)
            self._open = OpenTable(found[1].lower(), self._current, number)
            self._before = []
        elif plain.strip() == "COMMIT":
            self._commit()
        elif found := _POLICY.match(plain):
            self._listed(number, base=True)
            counters = (int(found[3]), int(found[4])) if found[3] else None
            self._declare(found[1], self._policy(found[2], number), counters)
        elif found := _NEW_CHAIN.match(plain):
            self._listed(number, base=False)
            self._declare(found[1], None, None)
        elif found := _DELETED.match(plain):
            self._delete(found[1])
        elif _DIFF_REMOVED.match(plain):
            self._warn("diff", "a line that a diff marks as removed is left out", number)
        elif plain and not plain.isspace():
            self._noise.append(number)
            if self._open is not None:
                self._open.lose(number, plain)
            elif LEADS.search(plain):
                self._before.append((number, plain))

    def _last_line(self, number: int, line: str) -> None:
        found = _ROW.match(unmarked(line))
        self._warn("cut-off", "the dump ends within this line, which is left out", number)
        table = self._table(number)
        plain = unmarked(line)
        # The name itself may be truncated, unless something follows it.
        if found is not None and plain[found.end() : found.end() + 1].isspace():
            if found[1] not in table.rows:
                self._declare(found[1], None, None)
            table.last = found[1]

    def _table(self, number: int) -> OpenTable:
        """Return the open table, starting one without a header if there is none."""
        if self._open is None:
            self._open = OpenTable(None, self._current, number, implied=True)
            self._open.lost, self._before = self._before, []
        return self._open

    def _listed(self, number: int, *, base: bool) -> None:
        """Handle ``-P`` or ``-N``; after rules they begin the next ``iptables -S``."""
        if self._open is not None and self._open.implied and self._open.last and base:
            self._end(number)
        table = self._table(number)
        table.listed = table.listed or (table.implied and base)

    def _row(self, line: str, number: int) -> None:
        found = _ROW.match(line)
        assert found is not None
        table = self._table(number)
        rows = table.rows.get(found[1])
        if rows is None:
            if not table.implied and found[1] not in BUILT_IN:
                self._warn("undeclared-chain", f"chain {found[1]} is not declared", number)
            rows = self._declare(found[1], None, None)
        inserted = _INSERTED.match(line)
        if inserted is None:
            rows.append(number, line)
        else:
            rows.insert(int(inserted[1] or 1) - 1, number, line)
        table.last = found[1]
        self._rules += 1

    def _chain(self, found: re.Match[str], number: int) -> None:
        open_ = self._open
        if open_ is not None and open_.last and open_.policies.get(found[1], (None, None))[0]:
            # A policy again, behind rules: the end of a table and the next head are missing.
            self._end(number)
        self._table(number)
        counters = (int(found[3]), int(found[4])) if found[3] else None
        policy = None if found[2] == "-" else self._policy(found[2], number)
        self._declare(found[1], policy, counters)

    def _policy(self, word: str, number: int) -> str:
        if word not in POLICIES:
            self._warn(
                "unknown-policy", (f"policy {word} is not known: it may or may not drop"), number
            )
        return word

    def _declare(self, chain: str, policy: str | None, counters: Counters | None) -> ListedRows:
        assert self._open is not None
        self._open.policies[chain] = (policy, counters)
        if chain not in self._open.rows:
            rows = self._open.rows[chain] = ListedRows(self._file, self._open.reader)
            for each in self._open.lost:
                rows.lose(*each, at_start=False)
        return self._open.rows[chain]

    def _delete(self, chain: str) -> None:
        """Handle ``-X``, which kube-proxy's input to iptables-restore has."""
        if self._open is not None and not self._open.rows.get(chain):
            self._open.rows.pop(chain, None)
            self._open.policies.pop(chain, None)

    def _comment(self, line: str) -> None:
        found = header(line)
        if found is not None:
            self._current, backend = found
            self._backend = self._backend or backend

    def _commit(self) -> None:
        if self._open is not None:
            self._close(complete=True)

    def _end(self, line: int) -> None:
        """End a table that no COMMIT has ended."""
        table = self._open
        if table is None:
            return
        if table.listed:
            # `iptables -S FORWARD` lists one chain, and leaves out the others.
            bases = frozenset(n for n, (policy, _) in table.policies.items() if policy is not None)
            self._close(complete=bases in BASE_CHAINS)
            return
        if self._are_parted(table):
            return
        table.mark_incomplete()
        if table.implied:
            code, what = "fragment", "these rules are under no table and may be incomplete"
        else:
            code, what = "no-commit", f"table {table.name} does not end with COMMIT"
        self._warn(code, f"{what}; what may follow in its chains is treated as unknown", line)
        self._close(complete=False)

    def _are_parted(self, table: OpenTable) -> bool:
        """Close the tables whose rows are in one without a header, if these can be told apart."""
        is_plain = table.implied and not (table.lost or table.damaged or self._wanted_table)
        if not is_plain or any(policy for policy, _ in table.policies.values()):
            return False
        tables = parted(table, self._file)
        if tables == (table,):
            return False
        if not tables:
            table.lose_everything()
            self._warn(
                "several-tables",
                "rows of several tables that cannot be told apart: what they do is unknown; pass "
                "the whole output of iptables-save, or the rows of one table",
                table.line,
            )
            return False
        names = ", ".join(str(each.name) for each in tables)
        self._warn(
            "several-tables",
            f"rows without their tables are taken for those of {names}, by their chains and "
            "targets; their policies are not known, and chains without rows are taken as empty; "
            "pass the whole output of iptables-save",
            table.line,
        )
        for each in tables:
            self._open = each
            if each.name == "nat":
                each.mark_incomplete()
            self._close(complete=each.name != "nat")
        return True

    def _close(self, *, complete: bool) -> None:
        table, self._open = self._open, None
        assert table is not None
        name = table.name
        if name is None:
            name = self._wanted_table or table.guess()
            if self._wanted_table is None:
                self._note(
                    "guessed-table", (f"assumed to be table {name}; --table overrides"), table.line
                )
        if table.family != self._family:
            self._warn(
                "other-family",
                f"table {name} of the other IP version is left out; pass it in a separate file",
                table.line,
            )
        elif name not in self._tables:
            self._tables[name] = table.close(name, complete=complete)
        elif table.same_as(self._tables[name]):
            self._note("pasted-twice", f"table {name} again, the same as before", table.line)
        else:
            self._warn(
                "two-dumps",
                f"table {name} again, with different rules: two nodes or two snapshots? Only the "
                "first is read",
                table.line,
            )

    def _report_noise(self) -> None:
        if self._noise:
            more = f" (and {len(self._noise) - 1} more)" if self._noise[1:] else ""
            self._warn("noise", f"not a line of iptables-save; left out{more}", self._noise[0])


def joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, from 1; a line that ends in a backslash joins the next one.

    If the next line begins something of its own, the backslash is the end of a chain's name.
    """
    # Not splitlines(): it would cut a comment at characters such as U+2028.
    pending: list[str] = []
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.rstrip("\r")
        if pending and _BEGINS.match(unmarked(pending[0])) and _BEGINS.match(unmarked(bare)):
            yield first, _unjoined(pending)
            pending = []
        first = first if pending else number
        # A comment ends with its line, whatever its last character.
        if bare.endswith("\\") and (pending or not unmarked(bare).startswith("#")):
            pending.append(bare[:-1])
            continue
        yield first, "".join([*pending, bare])
        pending = []
    if pending:
        yield first, _unjoined(pending)


def _unjoined(pieces: list[str]) -> str:
    """Return a line that ends in a backslash, which is kept if it is part of a word."""
    line = "".join(pieces)
    return line if line[-1:].isspace() else f"{line}\\"


def unmarked(line: str) -> str:
    """Return the line without what a diff or a quotation put before it."""
    found = _MARK.match(line)
    return line[found.end() :] if found else line


def rules_of(line: str) -> Iterator[str]:
    """Yield the rules of one line, several if line breaks were lost."""
    while (head := _ROW.match(line)) and (found := _NEXT_ROW.match(line, head.end())):
        yield line[: found.end()].rstrip()
        line = line[found.end() :]
    yield line
