"""The rules of a chain whose rows are read line by line, from anywhere in the input."""

from __future__ import annotations

from analyzer.model.iptables.rules import Rule
from analyzer.parsers.rows import RowReader, RuleRows, lost_rule


class ListedRows(RuleRows):
    """Rows collected one by one, from anywhere in the input."""

    __slots__ = ("_lost", "_rows")

    def __init__(self, file: str, reader: RowReader) -> None:
        super().__init__(file, reader)
        self._rows: list[tuple[int, str]] = []
        #: Numbers of the lines that are not rules, but may represent some.
        self._lost: set[int] = set()

    def lose(self, number: int, line: str, *, at_start: bool) -> None:
        """Add a line that represents unreadable rules, after the present rows or before them.

        Only before the rules were looked at.
        """
        self._lost.add(number)
        self._rows.insert(0 if at_start else len(self._rows), (number, line))

    def understand(self, number: int, line: str) -> Rule:
        """Return one rule, parsed and not kept."""
        if number in self._lost:
            return lost_rule(line, self._at(number))
        return super().understand(number, line)

    def insert(self, at: int, number: int, line: str) -> None:
        """Add a row before the one at `at`, from 0; only before the rules were looked at."""
        self._rows.insert(at, (number, line))

    def append(self, number: int, line: str) -> None:
        """Add a row; only before the rules were looked at."""
        self._rows.append((number, line))

    @property
    def lines(self) -> list[str]:
        """The text of each rule."""
        return [line for _, line in self._rows]

    def number(self, at: int) -> int:
        """Return the line, from 1, of the rule at `at`, from 0."""
        return self._rows[at][0]

    @property
    def text(self) -> str:
        """All rows, each with a newline at its end."""
        return "".join(f"{line}\n" for _, line in self._rows)

    def __len__(self) -> int:
        return len(self._rows) + (not self.complete)
