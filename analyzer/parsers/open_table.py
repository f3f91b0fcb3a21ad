"""One table of a dump while it is read line by line, until its COMMIT."""

from __future__ import annotations

import re
from typing import Final

from analyzer.model.iptables.rules import Chain, Counters, Table
from analyzer.parsers.listed_rows import ListedRows
from analyzer.parsers.rows import RowReader

#: Commands that delete rules of a chain, or of all; no dump has them.
_EDIT: Final = re.compile(
    r"[+ \t>]*(?:\[\d+:\d+\]\s*)?(?:-[DRF]|--delete|--replace|--flush)(?:\s+(\S+)|\s*$)"
)
#: What a line that is not a rule may share with one.
LEADS: Final = re.compile(r"\s(?:-[jg]|--jump|--goto)\s")
#: The sets of built-in chains that identify a table without a header.
BASE_CHAINS: Final = {
    frozenset({"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"}): "nat",
    frozenset({"PREROUTING", "OUTPUT", "POSTROUTING"}): "nat",
    frozenset({"INPUT", "FORWARD", "OUTPUT"}): "filter",
    frozenset({"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}): "mangle",
    frozenset({"PREROUTING", "OUTPUT"}): "raw",
}
#: Chains that exist without being declared.
BUILT_IN: Final = frozenset().union(*BASE_CHAINS)
#: Targets that only rules of the nat table have.
_NAT_ONLY: Final = re.compile(r"-j (?:DNAT|SNAT|MASQUERADE|REDIRECT)\b")
#: What may be the name of a chain.
_NAMES: Final = re.compile(r"-(?:A|j|g) (\S+)")


class OpenTable:
    """A table whose end has not been read yet, begun at `line`.

    Attributes:
        implied: no ``*table`` line began it: a fragment, or ``iptables -S``.
        listed: it was begun by the ``-P`` and ``-N`` lines of ``iptables -S``.
        damaged: a line between its header and its COMMIT is not understood.
        lost: such lines, which may also be rules of chains that come later.
    """

    def __init__(self, name: str | None, family: str, line: int, *, implied: bool = False) -> None:
        self.name = name
        self.family = family
        self.line = line
        self.implied = implied
        self.listed = False
        self.damaged = False
        self.lost: list[tuple[int, str]] = []
        self.policies: dict[str, tuple[str | None, Counters | None]] = {}
        self.rows: dict[str, ListedRows] = {}
        self.reader = RowReader(self.rows)
        self.last: str | None = None

    def guess(self) -> str:
        """Return the table's name, from its built-in chains or else from its rules."""
        bases = frozenset(n for n, (policy, _) in self.policies.items() if policy is not None)
        text = "".join(rows.text for rows in self.rows.values())
        named = BASE_CHAINS.get(bases)
        return named or ("nat" if _NAT_ONLY.search(text) or _is_of_nat(text) else "filter")

    def mark_incomplete(self) -> None:
        """Mark the chains that may have lost rules."""
        if self.implied and not self.listed:
            for rows in self.rows.values():
                rows.complete = False
            return
        # Rules follow in the order in which the chains are declared, so the chains before the last
        # one with rules are complete, even if they are empty.
        names = list(self.policies)
        for name in names[names.index(self.last) if self.last is not None else 0 :]:
            self.rows[name].complete = False

    def lose(self, number: int, line: str) -> None:
        """Handle a line that is not understood, whose effect on the chains is unknown.

        Text outside of tables may be prose, which has no effect.
        """
        edit = _EDIT.match(line)
        if edit is None and self.implied and not LEADS.search(line):
            return
        if line.startswith(":"):  # of a chain that it declares the policy is not known
            self.damaged = True
            return
        one = self.rows.get(edit[1]) if edit is not None else None
        for rows in self.rows.values() if one is None else (one,):
            rows.lose(number, line, at_start=edit is not None)
        if edit is None:
            # It may have been the declaration of a chain.
            self.damaged = True
            self.lost.append((number, line))

    def lose_everything(self) -> None:
        """Begin each built-in chain with rules that are not understood."""
        for name in self.rows.keys() & BUILT_IN:
            self.rows[name].lose(self.line, f"-A {name}", at_start=True)

    def close(self, name: str, *, complete: bool) -> Table:
        """Return the table as far as it was read; `complete`: its end was read too."""
        for rows in self.rows.values():
            rows.table = name
        chains = {n: Chain(n, self.rows[n], *self.policies[n]) for n in self.policies}
        return Table(self.family, name, chains, complete=complete and not self.damaged)

    def same_as(self, other: Table) -> bool:
        """Return whether `other` has the same chains with the same rows."""
        theirs = {
            n: c.rules.text for n, c in other.chains.items() if isinstance(c.rules, ListedRows)
        }
        return theirs == {n: rows.text for n, rows in self.rows.items()}


def _is_of_nat(text: str) -> bool:
    """Return whether rows name a chain that its program has in the nat table only."""
    from analyzer.model.programs import is_only_in_nat  # few dumps need it

    return any(map(is_only_in_nat, dict.fromkeys(_NAMES.findall(text))))
