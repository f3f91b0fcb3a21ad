"""What rules of nft may change between DNAT and the chains that masquerade."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.kubeproxy.between import ANYTHING, NOTHING, Between
from analyzer.kubeproxy.marks import changed_by
from analyzer.kubeproxy.nft_chains import leads_to, reached_by
from analyzer.model.nft import NftRuleset, Table
from analyzer.model.nft_expressions import Binary, Ct, Expression, Meta, Payload, SetRef, Unknown
from analyzer.model.nft_statements import CtSet, Mangle, MetaSet, Queue, Tproxy, Vmap, Xt
from analyzer.model.packet import ALL_BITS
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Hooks that a packet meets between DNAT and POSTROUTING's nat, and from which priority on.
_BETWEEN: Final = {"prerouting": -100, "forward": None, "output": -100, "postrouting": None}
_SOURCE_NAT: Final = 100
#: Fields of headers that answers rest on.
_ENDS: Final = frozenset({"saddr", "daddr", "sport", "dport"})


def changed_by_all(rulesets: Iterable[Rules], family: str) -> Between:
    """Return what rules of any of `rulesets`, for packets of `family`, may change."""
    found = NOTHING
    for ruleset in rulesets:
        if isinstance(ruleset, NftRuleset):
            found |= _changed_by_nft(ruleset, family)
        elif ruleset.family == family:
            found |= changed_by(ruleset)
    return found


def _changed_by_nft(ruleset: NftRuleset, family: str) -> Between:
    found = NOTHING
    for table in ruleset.tables.values():
        if table.family not in {family, "inet"} or "dormant" in table.flags:
            continue
        if not table.complete or any(chain.is_unplaced for chain in table.chains.values()):
            return ANYTHING  # what may be called in between is not known
        for chain in reached_by(table, _between(table)):
            for rule in chain.rules:
                if any(name not in table.chains for name in leads_to(rule, table)):
                    return ANYTHING  # what it does the dump does not say
                for statement in rule.statements:
                    found |= changed_by_statement(statement, table)
    return found


def _between(table: Table) -> Iterator[str]:
    for chain in table.chains.values():
        if chain.hook not in _BETWEEN or chain.type == "nat":
            continue
        if chain.priority is None:
            yield chain.name  # it may be called there
            continue
        since = _BETWEEN[chain.hook]
        behind_nat = chain.hook == "postrouting" and chain.priority > _SOURCE_NAT
        if (since is None or chain.priority >= since) and not behind_nat:
            yield chain.name


def changed_by_statement(statement: object, table: Table) -> Between:
    """Return what one statement may change."""
    match statement:
        case MetaSet("mark", value):
            return Between(mark=_bits(value, Meta("mark")))
        case CtSet("mark", value):
            return Between(flow_mark=_bits(value, Ct("mark")))
        case Mangle(Payload(_, field)):
            return Between(header=field in _ENDS)
        case Mangle():
            return Between(header=True)
        case Vmap(map=SetRef(name)) if name not in table.sets:
            return ANYTHING
        case Vmap(map=Unknown()) | Queue() | Tproxy() | Unknown() | Xt("target"):
            return ANYTHING
        case _:
            return NOTHING


def _bits(value: Expression, own: Expression) -> int:
    """Return the bits of a mark that may differ where `value`, maybe made of its `own`, is set."""
    match value:
        case Binary("|" | "^", left, int() as bits) if left == own:
            return bits
        case Binary("&", left, int() as kept) if left == own:
            return ALL_BITS & ~kept
        case Binary("^" | "|", Binary() as inner, int() as bits):
            return _bits(inner, own) | bits
        case Binary("&", Binary() as inner, int() as kept):
            return _bits(inner, own) | ALL_BITS & ~kept
        case _:
            return ALL_BITS
