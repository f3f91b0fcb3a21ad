"""Traverses the chains of an iptables table, mirroring ipt_do_table.

Theory of operation
===================

The traversal from a position is cached: see `positions`.

Rules that certainly do not match cost one loop step. A rule that matches at random only adds a
branch, and the loop continues with the remaining probability, so a KUBE-SVC chain of n endpoints is
one `Chance` with n branches and the recursion does not get deeper with n. Rules after which the
same chain continues in two ways, or with a changed packet, go into a list of what is wrapped around
the rest, so they do not make the recursion deeper either.

Source: Linux, net/ipv4/netfilter/ip_tables.c, ``ipt_do_table``.
"""

from __future__ import annotations

from functools import cached_property, partial
from types import UnionType
from typing import assert_never

from analyzer.model.intervals import Intervals, span
from analyzer.model.iptables.matches import (
    MatchDestination,
    MatchInInterface,
    MatchOutInterface,
    MatchSource,
)
from analyzer.model.iptables.rules import Rule, Table
from analyzer.model.iptables.targets import (
    Accept,
    Audit,
    ChangeHops,
    ChangeSet,
    ChangeTtl,
    Classify,
    ConnectionTracking,
    CopyConnmark,
    Dnat,
    Drop,
    FillChecksum,
    Goto,
    Jump,
    Log,
    Masquerade,
    NfLog,
    NoTrack,
    Queue,
    Redirect,
    Reject,
    RemoveEcn,
    Return,
    SetConnmark,
    SetDscp,
    SetMark,
    SetMss,
    SetTos,
    Snat,
    StripOptions,
    TargetUnknown,
    Tee,
    Tproxy,
    Trace,
)
from analyzer.model.packet import UNKNOWN_PACKET, Packet
from analyzer.model.probability import ALWAYS
from analyzer.model.region import Parted
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.effort import MOST_BY_DEVICE, Effort
from analyzer.semantics.grow import Grown
from analyzer.semantics.iptables.index import ChainIndex
from analyzer.semantics.iptables.matching import match_all
from analyzer.semantics.iptables.passing import may_expire, passed_by
from analyzer.semantics.match_result import CERTAIN
from analyzer.semantics.path import Path, because_of
from analyzer.semantics.positions import RulePosition, Walks, left, missing
from analyzer.semantics.situation import Situation
from analyzer.semantics.translation import masqueraded, redirected, sourced, translated
from analyzer.semantics.tree import FellThrough, Leaf, Tree, Unresolved, after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.iptables.by_device import ByDevice
    from analyzer.semantics.iptables.unseen import Unseen


class Traversal(Walks):
    """Traversals of one table by packets in one situation; keeps the cache."""

    joins_marks = True

    def __init__(
        self, table: Table, situation: Situation | None = None, effort: Effort | None = None
    ) -> None:
        super().__init__(effort)
        self._table = table
        self._situation = situation or Situation()
        self._indexes: dict[str, ChainIndex] = {}

    @cached_property
    def _by_device(self) -> ByDevice:
        from analyzer.semantics.iptables.by_device import ByDevice  # few dumps need it

        return ByDevice(self._table, self.effort.asked_bits)

    @cached_property
    def _unseen(self) -> Unseen:
        from analyzer.semantics.iptables.unseen import Unseen  # few dumps need it

        return Unseen(self._table, self.effort)

    def goto(self, chain: str, packet: Packet) -> Tree:
        """Return what happens to a packet that enters a chain, until it leaves that chain."""
        if packet.marks is None or not self._unseen.is_apart(chain):
            return super().goto(chain, packet)
        start = RulePosition(chain, 0)
        known = self.walked(start, packet)
        return known or self.take(start, packet, self._unseen.result(chain, packet, super().goto))

    @property
    def visited(self) -> list[str]:
        """The chains that packets entered so far."""
        return list(self._indexes)

    def _is_end(self, place: RulePosition) -> bool:
        chain = self._table.chains.get(place.chain)
        return chain is not None and place.at >= len(chain.rules)

    def _meets(self, start: RulePosition, packet: Packet, alike: list[int]) -> Tree:
        told: list[Packet] = []
        tree = self._along(start, packet, told, alike)
        if not told:
            return tree
        # What the rules of this chain showed about its device is forgotten when it leaves the
        # chain.
        return Grown(lambda leaf: _as_before(leaf, packet)).of(tree)

    def _along(
        self, start: RulePosition, packet: Packet, told: list[Packet], alike: list[int]
    ) -> Tree:
        """Traverse a chain; the packet is added to `told` as rules show more about its device."""
        chain = self._table.chains.get(start.chain)
        if chain is None:
            return missing(start.chain, packet)
        rules = chain.rules
        index = self._indexes.get(start.chain)
        if index is None:
            index = self._indexes[start.chain] = ChainIndex.of(rules)
        if not packet.is_answer:  # whose destinations are split where a rule matches on them
            index.tell_apart(packet)
        path = Path()
        #: The results, for the packet as it is now, of chains that rules dispatch to by device.
        sent: dict[str, Tree] = {}
        came = packet
        position = start.at
        while True:
            for at in index.candidates(packet, position):
                rule = rules[at]
                try:
                    result = match_all(rule.matches, packet, self._situation, self.evaluated)
                except Parted as by:
                    if self._is_in_vain(packet, rule):
                        packet, position = packet.from_all(), at + 1
                        if packet is came and path.is_empty:
                            alike.append(position)
                        break
                    marked = self._marked_by_source(by, packet, rule)
                    if marked is not None:
                        packet, position = marked, at + 1
                        sent.clear()
                        break
                    parted = self._in_a_row(start.chain, at, packet)
                    if parted is None:
                        place = RulePosition(start.chain, at)
                        parted = self.parted(by, packet, place, partial(self.onward, place))
                    if parted is not None:
                        return path.tree(parted)
                    packet, position = packet.of_clients(None), at
                    break
                asked, packet = packet, packet.from_all()
                if result.known is Ternary.FALSE or not result.chance:
                    continue
                passed = self._passed(packet, rule)
                if passed is not None and result is CERTAIN:
                    path.passes(rule, *passed.rules)
                    if passed.packet == packet:
                        continue
                    is_split = asked is not packet
                    packet, position = passed.packet, at + 1
                    if is_split:
                        packet = self.effort.as_asked(packet)
                    sent.clear()
                    break  # the packet has changed: other rules may match from here on
                behind = RulePosition(start.chain, at + 1)
                drawn = result.known is Ternary.TRUE
                if passed is not None and passed.packet != packet:
                    one, other = packet.with_one_mark(), passed.packet.with_one_mark()
                    both = self.effort.joined((id(self), behind), one, other, drawn=drawn)
                    if both is not None:  # other packets may come to it too: keep the result
                        return path.tree(self.onward(behind, both))
                elif passed is not None and not (drawn and isinstance(rule.target, Jump)):
                    # Whether it matches or not, the traversal continues in the same way.
                    if packet is came and path.is_empty:
                        alike.append(at + 1)
                    continue
                if result.known is Ternary.UNKNOWN and _asks(
                    MatchInInterface | MatchOutInterface, rule
                ):
                    if isinstance(rule.target, Jump) and self._by_device.is_inert(
                        rule.target.chain
                    ):
                        continue
                    if self._by_device.leads_to_more(start.chain, MOST_BY_DEVICE):
                        # Some of them would say no more than that the others may do anything.
                        why = self.effort.too_many_devices()
                        return path.tree(Leaf(Unresolved(why), UNKNOWN_PACKET))
                    told_apart = self._by_device.told_apart
                    inside, outside = told_apart(rule, packet, asked, self._situation)
                    key = self._by_device.key(rule)
                    if key not in sent or result.chance != ALWAYS:
                        taken = self._take_by_device(rule, inside, _with_devices_of(packet, came))
                        taken = after(rule, taken or self._take(rule, behind, packet))
                        path.may_branch(result.chance, taken, because_of(rule))
                        if result.chance == ALWAYS:  # else of another device less may come to it
                            sent[key] = taken
                    if outside is not packet:
                        packet = outside
                        told.append(packet)
                        if key in sent:
                            position, packet = self._by_device.past_alike(start.chain, at, packet)
                            if position > at + 1:
                                break
                    continue
                if told and result is CERTAIN and self._by_device.key(rule) in sent:
                    return path.tree(sent[self._by_device.key(rule)])  # of the last device
                taken = after(rule, self._take(rule, behind, packet))
                if result.known is Ternary.UNKNOWN and result.chance == ALWAYS:
                    path.may_end(rule, taken)
                elif result.known is Ternary.UNKNOWN:
                    path.may_branch(result.chance, taken, because_of(rule))
                elif path.branches(result.chance, taken):
                    return path.tree(None)
                # A chain that returned has evaluated the rest already: share it.
                rest = self.walked(behind, packet)
                if rest is not None:
                    return path.tree(rest)
            else:
                return path.tree(left(packet))

    def _matched_at(self, chain: str, at: int, is_source: bool) -> Intervals | None:
        rules = self._table.chains[chain].rules
        if at >= len(rules):
            return None
        kind = MatchSource if is_source else MatchDestination
        asked = [each.network for each in rules[at].matches if isinstance(each, kind)]
        return (span(asked[0]),) if len(asked) == 1 else None

    def _in_a_row(self, chain: str, at: int, packet: Packet) -> Tree | None:
        """Return what happens to a packet whose sources several rules in a row split, or None."""
        rules = self._table.chains[chain].rules
        asked = MatchDestination if packet.is_answer else MatchSource
        if len(rules) < at + 2 or not all(_asks(asked, rule) for rule in rules[at : at + 2]):
            return None
        from analyzer.semantics.iptables.in_a_row import deciding  # few dumps need it

        def goes_on(at: int, packet: Packet) -> Tree:
            return self.onward(RulePosition(chain, at), packet)

        return self.rows.split(chain, at, packet, *deciding(rules, self._situation), goes_on)

    def _marked_by_source(self, by: Parted, packet: Packet, rule: Rule) -> Packet | None:
        """Return the packet after a rule that at most marks some sources; None: it does more."""
        if packet.marks is None:
            return None
        from analyzer.semantics.joined import marked_by_source  # few dumps need it

        found = marked_by_source(by, packet, partial(self._passed, packet, rule))
        if found is not None:
            self.effort.join(by.asked, id(rule))
        return found

    def _is_in_vain(self, packet: Packet, rule: Rule) -> bool:
        """Return whether no rule can tell packets that have matched this one from others.

        For example, it logs them, or sets a bit of their mark that no rule matches on.
        """
        if packet.marks is not None:
            return False  # then they have a mark for each part of their sources
        whole = packet.from_all()
        passed = passed_by(whole, rule, self._situation)
        return passed is not None and self.effort.are_alike(whole, passed)

    def _passed(self, packet: Packet, rule: Rule) -> Leaf | None:
        """Return the packet, and the rules that match, if the chain certainly continues.

        That includes a jump to a chain that lets the packet return whatever is drawn.
        """
        if isinstance(rule.target, Jump):
            match self.goto(rule.target.chain, packet):
                case Leaf(FellThrough()) as through:
                    return through
                case _:
                    return None
        passed = passed_by(packet, rule, self._situation)
        return None if passed is None else left(passed)

    def _take_by_device(self, rule: Rule, inside: Packet, packet: Packet) -> Tree | None:
        """Return what happens to a packet that a rule dispatches if it has a certain device.

        None if the rule does not send it to a chain without return.
        """
        if not isinstance(rule.target, Goto):
            return None
        chain = rule.target.chain
        if self._by_device.is_inert(chain):
            return left(packet)
        if self._by_device.asks_device(chain):
            return self.goto(chain, inside)
        return self.goto(self._by_device.like(chain), packet)

    def _take(self, rule: Rule, behind: RulePosition, packet: Packet) -> Tree:
        match rule.target:
            case Jump(chain):
                return self.jump(chain, packet, behind)
            case Goto(chain):
                return self.goto(chain, packet)
            case Return():
                return left(packet)
            case Dnat(to):
                return Leaf(rule.target, translated(packet, to))
            case Masquerade():
                return Leaf(rule.target, masqueraded(packet))
            case Snat(to):
                return Leaf(rule.target, sourced(packet, to))
            case Redirect(ports):
                local = self._situation.is_local(packet)
                return Leaf(rule.target, redirected(packet, ports, local))
            case Accept() | Drop() | Reject():
                return Leaf(rule.target, packet)
            case ChangeTtl() | ChangeHops() if may_expire(rule.target):
                return Leaf(Unresolved(rule.raw), UNKNOWN_PACKET)
            case (
                SetMark()
                | SetConnmark()
                | CopyConnmark()
                | ChangeSet()
                | ConnectionTracking()
                | NoTrack()
                | Log()
                | NfLog()
                | SetMss()
                | Trace()
                | FillChecksum()
                | SetDscp()
                | SetTos()
                | ChangeTtl()
                | ChangeHops()
                | RemoveEcn()
                | StripOptions()
                | Classify()
                | Audit()
                | Tee()
                | None
            ):
                passed = passed_by(packet, rule, self._situation)
                assert passed is not None
                return self.onward(behind, passed)
            case Queue() | Tproxy():
                # A program decides, which we cannot know.
                return Leaf(Unresolved(f"{rule.location}: {rule.raw}"), UNKNOWN_PACKET)
            case TargetUnknown(text, is_lost):
                # It may end the traversal, or change the packet arbitrarily: anything is possible.
                return Leaf(Unresolved(text, is_lost), UNKNOWN_PACKET)
            case _:
                assert_never(rule.target)


def _asks(kinds: type | UnionType, rule: Rule) -> bool:
    return any(isinstance(each, kinds) for each in rule.matches)


def _with_devices_of(packet: Packet, came: Packet) -> Packet:
    """Return a packet with no more known of its devices than when it `came`."""
    if packet.came_by is came.came_by and packet.leaves_by is came.leaves_by:
        return packet
    return replace(packet, came_by=came.came_by, leaves_by=came.leaves_by)


def _as_before(leaf: Leaf, came: Packet) -> Leaf:
    packet = _with_devices_of(leaf.packet, came)
    return leaf if packet is leaf.packet else replace(leaf, packet=packet, rules=())
