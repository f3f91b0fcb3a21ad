"""The rules to be loaded, each understood, and the check that the kernel holds exactly these.

Theory of operation
===================

No rule is loaded that is not understood: it could have an option that makes iptables run a program.
Nearly all of 100,000 rules have a few shapes, which differ only in numbers, addresses, quoted
comments and the chains they jump to. One rule of each shape is parsed and rendered again; if that
gives the same text, all rules of the shape are taken as they are.

What the kernel holds is compared as text, and only rules that differ are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from analyzer.model.iptables.matches import MatchUnknown
from analyzer.model.iptables.rules import Chain, Rule, Ruleset, Table
from analyzer.model.iptables.targets import Dnat, Goto, Jump, TargetUnknown
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.xt.rule import render_rule
from netns_lab.backend import SocketAddress
from netns_lab.errors import LabError

#: A rule's counters, before it.
_COUNTERS: Final = re.compile(r"\[\d+:\d+\] ")
_HEAD: Final = re.compile(r"-A \S+ ?")
#: What varies between rules of a shape: quoted text without escapes, and words that begin with a
#: digit and consist of hexadecimal digits and the punctuation of addresses, ranges and masks.
_VARIABLE: Final = re.compile(r'(?<= )(?:"[^"\\]*"|[0-9][0-9a-fx.:/-]*)(?=$| )')
_JUMP: Final = re.compile(r"(?<= )-j (\S+)$")
#: Rules that name something that must exist first; each of them is parsed.
_SPECIAL: Final = re.compile(r"-m (?:set|nfacct) |-j SET ")
#: What a rule jumps to: a chain, or a target.
_LEADS: Final = re.compile(r" -[jg] (\S+)")
_ENDS: Final = re.compile(r" -j (?:DROP|REJECT)\b")
_TO: Final = re.compile(r"-j DNAT --to-destination (?:(\d+(?:\.\d+){3})|\[([0-9a-f:]+)\]):(\d+)$")


class WantedRules:
    """The rules of one dump, as text to restore.

    With `lenient`, a rule that is not understood is left out, and listed in `left_out`.

    Attributes:
        rows: for each table and chain, the rules as iptables-save prints them.
        special: rules that name ipsets or nfacct objects, which must be created first.
        destinations: where each DNAT rule sends flows, by chain and its number there from 0;
            None if not to a single address and port.
        missing: chains that rules jump to and the dump lacks, by table; they are created empty.
        left_out: rules that are not loaded, and why.

    Raises:
        LabError: a rule is not understood, and `lenient` is not set.
    """

    def __init__(self, ruleset: Ruleset, *, lenient: bool = False) -> None:
        self.ruleset = ruleset
        self._lenient = lenient
        self.missing: dict[str, list[str]] = {}
        self.left_out: list[tuple[Rule, str]] = []
        #: The index in the dump of each loaded rule, for chains of which some rules were left out.
        self._kept: dict[tuple[str, str], list[int]] = {}
        self.rows: dict[tuple[str, str], list[str]] = {}
        self.special: list[Rule] = []
        self.destinations: dict[tuple[str, int], SocketAddress | None] = {}
        self._as_they_stand: dict[str, bool] = {}
        for table in ruleset.tables.values():
            for chain in table.chains.values():
                place = table.name, chain.name
                kept = dict(self._chain(chain, table.chains))
                self.rows[place] = list(kept.values())
                if len(kept) < len(chain.rules):
                    self._kept[place] = list(kept)
            self._find_missing(table)
        self._note_destinations()

    @property
    def text(self) -> str:
        """All tables, as iptables-restore reads them."""
        lines: list[str] = []
        for table in self.ruleset.tables.values():
            lines.append(f"*{table.name}")
            lines += [f":{c.name} {c.policy or '-'} [0:0]" for c in table.chains.values()]
            lines += [f":{name} - [0:0]" for name in self.missing.get(table.name, ())]
            for chain in table.chains.values():
                lines += self.rows[table.name, chain.name]
            lines.append("COMMIT")
        return "\n".join(lines) + "\n"

    def rule(self, place: tuple[str, str], at: int) -> Rule:
        """Return the rule of a chain, by its number among the loaded ones, from 0."""
        table, chain = place
        kept = self._kept.get(place)
        rule: Rule = (
            self.ruleset.tables[table].chains[chain].rules[at if kept is None else kept[at]]
        )
        return rule

    def leave_out(self, line: int, why: str) -> bool:
        """Leave out the rule in a line of `text`, from 1; return whether there is one."""
        at = 0
        for table in self.ruleset.tables.values():
            at += 1 + len(table.chains) + len(self.missing.get(table.name, ()))
            for chain in table.chains:
                rows = self.rows[place := (table.name, chain)]
                if at < line <= at + len(rows):
                    number = line - at - 1
                    self.left_out.append((self.rule(place, number), why))
                    kept = self._kept.setdefault(place, list(range(len(rows))))
                    del rows[number], kept[number]
                    self._note_destinations()
                    return True
                at += len(rows)
            at += 1
        return False

    def _find_missing(self, table: Table) -> None:
        """Find chains that rules jump to but that are missing, where a restore would fail."""
        leads: dict[str, bool] = {}  # of names behind -j and -g: to a chain, or a target
        for chain in table.chains.values():
            for at, row in enumerate(self.rows[table.name, chain.name]):
                jump = _LEADS.search(row)
                if jump is None or jump[1] in table.chains or jump[1] in leads:
                    continue
                target = self.rule((table.name, chain.name), at).target
                leads[jump[1]] = isinstance(target, (Jump, Goto))
        if missing := [name for name, is_chain in leads.items() if is_chain]:
            self.missing[table.name] = missing

    def _chain(self, chain: Chain, chains: Container[str]) -> Iterator[tuple[int, str]]:
        for at, line in enumerate(_lines(chain)):
            # A comment may look like anything, but no shape contains a newline.
            shape = _shape(line, chains) if not _SPECIAL.search(line) else ""
            if shape and self._as_they_stand.get(shape):
                yield at, line
                continue
            rule = chain.rules[at]
            if unread := _not_understood(rule):
                if not self._lenient:
                    raise LabError(
                        f"{rule.location}: the lab loads only rules that it understands, and not "
                        f"{unread!r}; --lenient leaves such rules out, and names them"
                    )
                self.left_out.append((rule, f"{unread!r} is not understood"))
                continue
            rendered = render_rule(chain.name, rule)
            self._as_they_stand[shape] = rendered == line
            if not shape:
                self.special.append(rule)
            yield at, rendered

    def endings(self) -> dict[str, dict[tuple[str, int], str]]:
        """Return the rules that drop or reject, by table: chain, number there from 0, and text.

        A policy that drops is one too, behind the last rule of its chain.
        """
        found: dict[str, dict[tuple[str, int], str]] = {}
        for (table, chain), rows in self.rows.items():
            for at, row in enumerate(rows):
                if _ENDS.search(row):
                    found.setdefault(table, {})[chain, at] = row
            if self.ruleset.tables[table].chains[chain].policy == "DROP":
                found.setdefault(table, {})[chain, len(rows)] = f"-P {chain} DROP"
        return found

    def _note_destinations(self) -> None:
        self.destinations = {}
        for (table, chain), rows in self.rows.items():
            for at, row in enumerate(rows if table == "nat" else ()):
                if "-j DNAT " not in row:
                    continue
                found = _TO.search(row)
                if found is not None:
                    address = IPv4Address(found[1]) if found[1] else IPv6Address(found[2])
                    self.destinations[chain, at] = int(address), int(found[3])
                elif isinstance(target := self.rule((table, chain), at).target, Dnat):
                    self.destinations[chain, at] = _sockaddr(target)


def _sockaddr(target: Dnat) -> SocketAddress | None:
    address, port = target.to.first_address, target.to.first_port
    return None if address is None or port is None else (int(address), port)


def _lines(chain: Chain) -> Sequence[str]:
    """Return the rules of a chain without their counters."""
    rules = chain.rules
    if isinstance(rules, RuleRows) and rules.complete:
        return [
            _COUNTERS.sub("", line, count=1) if line[0] == "[" else line for line in rules.lines
        ]
    return [render_rule(chain.name, rule) for rule in rules]


def _shape(line: str, chains: Container[str]) -> str:
    """Return a rule's text without what varies between rules of one shape."""
    shape = _HEAD.sub("", _VARIABLE.sub("0", line), count=1)
    jump = _JUMP.search(shape)
    if jump is not None and jump[1] in chains:
        return shape[: jump.start()] + "-j 0"
    return shape


def _not_understood(rule: Rule) -> str:
    """Return the first part of a rule that is not understood; empty if there is none."""
    unread = [m.text for m in rule.matches if isinstance(m, MatchUnknown)]
    if isinstance(rule.target, TargetUnknown):
        unread.append(rule.target.text)
    return unread[0] if unread else ""


def check_same(wanted: WantedRules, saved: Ruleset) -> None:
    """Check that the kernel holds what was wanted.

    Raises:
        LabError: a chain differs.
    """
    for (table, name), rows in wanted.rows.items():
        held = saved.tables.get(table)
        loaded = held.chains.get(name) if held is not None else None
        lines = _lines(loaded) if loaded is not None else []
        if list(lines) == rows:
            continue
        differ = len(lines) != len(rows) or loaded is None
        if differ or not all(
            _is_same(wanted.rule((table, name), at), loaded.rules[at])
            for at, (line, row) in enumerate(zip(lines, rows, strict=True))
            if line != row and loaded is not None
        ):
            raise LabError(
                f"chain {name} of table {table} is not the same once it is loaded; "
                "is this iptables older or newer than the one that wrote the dump?"
            )


def _is_same(wanted: Rule, loaded: Rule) -> bool:
    return (wanted.matches, wanted.target) == (loaded.matches, loaded.target)
