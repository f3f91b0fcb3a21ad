"""Which bits of a mark rules of nft may change between DNAT and the chains that masquerade."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.kubeproxy.marks import bits_that_may_change
from analyzer.kubeproxy.nft_chains import reached_by
from analyzer.model.nft import NftRuleset, Table
from analyzer.model.nft_expressions import Binary, Expression, Meta, Unknown
from analyzer.model.nft_statements import MetaSet, Queue, Tproxy, Xt
from analyzer.model.packet import ALL_BITS
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Hooks that a packet meets between DNAT and POSTROUTING's nat, and from which priority on.
_BETWEEN: Final = {"forward": None, "output": -100, "postrouting": None}
_SOURCE_NAT: Final = 100


def bits_of_all(rulesets: Iterable[Rules], family: str) -> int:
    """Return the bits that rules of any of `rulesets`, for packets of `family`, may change."""
    bits = 0
    for ruleset in rulesets:
        if isinstance(ruleset, NftRuleset):
            bits |= _bits_of_nft(ruleset, family)
        elif ruleset.family == family:
            bits |= bits_that_may_change(ruleset)
    return bits


def _bits_of_nft(ruleset: NftRuleset, family: str) -> int:
    bits = 0
    for table in ruleset.tables.values():
        if table.family in {family, "inet"}:
            for chain in reached_by(table, _between(table)):
                for rule in chain.rules:
                    for statement in rule.statements:
                        bits |= _changed(statement)
    return bits


def _between(table: Table) -> Iterator[str]:
    for chain in table.chains.values():
        if chain.hook not in _BETWEEN or chain.priority is None or chain.type == "nat":
            continue
        since = _BETWEEN[chain.hook]
        before_nat = chain.hook == "postrouting" and chain.priority > _SOURCE_NAT
        if (since is None or chain.priority >= since) and not before_nat:
            yield chain.name


def _changed(statement: object) -> int:
    match statement:
        case MetaSet("mark", value):
            return _bits(value)
        case Queue() | Tproxy() | Unknown() | Xt("target"):
            return ALL_BITS
        case _:
            return 0


def _bits(value: Expression) -> int:
    match value:
        case Binary("|" | "^", Meta("mark"), int() as bits):
            return bits
        case Binary("&", Meta("mark"), int() as kept):
            return ALL_BITS & ~kept
        case Binary("^" | "|", Binary() as inner, int() as bits):
            return _bits(inner) | bits
        case Binary("&", Binary() as inner, int() as kept):
            return _bits(inner) | ALL_BITS & ~kept
        case _:
            return ALL_BITS
