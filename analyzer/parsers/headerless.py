"""Rows of several tables without headers, as ``iptables-save | grep '^-A'`` leaves them.

iptables-save prints table after table, the built-in chains of each before its own, in the order of
the hooks. So a row of a built-in chain begins another table if a chain of the table's own, or a
later hook, came before it. Which table that is its chains and targets say: the kernel accepts some
in one table only.

Source: iptables-save.c, ``do_output``; Linux, ``.table`` of struct xt_target, and
iptables.c, which refuses DROP in nat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from analyzer.parsers.listed_rows import ListedRows
from analyzer.parsers.open_table import OpenTable
from analyzer.parsers.xt.known import XTABLES_TARGETS

_HOOKS: Final = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
_TARGET: Final = re.compile(r"\s-j (\S+)")
_JUMP: Final = re.compile(r"\s-[jg] (\S+)")
#: Targets by the one table that accepts them.
_ONLY_IN: Final = {
    **dict.fromkeys(("DNAT", "SNAT", "MASQUERADE", "REDIRECT", "NETMAP"), "nat"),
    **dict.fromkeys(("NOTRACK", "CT"), "raw"),
    **dict.fromkeys(("TPROXY", "TTL", "HL", "DSCP", "TOS", "ECN", "CHECKSUM"), "mangle"),
    "REJECT": "filter",
}

#: The rows of one table, by chain: line, text.
_Rows = list[tuple[str, int, str]]


def parted(table: OpenTable, file: str) -> tuple[OpenTable, ...]:
    """Return the tables whose rows are in one without a header; that one if all may be its own.

    Rows that nothing assigns to another table stay in nat, of which some must be. None at all if
    there are rows of several tables that cannot be told apart.
    """
    segments = [part for segment in _segments(_in_order(table)) for part in _consistent(segment)]
    names = [_name_of(segment) for segment in segments]
    if _CONFLICT in names:
        return ()
    if "nat" not in names or {*names} <= {"nat", None}:
        return (table,)
    found: dict[str, OpenTable] = {}
    for name, segment in zip(names, segments, strict=True):
        of = name or "nat"
        if of not in found:
            found[of] = OpenTable(of, table.family, segment[0][1], implied=True)
        for chain, number, line in segment:
            _take(found[of], file, chain, number, line)
    for of, each in found.items():
        if of != "nat":
            _declare_empty(each, file)
    return tuple(found.values())


def _declare_empty(table: OpenTable, file: str) -> None:
    """Declare the chains that rows jump to and that have none: an empty chain prints no row."""
    text = "".join(rows.text for rows in table.rows.values())
    for chain in dict.fromkeys(_JUMP.findall(text)):
        if chain not in table.rows and chain not in XTABLES_TARGETS:
            table.policies[chain] = None, None
            table.rows[chain] = ListedRows(file, table.reader)


def _take(table: OpenTable, file: str, chain: str, number: int, line: str) -> None:
    if chain not in table.rows:
        # No row says it, and it may be DROP; nat has no other than ACCEPT.
        policy = "?" if chain in _HOOKS and table.name != "nat" else None
        table.policies[chain] = policy, None
        table.rows[chain] = ListedRows(file, table.reader)
    table.rows[chain].append(number, line)
    table.last = chain


def _in_order(table: OpenTable) -> _Rows:
    every = [
        (chain, rows.number(at), line)
        for chain, rows in table.rows.items()
        for at, line in enumerate(rows.lines)
    ]
    return sorted(every, key=lambda each: each[1])


def _segments(rows: _Rows) -> Iterator[_Rows]:
    """Yield the rows of each table."""
    segment: _Rows = []
    last = -1
    for each in rows:
        at = _HOOKS.index(each[0]) if each[0] in _HOOKS else len(_HOOKS)
        if at < last:
            yield segment
            segment = []
        segment.append(each)
        last = at
    if segment:
        yield segment


def _consistent(segment: _Rows) -> Sequence[_Rows]:
    """Return rows of two tables apart, where both have rows of the chain that is between them."""
    if _name_of(segment) != _CONFLICT:
        return (segment,)
    for at in range(1, len(segment)):
        parts = segment[:at], segment[at:]
        is_between = segment[at - 1][0] == segment[at][0] and segment[at][0] in _HOOKS
        if is_between and _CONFLICT not in map(_name_of, parts):
            return parts
    return (segment,)


#: Of rows that no one table accepts.
_CONFLICT: Final = ""


def _name_of(segment: _Rows) -> str | None:
    """Return the only table that accepts these rows; None: several do."""
    chains = {chain for chain, _, _ in segment}
    targets = {found[1] for _, _, line in segment if (found := _TARGET.search(line))}
    names = {_ONLY_IN[each] for each in targets & _ONLY_IN.keys()}
    if "FORWARD" in chains or "DROP" in targets:
        if names & {"nat"} or (names & {"raw"} and "FORWARD" in chains):
            return _CONFLICT
        names = names or {_at_hooks(chains)}
    return _CONFLICT if len(names) > 1 else next(iter(names), None)


def _at_hooks(chains: set[str]) -> str:
    """Return the table of chains that nat does not have; in raw and mangle a DROP does the same."""
    if not chains & {"PREROUTING", "POSTROUTING"}:
        return "filter"
    return "mangle" if chains & {"INPUT", "FORWARD", "POSTROUTING"} else "raw"
