"""Which rules exempt packets from conntrack, or choose the zone of their flows."""

from __future__ import annotations

from collections.abc import Callable

from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import ConnectionTracking, NoTrack
from analyzer.semantics.tree import AnyRule, OtherZone, Outcome, Unanswered


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


def sets_zone(rule: AnyRule) -> bool:
    """Return whether a rule chooses the zone in which conntrack keeps a flow."""
    if not isinstance(rule, Rule):
        from analyzer.model.nft.statements import CtSet  # not needed without nft

        return any(isinstance(each, CtSet) and each.key == "zone" for each in rule.statements)
    match rule.target:
        case ConnectionTracking(zone=zone, zone_original=flow, zone_reply=answer):
            return any(each is not None for each in (zone, flow, answer))
        case _:
            return False


def keeping(outcome: Outcome) -> Callable[[AnyRule], bool] | None:
    """Return what tells the rules that keep an answer from its flow; None: none do."""
    match outcome:
        case Unanswered(None):
            return untracks
        case Unanswered(OtherZone()):
            return sets_zone
        case _:
            return None
