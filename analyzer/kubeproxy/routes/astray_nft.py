"""What nft rules do to flows that nat sends to no endpoint."""

from __future__ import annotations

from analyzer.kubeproxy import names
from analyzer.model.nft.expressions import Accept, Return, SetRef
from analyzer.model.nft.ruleset import Rule
from analyzer.model.nft.statements import Vmap


def lets_go(rule: Rule) -> bool:
    """Return whether later rules are not evaluated for a packet that the rule matches."""
    return any(isinstance(each, Accept | Return) for each in rule.statements)


def leads_to_service(rule: Rule) -> bool:
    """Return whether a rule looks up the chain of a Service."""
    maps = (each.map for each in rule.statements if isinstance(each, Vmap))
    return any(isinstance(m, SetRef) and m.name in names.NFT_SERVICE_MAPS for m in maps)
