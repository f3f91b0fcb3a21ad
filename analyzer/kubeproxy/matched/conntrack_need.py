"""Whether a rule makes the kernel track connections; without conntrack nat is skipped.

conntrack handles packets of a family while at least one rule that needs it is loaded. A table nat
alone does not need it, nor does a base chain of type nat, nor NOTRACK. kube-proxy always writes
rules that do.

Source: Linux, ``nf_ct_netns_get`` and its callers: net/netfilter/xt_*.c, nft_ct.c, nft_nat.c and
others; seen on Linux 6.18.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from analyzer.kubeproxy.rows.texts import says
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Rule, Ruleset
from analyzer.model.nft import statements as s
from analyzer.model.nft.expressions import Ct
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.nft.ruleset import Rule as NftRule
from analyzer.model.value import fields_of, is_value
from analyzer.parsers.rows import RuleRows
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What is in the text of every iptables rule that needs conntrack.
_SAYING: Final = re.compile(r"-j (?:DNAT|SNAT|MASQUERADE|REDIRECT|CONNMARK|CT)\b|-m (?:state|conn)")
_MATCHES: Final = (m.MatchState, m.MatchConntrack, m.MatchConnmark, m.MatchConnlimit)
_TARGETS: Final = (t.Dnat, t.Snat, t.Masquerade, t.Redirect, t.SetConnmark, t.CopyConnmark)
#: The same for nft, as Python prints its text and its JSON.
_NFT_SAYING: Final = re.compile(r"ct |'ct'|nat|masq|redir|xt[ ']")
_STATEMENTS: Final = (s.Masquerade, s.Redirect, s.CtSet, s.CtCount)
_EXTENSIONS: Final = {
    "match": {"state", "conntrack", "connmark", "connlimit"},
    "target": {"DNAT", "SNAT", "MASQUERADE", "REDIRECT", "CONNMARK"},
}


def is_tracking(rulesets: Iterable[Rules], family: str) -> bool:
    """Return whether some rule certainly makes the kernel track connections of a family."""
    return any(
        any(map(_needs, _of_iptables(each)))
        if isinstance(each, Ruleset)
        else any(_nft_needs(rule, family) for rule in _of_nft(each, family))
        for each in rulesets
        if not isinstance(each, Ruleset) or each.family == family
    )


def _of_iptables(ruleset: Ruleset) -> Iterator[Rule]:
    """Yield the rules that may need it; only few rows have to be parsed for that."""
    for table in ruleset.tables.values():
        if not says(table, _SAYING):
            continue
        for chain in table.chains.values():
            rules = chain.rules
            if not isinstance(rules, RuleRows) or _SAYING.search(rules.text):
                yield from rules


def _of_nft(ruleset: NftRuleset, family: str) -> Iterator[NftRule]:
    for table in ruleset.tables.values():
        if table.family not in {family, "inet"} or "dormant" in table.flags:
            continue
        for chain in table.chains.values():
            rules = chain.rules
            if not isinstance(rules, Lazy) or _NFT_SAYING.search(rules.said):
                yield from rules


def _needs(rule: Rule) -> bool:
    inner = (each.match if isinstance(each, m.MatchNot) else each for each in rule.matches)
    tracks = isinstance(rule.target, t.ConnectionTracking) and not rule.target.no_track
    return (
        tracks or isinstance(rule.target, _TARGETS) or any(isinstance(i, _MATCHES) for i in inner)
    )


def _nft_needs(rule: NftRule, family: str) -> bool:
    for each in rule.statements:
        match each:
            case s.Dnat() | s.Snat():  # in a table of both families it applies to one of them
                if each.family in {None, family}:
                    return True
            case s.Xt(kind, name):
                if name in _EXTENSIONS.get(kind, ()):
                    return True
            case _:
                if isinstance(each, _STATEMENTS) or _reads(each):
                    return True
    return False


def _reads(given: object) -> bool:
    """Return whether a statement contains a ``ct`` expression."""
    if isinstance(given, tuple):
        return any(map(_reads, given))
    fields = fields_of(type(given)) if is_value(given) else ()
    return isinstance(given, Ct) or any(_reads(getattr(given, name)) for name in fields)
