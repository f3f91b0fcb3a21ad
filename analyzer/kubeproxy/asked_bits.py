"""Which mark bits any iptables rule on the node matches on.

What a rule sets that no other matches on makes no difference to a flow, so that walks need not
tell apart the flows that it sets it on. A mark that is saved or restored is copied bit by bit, so
that each bit makes a difference only where some rule matches on the same one.

Source: Linux, net/netfilter/xt_connmark.c, ``connmark_tg_shift``; what shifts a mark is not read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from analyzer.model.matches import MatchConnmark, MatchMark, MatchNot
from analyzer.model.packet import ALL_BITS
from analyzer.model.rules import Rule, Ruleset, Table
from analyzer.parsers.rows import Chains, RuleRows
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What rows of iptables-save say of marks that are matched on.
_IN_ROWS: Final = re.compile(r" --mark (\S+)")


def asked_bits(rulesets: Iterable[Rules], without: Collection[str] = ()) -> int:
    """Return the bits of packets' and flows' marks that rules of `rulesets` match on.

    Tables of iptables of some names are left out.
    """
    bits = 0
    for ruleset in rulesets:
        if isinstance(ruleset, Ruleset):
            if any("mark" in each.kinds for each in (ruleset.ipsets or {}).values()):
                return ALL_BITS
            for table in (t for t in ruleset.tables.values() if t.name not in without):
                bits |= _of_text(text_of(table))
                for rule in _other_rules(table):
                    bits |= _of_rule(rule)
        else:
            from analyzer.kubeproxy import asked_nft  # not for nodes without nft

            bits |= asked_nft.asked_bits(ruleset)
    return bits


def text_of(table: Table) -> str:
    """Return the rows of all chains of a table; of some that were made up the rows are not."""
    if isinstance(table.chains, Chains):
        block = table.chains.block
        return block.text[slice(*block.span)]
    rows = [chain.rules for chain in table.chains.values() if isinstance(chain.rules, RuleRows)]
    return "".join(each.text for each in rows)


def says(table: Table, pattern: re.Pattern[str]) -> bool:
    """Tell whether the rows of all chains of a table say something, without a copy of them."""
    if isinstance(table.chains, Chains):
        block = table.chains.block
        return pattern.search(block.text, *block.span) is not None
    return pattern.search(rows_of(table)) is not None


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
        except ValueError:  # nobody knows which
            return ALL_BITS
    return bits


def _of_rule(rule: Rule) -> int:
    bits = 0
    for match in rule.matches:
        match match:
            case MatchMark(mark) | MatchNot(MatchMark(mark)):
                bits |= mark.mask | mark.value
            case MatchConnmark(mark) | MatchNot(MatchConnmark(mark)):
                bits |= mark.mask | mark.value
            case _:
                pass
    return bits
