"""Which mark bits any iptables rule on the node matches on.

A bit that a rule sets and no other rule matches on makes no difference to a flow, so that flows
need not be distinguished by it. A mark that is saved or restored is copied bit by bit, so a bit
makes a difference only if some rule matches on the same bit.

Source: Linux, net/netfilter/xt_connmark.c, ``connmark_tg_shift``; what shifts a mark is not read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from analyzer.kubeproxy.rows.texts import other_rules, read_rows_of
from analyzer.model.iptables.matches import MatchConnmark, MatchMark, MatchNot
from analyzer.model.iptables.rules import Rule, Ruleset
from analyzer.model.packet import ALL_BITS
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: In rows of iptables-save: a mark that is matched on.
_IN_ROWS: Final = re.compile(r" --mark (\S+)")


def asked_bits(rulesets: Iterable[Rules], without: Collection[str] = ()) -> int:
    """Return the bits of packets' and flows' marks that rules of `rulesets` match on.

    Tables of iptables with a name in `without` are left out.
    """
    bits = 0
    for ruleset in rulesets:
        if isinstance(ruleset, Ruleset):
            if any("mark" in each.kinds for each in (ruleset.ipsets or {}).values()):
                return ALL_BITS
            for table in (t for t in ruleset.tables.values() if t.name not in without):
                bits |= _of_text(read_rows_of(table))
                for rule in other_rules(table):
                    bits |= _of_rule(rule)
        else:
            from analyzer.kubeproxy.matched import nft as asked_nft  # not needed without nft

            bits |= asked_nft.asked_bits(ruleset)
    return bits


def _of_text(rows: str) -> int:
    bits = 0
    for mark in set(_IN_ROWS.findall(rows)):
        value, _, mask = mark.partition("/")
        try:
            bits |= int(mask or "0xffffffff", 0) | int(value, 0)
        except ValueError:  # which bits is not known
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
