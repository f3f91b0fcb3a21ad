"""``nft list ruleset`` and ``nft list table``, with or without handles.

Theory of operation
===================

`splitting` finds tables and blocks. Sets, maps and the headers of chains are parsed at once, since
they are short; rules and elements are parsed when they are first looked at.

Source: nft(8); src/rule.c, ``table_print``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from analyzer.errors import InputError
from analyzer.model.diagnostics import Diagnostic, Location, partial_warning
from analyzer.model.nft.expressions import Element, Unknown
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import (
    FAMILIES,
    FLAGS,
    HOOKS,
    POLICIES,
    TYPES,
    Chain,
    Flowtable,
    NamedObject,
    NftRuleset,
    Rule,
    Set,
    Table,
)
from analyzer.parsers.nft import definitions, statements
from analyzer.parsers.nft.extension import NotUnderstood
from analyzer.parsers.nft.splitting import BracedBlock, RawTable, split
from analyzer.parsers.nft.splitting import statements as split_statements
from analyzer.parsers.nft.updated import as_dynamic, updated_in_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.parsers.rows import Skim

FORMAT: Final = "nft"
_SNIFF: Final = re.compile(
    r"^[ \t]*+table[ \t]++(?:(?:ip6?|inet|arp|bridge|netdev)[ \t]++)?\S++[ \t]*+\{", re.MULTILINE
)
_BASE: Final = re.compile(
    r"type (\w+) hook (\w+)(?: device (\S+))?(?: devices = \{([^}]*)\})? priority ([^;]+)"
)
#: A chain with statements before its rules.
_HEADED: Final = re.compile(r"(?:[\s;\\]|#.*\n)*+(?:type|policy|comment|devices?) ")
#: The header of a base chain, even if its first word is misspelt.
_HOOKED: Final = re.compile(r"[^\"]* hook \w+[^\"]* priority ")
_HEADS: Final = ("type ", "policy ", "comment ", "devices ", "device ")


def sniff(text: str) -> bool:
    """Return whether `text` has a line that begins an nft table."""
    return _SNIFF.search(text) is not None


def parse(
    text: str,
    file: str,
    table: str | None = None,
    advance: Callable[[int, int | None], None] | None = None,
    skim: Skim | None = None,
) -> NftRuleset:
    """Read a listing of nft; `table`, `advance` and `skim` are for other formats.

    Raises:
        InputError: it contains no table.
        ParseError: braces do not match, or a quote is not closed.
    """
    del table, advance, skim
    found = split(text, file)
    if not found.tables:
        raise InputError(f"{file}: it contains no nft table")
    diagnostics: list[Diagnostic] = []

    def warn(code: str, message: str, line: int) -> None:
        diagnostics.append(partial_warning(code, message, file, line))

    if found.noise:
        more = f" (and {len(found.noise) - 1} more)" if found.noise[1:] else ""
        warn("noise", f"not part of an nft listing; left out{more}", found.noise[0])
    tables: dict[tuple[str, str], Table] = {}
    for raw in found.tables:
        key = raw.family, raw.name
        if key in tables:
            text_of = f"table {raw.family} {raw.name} again; only the first is read"
            warn("two-dumps", text_of, raw.line)
            continue
        if not raw.complete:
            warn("cut-off", f"the dump ends within table {raw.family} {raw.name}", raw.line)
        tables[key] = _TableReader(raw, file, warn).read()
    return NftRuleset(tables=tables, input_format=FORMAT, file=file, diagnostics=tuple(diagnostics))


class _TableReader:
    """Reads the blocks of one table."""

    def __init__(self, raw: RawTable, file: str, warn: Callable[[str, str, int], None]) -> None:
        self._raw = raw
        self._family = raw.family
        self._warn = warn
        self._file = file
        self._of_iptables = statements.is_of_iptables(raw.family, raw.name)
        self._place = f"{raw.family} {raw.name}"
        #: Whether every chain is understood that another one may jump to.
        self._complete = raw.complete

    def read(self) -> Table:
        chains: dict[str, Chain] = {}
        sets: dict[str, Set] = {}
        objects: dict[tuple[str, str], NamedObject] = {}
        flowtables: dict[str, Flowtable] = {}
        updated: list[str] = []
        for block in self._raw.blocks:
            name = block.name
            match block.kind:
                case "chain" if name not in chains:
                    chains[name] = self._chain(block)
                    updated += updated_in_text(block.body)
                case "set" | "map" | "meter":
                    if name in sets:
                        text = f"{block.kind} {name} of table {self._place} may contain anything"
                        self._warn("declared-twice", text, block.line)
                    sets[name] = _unread(block) if name in sets else self._set(block)
                case "flowtable" if name not in flowtables:
                    flowtables[name] = definitions.read_flowtable(
                        name, self._family, _lines(block.body)
                    )
                case "" | "chain" | "flowtable":
                    what = f"{block.kind} {name}".strip()[:60]
                    code = "declared-twice" if block.kind else "unknown-block"
                    self._warn(code, f"{what} of table {self._place} is left out", block.line)
                    self._complete = self._complete and block.kind == "flowtable"
                case kind:
                    objects[kind, name] = self._object(block)
        if self._family not in FAMILIES:
            self._unclear("unknown-family", f"family {self._family}", self._raw.line)
        attributes = self._attributes()
        comment = attributes.get("comment")
        return Table(
            family=self._family,
            name=self._raw.name,
            chains=chains,
            sets=as_dynamic(sets, updated),
            objects=objects,
            flowtables=flowtables,
            flags=tuple(f.strip() for f in attributes.get("flags", "").split(",") if f.strip()),
            comment=None if comment is None else definitions.unquoted(comment),
            complete=self._complete,
        )

    def _attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line, text in self._raw.attributes:
            head, _, rest = text.strip().partition(" ")
            if head == "flags" and not FLAGS.issuperset(f.strip() for f in rest.split(",")):
                self._unclear("unknown-flag", f"flags {rest[:60]}", line)
            elif head not in {"flags", "comment"}:
                self._unclear("unknown-block", text.strip()[:60], line)
            found[head] = rest.strip()
        return found

    def _unclear(self, code: str, what: str, line: int) -> None:
        self._warn(code, f"{what} in table {self._place} is not understood", line)
        self._complete = False

    def _chain(self, block: BracedBlock) -> Chain:
        head: dict[str, Any] = {}
        if _HEADED.match(block.body):
            for number, text in split_statements(block.body):
                if not text.lstrip().startswith(_HEADS):
                    break
                self._head(text.strip(), head, block.line + number)
        elif " hook " in block.body:
            for number, text in split_statements(block.body):
                if _HOOKED.match(text):
                    self._unplaced(text.strip(), head, block.line + number)
        source = block.body, block.line, block.name
        made = Chain(name=block.name, rules=Lazy(source, self._rules, _count), **head)
        if head and head.keys() <= {"policy"} and made.is_unplaced:
            self._warn("unknown-hook", f"chain {block.name} has a policy but no hook", block.line)
        return made

    def _head(self, text: str, head: dict[str, Any], line: int) -> None:
        word, _, rest = text.partition(" ")
        found = _BASE.fullmatch(text)
        if found is not None:
            kind, hook, device, devices, number = found.groups()
            named = [device] if device else (devices or "").split(",")
            head["type"], head["hook"] = kind, hook
            head["policy"] = head.get("policy", "accept")
            head["devices"] = tuple(definitions.unquoted(n) for n in named if n.strip())
            head["priority"] = definitions.priority(number, self._family)
            if head["priority"] is None:
                self._warn("unknown-priority", f"priority {number.strip()} is not known", line)
            if kind not in TYPES or hook not in HOOKS:
                self._warn("unknown-hook", f"not known: type {kind} hook {hook}", line)
        elif word in {"policy", "comment"}:
            head[word] = definitions.unquoted(rest)
            if word == "policy" and head[word] not in POLICIES:
                text = f"policy {head[word]} is not known: it may or may not drop"
                self._warn("unknown-policy", text, line)
        else:
            self._unplaced(text, head, line)

    def _unplaced(self, text: str, head: dict[str, Any], line: int) -> None:
        # It is known to be a base chain all the same.
        _, *words = text.split()
        head.setdefault("type", words[0] if words else "")  # a dump may end behind `type`
        self._warn("unknown-hook", f"not understood: {text[:60]}", line)

    def _rules(self, source: tuple[str, int, str]) -> tuple[Rule, ...]:
        body, first, chain = source
        return tuple(self._rule(text, first + number, chain) for number, text in _rules_of(body))

    def _rule(self, text: str, line: int, chain: str) -> Rule:
        shown = statements.translated(text) if self._of_iptables else text
        found, comment = statements.from_text(shown, self._family)
        return Rule(found, Location(self._file, line, self._place), text, comment, chain)

    def _set(self, block: BracedBlock) -> Set:
        try:
            return definitions.read_set(block.name, self._family, _lines(block.body))
        except NotUnderstood:
            return _unread(block)

    def _object(self, block: BracedBlock) -> NamedObject:
        try:
            return definitions.read_object(block.kind, block.name, self._family, _lines(block.body))
        except NotUnderstood:
            text = (("text", block.body.strip()),)
            return NamedObject(kind=block.kind, name=block.name, properties=text)


def _unread(block: BracedBlock) -> Set:
    """Return a set that may contain anything."""
    unread = (Element(key=Unknown(block.body)),)
    return Set(name=block.name, key=("unknown",), elements=unread)


def _lines(body: str) -> Sequence[str]:
    return [text.strip() for _, text in split_statements(body)]


def _rules_of(body: str) -> list[tuple[int, str]]:
    found = split_statements(body)
    at = 0
    while at < len(found) and found[at][1].lstrip().startswith(_HEADS):
        at += 1
    return found[at:]


def _count(source: tuple[str, int, str]) -> int:
    return len(_rules_of(source[0]))
