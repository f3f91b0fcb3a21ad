"""What a whole dump holds that is not understood, and which chains are missing."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Final

from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.matches import MatchUnknown
from analyzer.model.rules import Rule, Ruleset, Table
from analyzer.model.targets import Goto, Jump, TargetUnknown
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.xt.matches import MATCHES
from analyzer.parsers.xt.targets import TARGETS

#: Where a word behind -m, -j or -g may name something that is not there.
_NAMED: Final = re.compile(r" -([mjg]) (\S+)")


def survey(ruleset: Ruleset, understood: Container[tuple[str, str]] = ()) -> Iterator[Diagnostic]:
    """Give a diagnostic for each extension that is not read, and each chain that is missing.

    `understood` are chains, each with its table's name before it, which need no second look.
    """
    for table in ruleset.tables.values():
        yield from _survey(ruleset.file, table, understood)


def _survey(
    file: str, table: Table, understood: Container[tuple[str, str]]
) -> Iterator[Diagnostic]:
    unread: dict[str, list[int]] = {}
    missing: dict[str, list[int]] = {}
    for rule in _strange(table, understood):
        line = rule.location.line
        for match in rule.matches:
            if isinstance(match, MatchUnknown):
                unread.setdefault(f"match {_first(match.text)}", []).append(line)
        match rule.target:
            case TargetUnknown(text):
                unread.setdefault(f"target {_first(text)}", []).append(line)
            case Jump(chain) | Goto(chain) if chain not in table.chains:
                missing.setdefault(chain, []).append(line)
            case _:
                pass
    for what, lines in unread.items():
        text = f"{what} is not understood: where it decides, the answer is given as bounds"
        yield _finding(file, lines, "unknown-extension", text)
    for chain, lines in missing.items():
        text = f"chain {chain} of table {table.name} is not in the dump: what it does is unknown"
        yield _finding(file, lines, "missing-chain", text)


def _strange(table: Table, understood: Container[tuple[str, str]]) -> Iterator[Rule]:
    """Give the rules that name something we do not know; the others need not be understood."""
    for name, chain in table.chains.items():
        if (table.name, name) in understood or not isinstance(chain.rules, RuleRows):
            continue
        for number, line in chain.rules.rows:
            if not all(_is_known(option, word, table) for option, word in _NAMED.findall(line)):
                yield chain.rules.understand(number, line)


def _is_known(option: str, word: str, table: Table) -> bool:
    return word in MATCHES if option == "m" else word in table.chains or word in TARGETS


def _first(text: str) -> str:
    """Return the name of an extension out of its text: ``-m set --match-set x src``."""
    words = text.split()
    return words[1] if words[0] in {"-m", "-j"} and words[1:] else text


def _finding(file: str, lines: list[int], code: str, message: str) -> Diagnostic:
    more = f" ({len(lines)} rules)" if lines[1:] else ""
    return Diagnostic(
        severity=Severity.WARNING,
        code=code,
        message=message + more,
        file=file,
        line=lines[0],
        partial=True,
    )
