"""Sets that rules update, which are dynamic."""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.model.nft.ruleset import Chain, Set
from analyzer.model.nft.statements import SetUpdate
from analyzer.model.value import replace


def dynamic(sets: Mapping[str, Set], chains: Mapping[str, Chain]) -> dict[str, Set]:
    """Return the sets of a table; those that a rule updates have the flag."""
    rules = (rule for chain in chains.values() for rule in chain.rules)
    updated = {s.set for rule in rules for s in rule.statements if isinstance(s, SetUpdate)}
    return {
        name: replace(held, flags=("dynamic", *held.flags))
        if name in updated and "dynamic" not in held.flags
        else held
        for name, held in sets.items()
    }
