"""Listings of ``iptables -nvL``, as found in tickets and sosreports without iptables-save.

Theory of operation: each row is translated into the syntax of iptables-save (`listed_rule`), and
then parsed like any other rule; its line is that of the listing. A listing does not name its
tables: they are recognised by their base chains, by ``iptables -t nat ...`` before them, or given
by ``--table``. It has no end mark either. Whether it is complete shows in the number of references
that each chain states: if the listing shows another number, rules are missing, and each chain ends
in an unknown rule. A chain that comes last, and of which it is known that its program ends it with
a rule for all packets, counts as complete only if it has that rule. (Missing rules that jump to no
chain, at the end of any other last chain, cannot be detected, as in ``iptables -S``.)

Source: iptables, iptables/iptables.c, ``print_header`` and ``list_entries``; iptables/nft.c,
``nft_rule_list``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from analyzer.errors import InputError
from analyzer.model.hooks import POLICIES
from analyzer.model.iptables.rules import Counters, Ruleset, Table
from analyzer.model.programs import is_ending, program_of_chain
from analyzer.model.value import replace
from analyzer.parsers.listed_rows import ListedRows
from analyzer.parsers.listed_rule import save_row
from analyzer.parsers.open_table import BASE_CHAINS, OpenTable
from analyzer.parsers.rows import Skim
from analyzer.parsers.telling import Telling
from analyzer.parsers.xt.rule import UNREAD

FORMAT: Final = "iptables-list"
_CHAIN: Final = re.compile(
    r"\s*Chain (\S+) \((?:policy ([A-Z]+)(?: (\d+)([KMGTP]?) packets, (\d+)([KMGTP]?) bytes)?"
    r"|(\d{1,10}) references?)\)\s*"
)
_HEAD: Final = re.compile(
    r"\s*(num\s+)?(pkts\s+bytes\s+)?target\s+prot(?:\s+opt)?(\s+in\s+out)?\s+source\s+destination\s*"
)
_SNIFF: Final = re.compile(r"^\s*Chain \S+ \((?:policy [A-Z]+|\d+ references?)", re.MULTILINE)
#: The command, in a paste, or printed by a program before the output.
_COMMAND: Final = re.compile(r"\bip(6)?tables(?:-legacy|-nft)?\s(?:.*\s)?-\S*L|--list\b")
_TABLE: Final = re.compile(r"(?:-t|--table)[ =]*([a-z]+)\b")
#: Written by the log collector of Amazon EKS after a listing.
_COUNTED: Final = re.compile(r"Total Number of Rules: (\d{1,10})\s*")
_RULER: Final = re.compile(r"\s*=*\s*")
#: Remarks of iptables about its own tables in a listing.
_SAID: Final = re.compile(r"# (?:Warning: ip6?tables-legacy tables present|Table `)")
_LEGACY_BESIDE: Final = "tables-legacy tables present"
_ANY_V6: Final = re.compile(r"\s!?[0-9a-f]{0,4}:[0-9a-f:]*:[0-9a-f:]*(?:/\d+)?\s")
#: Rows of rules that end all flows, or all of one protocol; group 1 is a chain that they jump to.
_LAST: Final = re.compile(
    r'(?:\[\d+:\d+\] )?-A \S+ (?:-p \w+ )?(?:-m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+) )?'
    r"(?:-m (?:tcp|udp|sctp) )?-j (?:DNAT --to-destination \S+|(\S+))"
)


def sniff(text: str) -> bool:
    """Return whether `text` has the header of a chain, as ``iptables -L`` prints it."""
    return _SNIFF.search(text) is not None


def parse(
    text: str,
    file: str,
    table: str | None = None,
    advance: Callable[[int, int | None], None] | None = None,
    skim: Skim | None = None,
) -> Ruleset:
    """Read a listing; `table` names the table if nothing in the listing does.

    Raises:
        InputError: it is of ``iptables -L`` without ``-v``, or contains no chain.
    """
    del skim
    return _Reader(file, table, advance).read(text)


class _Reader(Telling):
    """Reads one file."""

    def __init__(
        self, file: str, table: str | None, advance: Callable[[int, int | None], None] | None
    ) -> None:
        super().__init__(file)
        self._wanted = table
        self._advance = advance
        self._family = "ip"
        self._tables: dict[str, Table] = {}
        self._open: OpenTable | None = None
        #: By chain, the number of rules that jump to it: as stated, and as the listing shows.
        self._references: dict[str, int] = {}
        self._leads: Counter[str] = Counter()
        self._named: str | None = None
        self._chain: str | None = None
        self._numbered = False
        self._counted: int | None = None
        self._headless = False
        self._noise: list[int] = []
        self._unread: list[int] = []

    def read(self, text: str) -> Ruleset:
        # If no rule has an address, the name of the file decides.
        named = "ip6tables" in re.split(r"[/:]", self._file)[-1]
        self._family = (
            "ip6" if _ANY_V6.search(text) or (named and " 0.0.0.0/0 " not in text) else "ip"
        )
        lines = text.split("\n")
        cut = lines.pop() if lines[-1] else None
        for number, line in enumerate(lines, 1):
            self._line(line.rstrip("\r"), number)
            if self._advance is not None:
                self._advance(1, len(lines))
        if cut is not None:
            self._last_line(cut, len(lines) + 1)
        self._close()
        if not self._tables:
            raise InputError(f"{self._file}: it contains no chain of iptables -nvL")
        self._tell(
            "unread-listing",
            "the listing shows only part of this rule, so results may be ranges: use iptables-save",
            self._unread,
        )
        self._tell("noise", "not a line of iptables -nvL; left out", self._noise)
        ruleset = Ruleset(
            tables=self._tables,
            family=self._family,
            input_format=FORMAT,
            file=self._file,
            diagnostics=tuple(self._diagnostics),
        )
        return replace(ruleset, legacy_beside=True) if _LEGACY_BESIDE in text else ruleset

    def _line(self, line: str, number: int) -> None:
        if found := _CHAIN.fullmatch(line):
            self._begin(found, number)
        elif found := _HEAD.fullmatch(line):
            if found[3] is None:
                raise self._refused()
            self._numbered, self._headless = found[1] is not None, False
        elif found := _COUNTED.fullmatch(line):
            self._counted = int(found[1])
        elif _COMMAND.search(line) and not line.lstrip()[:1].isdigit():
            self._close()
            named = _TABLE.search(line)
            self._named = named[1] if named is not None else "filter"
        elif _RULER.fullmatch(line) or _SAID.match(line):
            pass
        else:
            self._row(line, number)

    def _row(self, line: str, number: int) -> None:
        chain = self._chain
        found = None
        if chain is not None and not self._headless:
            found = save_row(chain, line, numbered=self._numbered)
        if found is None or chain is None or self._open is None:
            self._noise.append(number)
            if self._open is not None and chain is not None:
                self._open.rows[chain].lose(number, line, at_start=False)
            return
        row, target = found
        self._leads[target] += 1
        if UNREAD in row:
            self._unread.append(number)
        self._open.rows[chain].append(number, row)

    def _last_line(self, line: str, number: int) -> None:
        """Handle a last line without a newline, which may be truncated."""
        self._warn("cut-off", "the listing ends within this line, which is left out", number)
        if _CHAIN.fullmatch(line):
            self._line(line, number)
        if self._open is not None and self._chain is not None:
            self._open.rows[self._chain].complete = False
            self._open.damaged = True

    def _begin(self, found: re.Match[str], number: int) -> None:
        name, policy = found[1], found[2]
        if self._open is not None and self._is_next(name, policy):
            self._close()
        if self._open is None:
            self._open = OpenTable(self._named, self._family, number, implied=True)
            self._references, self._leads = {}, Counter()
        counters: Counters | None = None
        if found[3] is not None and not found[4] and not found[6]:
            counters = (int(found[3]), int(found[5]))
        if policy is not None and policy not in POLICIES:
            self._warn(
                "unknown-policy", f"policy {policy} is not known: it may or may not drop", number
            )
        self._open.policies[name] = (policy, counters)
        self._open.rows[name] = ListedRows(self._file, self._open.reader)
        if found[7] is not None:
            self._references[name] = int(found[7])
        self._chain, self._headless = name, True

    def _is_next(self, name: str, policy: str | None) -> bool:
        """Return whether a chain belongs to the next table: base chains come first."""
        assert self._open is not None
        if name in self._open.rows:
            return True
        if policy is None:
            return False
        policies = self._open.policies
        bases = frozenset(each for each, (known, _) in policies.items() if known is not None)
        return bases in BASE_CHAINS and len(policies) > len(bases)

    def _refused(self) -> InputError:
        return InputError(
            f"{self._file}: a listing of `iptables -L` without -v, which leaves out the devices "
            "that rules match on: any rule may be restricted to some of them; run "
            "`iptables-save` on the node, or `iptables -t nat -nvL`, and pass its output"
        )

    def _close(self) -> None:
        table, self._open = self._open, None
        self._chain, named, self._named = None, self._named, None
        counted, self._counted = self._counted, None
        if table is None:
            return
        bases = frozenset(n for n, (policy, _) in table.policies.items() if policy is not None)
        name = self._wanted or named or table.guess()
        if not self._wanted and not named and bases not in BASE_CHAINS:
            self._note(
                "guessed-table", (f"assumed to be table {name}; --table overrides"), table.line
            )
        whole = bases in BASE_CHAINS and not table.damaged
        missing = self._missing(table, counted)
        if missing is not None:
            whole = False
            self._warn("incomplete-listing", f"table {name}: {missing}; {_UNKNOWN}", table.line)
        elif bases not in BASE_CHAINS:
            self._warn(
                "fragment", f"table {name}: not all of its base chains are listed", table.line
            )
        if missing is not None:
            for rows in table.rows.values():
                rows.complete = False
        elif table.rows:
            last, rows = next(reversed(table.rows.items()))
            if is_ending(last) and not (rows.lines and _is_last(last, rows.lines[-1])):
                rows.complete = False
        if name in self._tables:
            if not table.same_as(self._tables[name]):
                self._warn(
                    "two-dumps",
                    f"table {name} again, with different rules: two nodes or two snapshots? Only "
                    "the first is read",
                    table.line,
                )
            return
        table.implied = False
        self._tables[name] = replace(table.close(name, complete=whole), complete=whole)

    def _missing(self, table: OpenTable, counted: int | None) -> str | None:
        """Return why rules must be missing; None if nothing shows that any are."""
        shown = sum(len(rows.lines) for rows in table.rows.values())
        if counted is not None and counted != shown:
            return f"{shown} rules are listed, and {counted} were counted"
        for name, number in self._references.items():
            if self._leads[name] != number:
                return (
                    f"chain {name} has {number} references, and {self._leads[name]} rules of the "
                    "listing jump to it"
                )
        return None

    def _tell(self, code: str, message: str, lines: list[int]) -> None:
        if lines:
            more = f" (and {len(lines) - 1} more)" if lines[1:] else ""
            self._warn(code, f"{message}{more}", lines[0])


def _is_last(chain: str, row: str) -> bool:
    """Return whether a rule of a chain ends all packets there: by DNAT, or in a chain alike."""
    found = _LAST.fullmatch(row)
    if found is None:
        return False
    return found[1] is None or program_of_chain(found[1]) == program_of_chain(chain)


_UNKNOWN: Final = "what may follow in its chains is treated as unknown"
