"""Evaluates one nft rule for a packet, statement by statement.

Source: Linux, net/netfilter/nf_tables_core.c, ``nft_do_chain``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from analyzer.model.iptables import targets
from analyzer.model.nft.expressions import (
    Accept,
    Continue,
    Drop,
    Expression,
    Goto,
    Jump,
    MapLookup,
    Return,
)
from analyzer.model.nft.ruleset import Rule
from analyzer.model.nft.statements import (
    Counter,
    CtCount,
    CtSet,
    Dnat,
    Dup,
    FlowAdd,
    Fwd,
    Limit,
    Log,
    Mangle,
    Masquerade,
    Match,
    MetaSet,
    Notrack,
    ObjectRef,
    Queue,
    Quota,
    Redirect,
    Reject,
    SetUpdate,
    Snat,
    Statement,
    Tproxy,
    Vmap,
    Xt,
)
from analyzer.model.packet import UNKNOWN_PACKET, Packet
from analyzer.model.probability import ALWAYS, Dyadic
from analyzer.model.region import Parted
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.semantics.flow_matching import connection_limit, is_under_limits
from analyzer.semantics.match_result import CERTAIN, MatchResult
from analyzer.semantics.nft.asks import asks
from analyzer.semantics.nft.rejects import is_rejected, reject_name
from analyzer.semantics.path import Path, because_of
from analyzer.semantics.positions import RulePosition, left
from analyzer.semantics.tree import Either, FellThrough, Leaf, Tree, Unresolved, after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.nft.traverse import NftTraversal
    from analyzer.semantics.situation import Situation

#: Statements that let every packet pass unchanged.
_PASSING: Final = (Counter, Log, Dup, FlowAdd, Continue)
#: Statements that change what other rules see.
_CHANGING: Final = (MetaSet, CtSet, Mangle, Notrack, SetUpdate)
#: Objects that let packets pass: what they do to a flow does not matter here.
_PASSING_OBJECTS: Final = frozenset({"counter", "ct helper", "ct timeout", "ct expectation"})


@value
class _Alternative:
    """One way in which a statement may continue; `chance` is its probability in a random draw."""

    tree: Tree
    chance: Dyadic | None = None


@value
class ChainEnd:
    """The traversal of a chain has ended; `tree` is None if all of it went into branches."""

    tree: Tree | None


@value
class _Behind:
    """The traversal continues after the rule, whether the rest of it is evaluated or not."""

    packet: Packet


def limited(given: Limit | CtCount, situation: Situation) -> Ternary:
    """Evaluate a rate or connection limit; whether it is reached is assumed."""
    most = given.count if isinstance(given, CtCount) else None
    under = is_under_limits(situation) if most is None else connection_limit(most, situation)
    return ~under if given.over else under


class RuleWalk:
    """One traversal of one rule."""

    def __init__(self, walks: NftTraversal, path: Path, rule: Rule, place: RulePosition) -> None:
        self._walks = walks
        self._path = path
        self._rule = rule
        #: Where the traversal continues after the rule.
        self.place = place
        #: Whether the traversal continued in several ways.
        self.forked = False
        #: Whether a packet continues that represents several.
        self.joined = False
        #: Whether it makes no difference if the rule matches.
        self.in_vain = False

    def walk(self, first: int, packet: Packet) -> Packet | ChainEnd:
        """Evaluate the statements from `first` on; return the packet that the next rule sees."""
        came, statements = packet, self._rule.statements
        if first == 0 and statements:
            is_for = self._is_rejected(statements[-1], packet)
            if is_for is not Ternary.TRUE and any(isinstance(s, _CHANGING) for s in statements):
                self.forked = True
                ended = self._walks.onward(self.place, packet)
                self._path.may_take([ended], self._because)
            elif is_for is Ternary.FALSE:
                return packet
        for at in range(first, len(statements)):
            each = statements[at]
            if at > first and not isinstance(each, Match):  # matches of a rule split them together
                packet = packet.from_all()
            try:
                reached = self._meet(each, at, packet)
            except Parted as by:
                if isinstance(each, Match) and self._changes_nothing(at + 1, packet):
                    self.in_vain = True
                    return packet.from_all()
                row = None if first else self._walks.in_a_row(self.place, came)
                if row is not None:
                    return ChainEnd(row)
                here = RulePosition(self.place.chain, self.place.at - 1)
                again = partial(self._walks.rest_of, self, at)
                parted = self._walks.parted(by, packet, here, again)
                if parted is not None:
                    return ChainEnd(parted)
                packet = packet.of_clients(None)
                reached = self._meet(each, at, packet)
            match reached:
                case None:
                    return packet.from_all()
                case _Behind(behind):
                    self.joined = True
                    return behind
                case ChainEnd():
                    return reached
                case _:
                    packet = reached
        self._path.passes(self._rule)
        whole = packet.from_all()
        return whole if came.from_all() is came else self._walks.effort.as_asked(whole)

    def _meet(
        self, given: Statement, at: int, packet: Packet
    ) -> Packet | _Behind | ChainEnd | None:
        """Return the packet after a statement, an end, or None if the rule ends here."""
        walks = self._walks
        match given:
            case Match():
                return self._matched(walks.compare(given, packet), at, packet)
            case ObjectRef("synproxy"):
                # It answers by itself and keeps the packet, or lets it pass.
                return self._ends(Unresolved(self._because), None)
            case (
                Limit() | Quota() | CtCount() | ObjectRef() | SetUpdate() | FlowAdd() | Xt("match")
            ):
                if isinstance(given, SetUpdate) and not self._only_passes(at + 1):
                    walks.evaluated.add(SetUpdate)
                held = MatchResult(self._holds(given, packet))
                return self._matched(held, at, packet.from_all())
            case Vmap():
                walks.evaluated |= asks(given.key)
                found = walks.lookups.find(given, packet)
                packet = packet.from_all()
                ways = walks.said.once([(hit.element.value, hit.chance) for hit in found.hits])
                sure = found.is_sure and found.applies is Ternary.TRUE
                match ways:
                    case []:
                        return None
                    case [(verdict, None)] if sure:
                        return self._verdict(verdict, at, packet)
                trees = [_Alternative(self._taken(v, at, packet), chance) for v, chance in ways]
                return self._fork(trees, found.applies, is_sure=sure)
            case Accept() | Drop() | Jump() | Goto() | Return():
                return self._verdict(given, at, packet)
            case Reject():
                is_for = self._is_rejected(given, packet)
                if is_for is Ternary.FALSE:
                    return None
                if is_for is Ternary.UNKNOWN:
                    tree = Leaf(targets.Reject(reject_name(given, walks.family)), packet)
                    return self._fork([_Alternative(after(self._rule, tree))], Ternary.UNKNOWN)
                return self._ends(targets.Reject(reject_name(given, walks.family)), packet)
            case Dnat() | Snat() | Masquerade() | Redirect():
                made = walks.nat.translation(given, packet)
                if made is None:  # it is for another family, and looks up all the same
                    return self._matched(walks.nat.is_there(given, packet), at, packet)
                ways_on = [
                    _Alternative(after(self._rule, Leaf(to, changed)), chance)
                    for to, changed, chance in made.ways
                ]
                if made.is_sure and len(ways_on) == 1 and made.applies is Ternary.TRUE:
                    return ChainEnd(ways_on[0].tree)
                return self._fork(ways_on, made.applies, is_sure=made.is_sure) if ways_on else None
            case MetaSet() | CtSet() | Mangle() | Notrack():
                return self._changed(given, at, packet)
            case Queue() | Tproxy() | Fwd():
                # A program decides, or another device, which we cannot know.
                return self._ends(Unresolved(f"{self._rule.location}: {self._rule.raw}"), None)
            case Counter() | Log() | Dup() | Continue() | Xt("watcher"):
                return packet
            case _:
                return ChainEnd(self._anything())

    def _is_rejected(self, given: Statement, packet: Packet) -> Ternary:
        return is_rejected(given, packet, self._walks.family, self._walks.situation)

    def _holds(self, given: Statement, packet: Packet) -> Ternary:
        """Evaluate a statement that is only true or false."""
        match given:
            case Limit() | CtCount():
                return limited(given, self._walks.situation)
            case ObjectRef(kind, MapLookup() as name) if kind in _PASSING_OBJECTS:
                found = self._walks.lookups.find(name, packet)
                some = Ternary.TRUE if found.is_sure else Ternary.UNKNOWN
                return found.applies & (some if found.hits else Ternary.FALSE)
            case ObjectRef(kind) if kind in _PASSING_OBJECTS:
                return Ternary.TRUE
            case SetUpdate():
                there = self._walks.lookups.read(given.element.key, packet).applies
                sure = given.element.limit is None and self._walks.lookups.has_room(given.set)
                return there if sure else there & Ternary.UNKNOWN
            case _:
                # Quotas, connection counts; flowtables take no flow before its first reply.
                return Ternary.UNKNOWN

    def _only_passes(self, first: int) -> bool:
        """Return whether the statements from `first` on let every packet pass unchanged."""
        return all(isinstance(each, _PASSING) for each in self._rule.statements[first:])

    def _changes_nothing(self, first: int, packet: Packet) -> bool:
        """Return whether the statements from `first` on certainly have no effect."""
        quick = self._only_passes(first) or self._fails(first, packet)
        return quick or self._marks_in_vain(first, packet)

    def _fails(self, first: int, packet: Packet) -> bool:
        """Return whether a comparison from `first` on certainly ends the rule, before it acts."""
        for each in self._rule.statements[first:]:
            if isinstance(each, Match):
                try:
                    result = self._walks.lookups.evaluate(each, packet)
                except Parted:
                    continue  # of some sources it holds
                if result.known is Ternary.FALSE or not result.chance:
                    return True
            elif not isinstance(each, _PASSING):
                return False
        return False

    def _marked(self, first: int, packet: Packet) -> Packet | None:
        """Return the packet after the rule, if the rest of it certainly only sets marks."""
        walks, rest = self._walks, self._rule.statements[first:]
        match rest[-1:]:
            case [Jump(chain)]:
                marked = walks.changes.marked(rest[:-1], packet, walks.situation)
                match marked and walks.goto(chain, marked):
                    case Leaf(FellThrough(), through):
                        return through
                    case _:
                        return None
            case _:
                return walks.changes.marked(rest, packet, walks.situation)

    def _marks_in_vain(self, first: int, packet: Packet) -> bool:
        """Return whether the rest of the rule sets only bits of marks that no rule matches on."""
        if any(isinstance(each, Jump) for each in self._rule.statements[first:]):
            return False  # not to enter a chain for it
        marked = self._marked(first, whole := packet.from_all())
        return marked is not None and self._walks.effort.are_alike(whole, marked)

    def _matched(self, result: MatchResult, at: int, packet: Packet) -> Packet | _Behind | None:
        if result.known is Ternary.FALSE or not result.chance:
            return None
        if result == CERTAIN:
            return packet
        if self._changes_nothing(at + 1, packet):
            self.in_vain = True
            return None
        marked = self._marked(at + 1, packet.from_all())
        if marked is not None and marked != packet.from_all():
            drawn = result.known is Ternary.TRUE
            both = self._walks.effort.joined(
                (id(self._walks), self.place), packet.from_all(), marked, drawn=drawn
            )
            if both is not None:
                return _Behind(both)
        self.forked = True
        follows = self._rule.statements[at + 1 : at + 2]
        same = packet if any(isinstance(s, Match) for s in follows) else packet.from_all()
        taken = self._walks.rest_of(self, at + 1, same)
        if result.known is Ternary.UNKNOWN and result.chance == ALWAYS:
            self._path.may_end(self._rule, taken)
        elif result.known is Ternary.UNKNOWN:
            self._path.may_branch(result.chance, taken, self._because)
        else:
            self._path.branches(result.chance, taken)
        return None

    def _changed(
        self, given: MetaSet | CtSet | Mangle | Notrack, at: int, packet: Packet
    ) -> Packet | ChainEnd | None:
        made = self._walks.changes.changed(given, packet, self._walks.situation)
        if made.applies is Ternary.FALSE:
            return None
        if made.is_sure and made.applies is Ternary.TRUE and len(made.ways) == 1:
            return made.ways[0][0]
        trees = [
            _Alternative(self._walks.rest_of(self, at + 1, changed), chance)
            for changed, chance in made.ways
        ]
        return self._fork(trees, made.applies, is_sure=made.is_sure) if trees else None

    # --- verdicts ---

    def _verdict(self, verdict: Expression | None, at: int, packet: Packet) -> Packet | ChainEnd:
        if isinstance(verdict, Continue):
            return packet
        return ChainEnd(self._taken(verdict, at, packet))

    def _taken(self, verdict: Expression | None, at: int, packet: Packet) -> Tree:
        """Return what happens to a packet after a verdict."""
        walks = self._walks
        match verdict:
            case Accept():
                tree: Tree = Leaf(targets.Accept(), packet)
            case Drop():
                tree = Leaf(targets.Drop(), packet)
            case Jump(chain):
                tree = walks.jump(chain, packet, self.place)
            case Goto(chain):
                tree = walks.goto(chain, packet)
            case Return():
                tree = left(packet)
            case Continue():
                return walks.rest_of(self, at + 1, packet)
            case _:
                return self._anything()
        return after(self._rule, tree)

    def _ends(self, outcome: targets.Reject | Unresolved, packet: Packet | None) -> ChainEnd:
        return ChainEnd(after(self._rule, Leaf(outcome, packet or UNKNOWN_PACKET)))

    def _anything(self) -> Tree:
        """Return the result if a rule may do anything to a packet.

        It may also end the traversal, so following its changes would narrow no bound.
        """
        return after(self._rule, Leaf(Unresolved(self._rule.raw), UNKNOWN_PACKET))

    # --- forks ---

    @property
    def _because(self) -> str:
        return because_of(self._rule)

    def _fork(
        self, ways: Sequence[_Alternative], applies: Ternary, *, is_sure: bool = True
    ) -> ChainEnd | None:
        """Continue in several ways; None if the remaining packets continue after the rule."""
        if applies is Ternary.FALSE:
            return None
        self.forked = True
        drawn = [(way.chance, way.tree) for way in ways if way.chance is not None]
        if len(drawn) == len(ways):
            if applies is not Ternary.TRUE:
                self._path.may_draw(drawn, self._because)
                return None
            return ChainEnd(None) if self._path.draws(drawn) else None
        trees = [way.tree for way in ways]
        if is_sure and applies is Ternary.TRUE:
            return ChainEnd(trees[0] if len(trees) == 1 else Either(self._because, tuple(trees)))
        self._path.may_take(trees, self._because)
        return None
