"""What happens to packets after nat: which get another source address, and which are dropped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from analyzer.model.addresses import IPV6
from analyzer.model.endings import UNKNOWN_END, Ending, Endings, EndKind, any_of, summed
from analyzer.model.intervals import Intervals, common_of, everything, meet, without
from analyzer.model.intervals import holds as is_in
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Drop, Reject
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value
from analyzer.semantics.parts import MatchedSources, Parts, of_all
from analyzer.semantics.shares import Shares, shares_by_source
from analyzer.semantics.tree import (
    AnyRule,
    Delivered,
    Leaf,
    OtherZone,
    OwnSource,
    PolicyDrop,
    Tree,
    Unanswered,
    every_leaf,
)
from analyzer.semantics.untracking import sets_zone, untracks


@value
class Onward:
    """What happens to packets after nat.

    Attributes:
        masquerade: whether those that are not lost get another source address.
        lost: the share of them that is lost, and how.
    """

    masquerade: Ternary
    lost: Endings = ()

    @property
    def is_certain(self) -> bool:
        """Whether more information about the packets would change nothing."""
        if any(not bounds.is_exact for _, bounds in self.lost):
            return False
        all_lost = any(bounds.lower == ALWAYS for _, bounds in self.lost)
        return all_lost or self.masquerade is not Ternary.UNKNOWN


#: What happens to packets by their source, and the matches on it that make a difference.
OnwardBySource: TypeAlias = tuple[Parts[Onward], MatchedSources]

_APPENDED: Final = r"(?:^|\s)-[AI]\s+(\S+)"
#: The result for unknown packets.
UNKNOWN: Final = Onward(Ternary.UNKNOWN, ((UNKNOWN_END, Bounds(NEVER, ALWAYS)),))
#: How a flow ends that its sender gets back with its own address as the source.
OWN_SOURCE: Final = Ending(kind=EndKind.UNANSWERED, how="not masqueraded")
#: The same for packets from all sources.
ALL_UNKNOWN: Final[OnwardBySource] = (of_all(UNKNOWN), frozenset())


def onward(tree: Tree, sent: Packet) -> Parts[Onward]:
    """Return what happens to packets with this tree, which had been `sent` to a destination."""

    def end_of(leaf: Leaf) -> Ending | bool | None:
        """Return how a packet is lost, or whether it has another source address."""
        ended = ending_of(leaf)
        if ended is None and not _goes_on(leaf.packet, sent):
            return UNKNOWN_END  # another rule has set another address or port
        return leaf.packet.masqueraded if ended is None else ended

    return tuple([(where, _told(each)) for where, each in shares_by_source(tree, end_of)])


def spares_all(tree: Tree, sent: Packet) -> bool:
    """Return whether all packets with this tree certainly reach the destination they go to."""
    return all(
        isinstance(leaf.outcome, Delivered) and _goes_on(leaf.packet, sent)
        for leaf in every_leaf(tree)
    )


def _goes_on(packet: Packet, sent: Packet) -> bool:
    """Return whether a packet's destination is still the one it was sent to."""
    return (packet.destination, packet.destination_port) == (
        sent.destination,
        sent.destination_port,
    ) and (packet.destinations is None) is (sent.destinations is None)


def asked_of_others(told: OnwardBySource, address: int) -> MatchedSources:
    """Return the matches on sources of flows to an address, except for that on the address itself.

    It is kept if flows back to the address itself are lost in another way than those of others:
    the sources that no other match distinguishes from it.
    """
    parts, asked = told
    own = ((address, address),)
    if own not in asked:
        return asked
    others = asked - {own}
    alike: Intervals = (everything(IPV6),)  # no address of IPv4 is beyond
    for each in others:
        alike = common_of(alike, each) if is_in(each, address) else without(alike, each)
    lost = {held.lost for where, held in parts if where is None or meet(alike, where)}
    return asked if len(lost) > 1 else others


def one_of(given: Iterable[Onward]) -> Onward:
    """Return what holds if one of several results applies, but it is not known which."""
    every = [*given]
    if len(set(map(id, every))) == 1:  # most often; to compare them takes much longer
        return every[0]
    every = [*dict.fromkeys(every)]
    if len(every) == 1:
        return every[0]
    answers = {each.masquerade for each in every}
    masquerade = answers.pop() if len(answers) == 1 else Ternary.UNKNOWN
    return Onward(masquerade, any_of(each.lost for each in every))


def _told(found: Shares[Ending | bool | None]) -> Onward:
    lost = [
        (k, Bounds(NEVER, b.upper) if k == UNKNOWN_END else b)
        for k, b in found.items()
        if isinstance(k, Ending) and b.upper
    ]
    passed = {k for k, b in found.items() if not isinstance(k, Ending) and b.upper}
    if found.unresolved:
        lost.append((UNKNOWN_END, Bounds(NEVER, found.unresolved)))
        passed.add(None)
    # If none of them is lost for certain, the other packets decide.
    masquerade = Ternary.UNKNOWN
    if passed in ({True}, {False}):
        masquerade = Ternary.of(True in passed)
    return Onward(masquerade, summed(lost))


def ending_of(leaf: Leaf) -> Ending | None:
    """Return how a packet is lost; None if it is not, or if that is not known."""
    match leaf.outcome:
        case PolicyDrop(table, chain, place) as by_policy:
            how = f"{by_policy.policy} of {chain}"
            return Ending(kind=EndKind.DROPPED, how=how, place=place, chain=chain, table=table)
        case Drop():
            return decided(EndKind.DROPPED, "", leaf.rules)
        case Reject(how):
            return decided(EndKind.REJECTED, how, leaf.rules)
        case Unanswered(None):
            by_rule = [rule for rule in leaf.rules if untracks(rule)]
            return decided(EndKind.UNANSWERED, "NOTRACK", by_rule)
        case Unanswered(OtherZone()):
            by_rule = [rule for rule in leaf.rules if sets_zone(rule)]
            return decided(EndKind.UNANSWERED, "conntrack zone", by_rule)
        case Unanswered(OwnSource()):
            return OWN_SOURCE
        case Unanswered(by):
            ended = ending_of(replace(leaf, outcome=by))
            return ended and replace(ended, kind=EndKind.UNANSWERED)
        case _:
            return None


def decided(kind: EndKind, how: str, rules: Sequence[AnyRule]) -> Ending:
    """Return the ending whose reason is the last of some rules."""
    if not rules:
        return Ending(kind=kind, how=how)
    rule = rules[-1]
    chain = chain_of(rule)
    place = rule.location
    return Ending(kind=kind, how=how, rule=rule.raw, place=place, chain=chain, table=place.table)


def chain_of(rule: AnyRule) -> str:
    """Return the chain of a rule; empty if its text does not show it."""
    if not isinstance(rule, Rule):
        return rule.chain
    found = re.search(_APPENDED, rule.raw)
    return "" if found is None else found[1]
