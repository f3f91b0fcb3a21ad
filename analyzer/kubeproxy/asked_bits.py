"""Which bits of marks any rule of a node matches on.

What a rule sets that no other matches on makes no difference to a flow, so that walks need not
tell apart the flows that it sets it on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from analyzer.model.matches import MatchConnmark, MatchMark, MatchNot
from analyzer.model.nft import Chain, NftRuleset
from analyzer.model.nft import Rule as NftRule
from analyzer.model.nft_expressions import Binary, Ct, Expression, Meta
from analyzer.model.nft_statements import CtSet, Match, MetaSet, Statement
from analyzer.model.packet import ALL_BITS
from analyzer.model.rules import Rule, Ruleset, Table
from analyzer.model.targets import CopyConnmark
from analyzer.parsers.nft.lazy import Lazy
from analyzer.parsers.rows import Chains, RuleRows
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What rows of iptables-save say of marks that are matched on, or that are copied.
_IN_ROWS: Final = re.compile(r" --(?:mark (\S+)|(?:save|restore)-mark\b)")


def asked_bits(rulesets: Iterable[Rules], without: Collection[str] = ()) -> int:
    """Return the bits of packets' and flows' marks that rules of `rulesets` match on.

    Tables of iptables of some names are left out.
    """
    bits = 0
    for ruleset in rulesets:
        if isinstance(ruleset, Ruleset):
            for table in (t for t in ruleset.tables.values() if t.name not in without):
                bits |= _of_text(text_of(table))
                for rule in _other_rules(table):
                    bits |= _of_rule(rule)
        else:
            bits |= _of_nft(ruleset)
    return bits


def text_of(table: Table) -> str:
    """Return the rows of all chains of a table; of some that were made up the rows are not."""
    if isinstance(table.chains, Chains):
        block = table.chains.block
        return block.text[slice(*block.span)]
    rows = [chain.rules for chain in table.chains.values() if isinstance(chain.rules, RuleRows)]
    return "".join(each.text for each in rows)


def rows_of(table: Table) -> str:
    """Return the rows of all chains of a table, each on a line, of those that were mended too."""
    return text_of(table) + "".join(f"{rule.raw}\n" for rule in _other_rules(table))


def _other_rules(table: Table) -> Iterator[Rule]:
    """Give the rules that are no rows."""
    if not isinstance(table.chains, Chains):
        for chain in table.chains.values():
            if not isinstance(chain.rules, RuleRows):
                yield from chain.rules


def _of_text(rows: str) -> int:
    bits = 0
    for mark in set(_IN_ROWS.findall(rows)):
        value, _, mask = mark.partition("/")
        try:
            bits |= int(mask or "0xffffffff", 0) | int(value, 0)
        except ValueError:  # it is copied, so that other rules may match on what becomes of it
            return ALL_BITS
    return bits


def _of_rule(rule: Rule) -> int:
    bits = ALL_BITS if isinstance(rule.target, CopyConnmark) else 0
    for match in rule.matches:
        match match:
            case MatchMark(mark) | MatchNot(MatchMark(mark)):
                bits |= mark.mask | mark.value
            case MatchConnmark(mark) | MatchNot(MatchConnmark(mark)):
                bits |= mark.mask | mark.value
            case _:
                pass
    return bits


def _of_nft(ruleset: NftRuleset) -> int:
    bits = 0
    for chain in saying(ruleset, "mark"):
        for rule in chain.rules:
            bits |= bits_of_rule(rule)
    return bits


def saying(ruleset: NftRuleset, *words: str) -> Iterator[Chain]:
    """Give the chains that may have some word; few do, and to understand the others takes long."""
    for table in ruleset.tables.values():
        for chain in table.chains.values():
            source = repr(chain.rules.source) if isinstance(chain.rules, Lazy) else None
            if source is None or any(word in source for word in words):
                yield chain


def bits_of_rule(rule: NftRule) -> int:
    """Return the bits of marks that a rule of nft matches on."""
    bits = 0
    for statement in rule.statements if "mark" in rule.raw else ():
        bits |= _of_statement(statement)
    return bits


def _of_statement(statement: Statement) -> int:
    match statement:
        case Match(_, Binary("&", Meta("mark") | Ct("mark"), int() as mask), int()):
            return mask
        case MetaSet("mark", operand) if _is_changed(operand, Meta("mark")):
            return 0
        case CtSet("mark", operand) if _is_changed(operand, Ct("mark")):
            return 0
        case _:
            return ALL_BITS if "mark" in repr(statement) else 0


def _is_changed(given: Expression, mark: Expression) -> bool:
    """Tell whether an operand is a constant, or the mark itself with some bits changed."""
    match given:
        case int():
            return True
        case Binary("&" | "|" | "^", left, int()):
            return left == mark or (isinstance(left, Binary) and _is_changed(left, mark))
        case _:
            return False
