"""``nft -j list ruleset``.

Theory of operation
===================

`json` makes the objects, which are sorted into tables and chains here. Rules and elements are
parsed when they are first looked at.

Source: libnftables-json(5); src/json.c.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from analyzer.errors import InputError, ParseError
from analyzer.model.diagnostics import Diagnostic, Location, partial_warning
from analyzer.model.nft.expressions import Element, Unknown
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import (
    FAMILIES,
    FLAGS,
    HOOKS,
    POLICIES,
    Chain,
    Flowtable,
    NamedObject,
    NftRuleset,
    Rule,
    Set,
    Table,
)
from analyzer.parsers.nft import elements, statements
from analyzer.parsers.nft.definitions_json import (
    OBJECTS,
    read_chain,
    read_flowtable,
    read_object,
    read_set,
)
from analyzer.parsers.nft.extension import NotUnderstood
from analyzer.parsers.nft.json_values import mapping, optional_string, string, strings
from analyzer.parsers.nft.updated import as_dynamic, updated_in_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.parsers.rows import Skim

FORMAT: Final = "nft-json"
_SNIFF: Final = re.compile(r'\s*\{\s*"nftables"\s*:')
#: Rules of one chain: the number of each in the dump, and its object.
_Numbered = tuple[int, Mapping[str, "Any"]]


def sniff(text: str) -> bool:
    """Return whether `text` begins like output of ``nft -j``."""
    return _SNIFF.match(text) is not None


def parse(
    text: str,
    file: str,
    table: str | None = None,
    advance: Callable[[int, int | None], None] | None = None,
    skim: Skim | None = None,
) -> NftRuleset:
    """Read a ruleset of ``nft -j``; `table`, `advance` and `skim` are for other formats.

    Raises:
        InputError: it contains no ruleset, or an object without the table it belongs to.
        ParseError: it is not JSON.
    """
    del table, advance, skim
    given = _loaded(text, file)
    objects = given.get("nftables") if isinstance(given, dict) else None
    if not isinstance(objects, list):
        raise InputError(f"{file}: it contains no ruleset of `nft -j list ruleset`")
    return _RulesetReader(file).read(objects)


def _loaded(text: str, file: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        start = text.rfind("\n", 0, error.pos) + 1
        end = text.find("\n", error.pos)
        column = error.pos - start
        raise ParseError(
            f"not JSON: {error.msg}",
            location=Location(file, error.lineno),
            line=text[start : len(text) if end < 0 else end],
            span=(column, column + 1),
        ) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, endless brackets
        raise InputError(f"{file}: not JSON as nft prints it") from None


class _RulesetReader:
    """Sorts the objects of a ruleset."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._tables: dict[tuple[str, str], dict[str, Any]] = {}
        self._rules: dict[tuple[str, str, str], list[_Numbered]] = {}
        self._diagnostics: list[Diagnostic] = []
        self._version: str | None = None
        #: Sets about which another object says more, by family, table and name.
        self._changed: dict[tuple[str, str, str], Mapping[str, Any]] = {}

    def read(self, objects: list[Any]) -> NftRuleset:
        for number, each in enumerate(objects, 1):
            try:
                self._object(each, number)
            except NotUnderstood as error:
                raise InputError(
                    f"{self._file}: object {number} of the ruleset is not nft's: {str(error)[:60]}"
                ) from None
        if not self._tables:
            raise InputError(f"{self._file}: it contains no nft table")
        for (family, table, chain), rules in self._rules.items():
            held = self._tables[family, table]
            if chain not in held["chains"]:
                text = f"chain {chain} of table {family} {table} is not declared"
                self._warn("undeclared-chain", text, rules[0][0])
                held["complete"] = False
        for (family, table, name), body in self._changed.items():
            self._tables[family, table]["sets"][name] = _unread(name, body)
        for place, updated in self._updated().items():
            self._tables[place]["sets"] = as_dynamic(self._tables[place]["sets"], updated)
        tables = {key: Table(**held) for key, held in self._tables.items()}
        return NftRuleset(
            tables=tables,
            input_format=FORMAT,
            file=self._file,
            version=self._version,
            diagnostics=tuple(self._diagnostics),
        )

    def _updated(self) -> Mapping[tuple[str, str], list[str]]:
        """Return the names of the sets that rules update, by table."""
        found: dict[tuple[str, str], list[str]] = {}
        for (family, table, _), rules in self._rules.items():
            for _, body in rules:
                for name in updated_in_json(body.get("expr")):
                    found.setdefault((family, table), []).append(name)
        return found

    def _object(self, given: object, number: int) -> None:
        held = mapping(given)
        if len(held) != 1:
            raise NotUnderstood(given)
        ((kind, body),) = held.items()
        body = mapping(body)
        if kind == "metainfo":
            self._version = optional_string(body.get("version"))
            return
        family, name = string(body.get("family")), string(body.get("name", ""))
        if kind == "table":
            self._tables.setdefault((family, name), _empty(family, name, body))
            if family not in FAMILIES:
                self._warn("unknown-family", f"family {family} is not known", number)
                self._tables[family, name]["complete"] = False
            if not FLAGS.issuperset(self._tables[family, name]["flags"]):
                # Source: nftables 1.0.6, src/json.c, ``table_print_json``.
                text = f"flags of table {family} {name} not known: nft prints only its name"
                self._warn("unknown-flag", text, number)
                self._tables[family, name]["complete"] = False
            return
        key = family, string(body.get("table"))
        table = self._tables.get(key)
        if table is None:
            raise NotUnderstood(f"no table {' '.join(key)} before its {kind}")
        if kind == "rule":
            place = *key, string(body.get("chain"))
            self._rules_of(place).append((number, body))
        elif kind == "chain":
            if name in table["chains"]:
                table["complete"] = False
                text = f"chain {name} of table {' '.join(key)} is declared twice"
                self._warn("declared-twice", text, number)
            table["chains"][name] = read_chain(body, self._lazy_rules((*key, name)))
            self._judge(table["chains"][name], number)
        elif kind in {"set", "map"}:
            if name in table["sets"]:
                self._changed[*key, name] = body
                text = f"{kind} {name} of table {' '.join(key)} may contain anything"
                self._warn("declared-twice", text, number)
            table["sets"][name] = self._set(name, family, body)
        elif kind == "flowtable":
            table["flowtables"][name] = read_flowtable(body)
        elif kind in OBJECTS:
            table["objects"][kind, name] = read_object(kind, family, body)
        else:
            self._warn("unknown-object", f"{kind} is not understood", number)
            if kind == "element":
                self._changed[*key, name] = body
            else:
                table["complete"] = False

    def _judge(self, chain: Chain, number: int) -> None:
        if chain.is_unplaced and chain.hook in HOOKS and chain.priority is None:
            self._warn("unknown-priority", f"chain {chain.name} has no priority", number)
        elif chain.is_unplaced:
            text = f"hook of chain {chain.name} not known"
            self._warn("unknown-hook", text, number)
        if chain.policy not in {None, *POLICIES}:
            text = f"policy {chain.policy} is not known: it may or may not drop"
            self._warn("unknown-policy", text, number)

    def _rules_of(self, place: tuple[str, str, str]) -> list[_Numbered]:
        return self._rules.setdefault(place, [])

    def _lazy_rules(self, place: tuple[str, str, str]) -> Lazy[Rule]:
        family, table, chain = place
        where = f"{family} {table}"

        def make(given: list[_Numbered]) -> tuple[Rule, ...]:
            return tuple(self._rule(number, body, where, chain) for number, body in given)

        return Lazy(self._rules_of(place), make, len)

    def _rule(self, number: int, body: Mapping[str, Any], where: str, chain: str) -> Rule:
        found = statements.from_json(body.get("expr"), where.partition(" ")[0])
        comment = body.get("comment")
        return Rule(
            found,
            Location(self._file, number, where),
            elements.dumped(body.get("expr")),
            comment if isinstance(comment, str) else None,
            chain,
        )

    def _set(self, name: str, family: str, body: Mapping[str, Any]) -> Set:
        try:
            return read_set(name, family, body)
        except NotUnderstood:
            return _unread(name, body)

    def _warn(self, code: str, message: str, number: int) -> None:
        self._diagnostics.append(partial_warning(code, f"object {number}, {message}", self._file))


def _unread(name: str, body: Mapping[str, Any]) -> Set:
    """Return a set that may contain anything."""
    unread = (Element(key=Unknown(elements.dumped(body))),)
    return Set(name=name, key=("unknown",), elements=unread)


def _empty(family: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    chains: dict[str, Chain] = {}
    sets: dict[str, Set] = {}
    objects: dict[tuple[str, str], NamedObject] = {}
    flowtables: dict[str, Flowtable] = {}
    return {
        "family": family,
        "name": name,
        "chains": chains,
        "sets": sets,
        "objects": objects,
        "flowtables": flowtables,
        "flags": strings(body.get("flags")),
        "comment": optional_string(body.get("comment")),
    }
