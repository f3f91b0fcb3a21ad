"""The rules of other programs: where these are the same, what they leave open is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.kubeproxy.rows.shapes import uncommented
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.iptables.rules import Table as XtTable
from analyzer.model.nft.ruleset import Chain, Table
from analyzer.model.nft.statements import Counter
from analyzer.parsers.rows import RuleRows
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: How chains of kube-proxy and the kubelet begin in iptables, and kube-proxy's table of nft.
_OWN_CHAINS: Final = "KUBE-"
_OWN_TABLE: Final = "kube-proxy"


def of_others(rulesets: Sequence[Rules], family: str) -> tuple[str, ...]:
    """Return the rules of other programs for an IP version, without counters and comments.

    What is the same in both dumps has the same effects, whatever these are.
    """
    return tuple(sorted(_each(rulesets, family)))


def _each(rulesets: Sequence[Rules], family: str) -> Iterator[str]:
    for ruleset in rulesets:
        if isinstance(ruleset, Ruleset):
            if ruleset.family == family:
                yield from (f"{n} {row}" for n, t in ruleset.tables.items() for row in _rows(t))
            continue
        for (of, name), table in ruleset.tables.items():
            if name != _OWN_TABLE and of in {family, "inet"}:
                yield from (f"{of} {name} {told}" for told in _of_nft(table))


def _rows(table: XtTable) -> Iterator[str]:
    # Chains are made when they are looked up, and most are kube-proxy's.
    for name in table.chains:
        if name.startswith(_OWN_CHAINS):
            continue
        rules = table.chains[name].rules
        lines = rules.lines if isinstance(rules, RuleRows) else [each.raw for each in rules]
        rows = uncommented("".join(f"{line}\n" for line in lines))
        # Which flows come to kube-proxy's own chains is in their routes.
        others = (row for row in rows if f" -j {_OWN_CHAINS}" not in row)
        yield from (f"{at} {row}" for at, row in enumerate(others))


def _of_nft(table: Table) -> Iterator[str]:
    for chain in table.chains.values():
        yield from (f"{chain.name} {chain.priority} {told}" for told in _rules(chain))
    for held in table.sets.values():
        yield f"{held.name} {[*map(repr, held.elements)]}"


def _rules(chain: Chain) -> Iterator[str]:
    for at, rule in enumerate(chain.rules):
        yield f"{at} {[each for each in rule.statements if not isinstance(each, Counter)]}"
