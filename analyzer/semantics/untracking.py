"""Which rules exempt packets from conntrack, or choose the zone of their flows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from analyzer.model.iptables.rules import Rule, Ruleset
from analyzer.model.iptables.targets import ConnectionTracking, NoTrack
from analyzer.semantics.iptables.passing import zones_of
from analyzer.semantics.tree import AnyRule, OtherZone, Outcome, Unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.base_chains import Rules


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


def choosing(rulesets: Iterable[Rules], zones: tuple[int, int] | None) -> tuple[AnyRule, ...]:
    """Return the rule that puts flows and answers to them into these zones, if only one does."""
    found = tuple(_choosing(rulesets, zones))
    return found if len(found) == 1 else ()


def _choosing(rulesets: Iterable[Rules], zones: tuple[int, int] | None) -> Iterator[AnyRule]:
    for each in rulesets:
        if isinstance(each, Ruleset):
            raw = each.tables.get("raw")  # where alone the kernel accepts CT
            for rule in (r for chain in raw.chains.values() for r in chain.rules) if raw else ():
                match rule.target:
                    case ConnectionTracking() as target if sets_zone(rule):
                        yield from (rule,) if zones_of(target) == zones else ()
            continue
        from analyzer.model.nft.statements import CtSet  # not needed without nft
        from analyzer.semantics.nft.changes import zones_set

        chains = (chain for table in each.tables.values() for chain in table.chains.values())
        for of_nft in (rule for chain in chains for rule in chain.rules):
            if "zone" in of_nft.raw and any(
                isinstance(s, CtSet)
                and s.key == "zone"
                and zones_set(s.value, s.direction) == zones
                for s in of_nft.statements
            ):
                yield of_nft
