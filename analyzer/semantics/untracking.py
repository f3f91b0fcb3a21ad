"""Which rules exempt packets from conntrack."""

from __future__ import annotations

from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import ConnectionTracking, NoTrack
from analyzer.semantics.tree import AnyRule


def untracks(rule: AnyRule) -> bool:
    """Return whether a rule exempts packets from conntrack."""
    if not isinstance(rule, Rule):
        from analyzer.model.nft.statements import Notrack  # not needed without nft

        return any(isinstance(each, Notrack) for each in rule.statements)
    match rule.target:
        case NoTrack() | ConnectionTracking(no_track=True):
            return True
        case _:
            return False
