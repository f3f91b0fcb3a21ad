"""Consecutive rules that each match some sources, for example block lists, evaluated at once.

Each of these rules splits the sources of a packet, or the destinations of an answer. To begin the
traversal again after each split, once for either part, takes ten times as long as to split them
here, and where rules change packets each packet that one made would be evaluated by all rules after
it. Here the row cuts its sources into pieces, by what all of its rules together make of a packet.
The tree is the same, except that many rules with one outcome are one piece, wherever in the row
they stand, and that rules whose changes were undone are left out.

Where nothing is known of the sources, each of these rules may match or not. If many in a row have
one outcome, the tree has one fork for all of them: bounds are the same, as an outcome that any of
several rules may bring about is as likely as one that a single rule may.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from analyzer.model.intervals import Interval, Intervals, common_of, joined, without
from analyzer.model.iptables.targets import Accept, Drop, Reject
from analyzer.model.packet import Packet
from analyzer.model.region import Parted, Region
from analyzer.model.value import replace
from analyzer.semantics.effort import Effort
from analyzer.semantics.path import because_of
from analyzer.semantics.tree import (
    AnyRule,
    BySource,
    Either,
    FellThrough,
    Leaf,
    Tree,
    after_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: How a rule ends the traversal of its chain.
    End: TypeAlias = Accept | Drop | Reject | FellThrough

#: Most rules in a row with one outcome that are told apart: each has a part of its own in every
#: route, and for every endpoint.
_MOST_APART: Final = 8
#: Most packets that the rules of one row make of one.
_MOST_PACKETS: Final = 64
#: What rules read and change of packets, if they match on nothing but sources.
_READ: Final = ("mark", "flow_mark", "marks", "tracked", "template", "zones")


class Decided(NamedTuple):
    """What a rule certainly does with all packets from some sources, and no others.

    Attributes:
        asked: the flows' sources that it takes; none: it takes no packet like this one.
        outcome: how it ends them, `FellThrough` if they leave the chain; or the packet that the
            next rule sees.
    """

    rule: AnyRule
    asked: Intervals
    outcome: End | Packet


class Rows:
    """Rows of rules of one table, and what they make of packets.

    The packets of each frontend come to the same block lists: what rules in a row that match on
    sources alone make of one packet is kept for all.
    """

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._kept: dict[tuple[str, int, Packet], _Row] = {}

    def split(
        self,
        chain: str,
        at: int,
        packet: Packet,
        decides: Callable[[int, Packet], Decided | None],
        decides_alone: Callable[[int, Packet], Decided | None],
        goes_on: Callable[[int, Packet], Tree],
    ) -> Tree | None:
        """Return what happens to a packet from the rule with index `at` on, which splits sources.

        `decides` returns what the rule with an index does, or None if that is not certain, does not
        depend on sources alone, or there is no such rule. `decides_alone` does so if the rule
        matches on nothing but sources, and reads nothing of the packet but its marks and what
        conntrack knows. `goes_on` returns what happens from another rule on. None: the first rule
        does not decide on sources alone, or no split is allowed.
        """
        if packet.clients is None or packet.sources is packet.destinations:
            return None
        if decides_alone(at, packet) is None:  # as of most rules that split sources
            row = _Row.of(at, packet, decides, self._effort)
        else:
            row = self._of_all(chain, at, _seen_by_few(packet), decides_alone)
        if not row.length:
            return None
        told = len([*takewhile(lambda _: self._effort.parts(), row.splits)])
        if row.splits and not told:
            return None
        whole = packet.from_all()
        trees: list[Tree] = []
        for piece in row.pieces:
            packet = whole if piece.packet is row.whole else _changed(whole, piece.packet)
            if piece.end is None:
                trees.append(after_all(piece.rules, goes_on(at + row.length, packet)))
            else:
                trees.append(Leaf(piece.end, packet, piece.rules))
        tree = trees[-1]
        if told < len(row.splits):
            tree = Either(because_of(row.pieces[told].rules[-1]), tuple(trees[told:]))
        for by, end in zip(reversed(row.splits[:told]), reversed(trees[:told]), strict=True):
            tree = BySource(by.asked, ((by.inside, end), (by.outside, tree)))
        return tree

    def _of_all(
        self,
        chain: str,
        at: int,
        seen: Packet,
        decides: Callable[[int, Packet], Decided | None],
    ) -> _Row:
        row = self._kept.get((chain, at, seen))
        if row is None:
            row = self._kept[chain, at, seen] = _Row.of(at, seen, decides, self._effort)
        return row


def together(by: Parted, at: int, asks: Callable[[int], Intervals | None]) -> Parted:
    """Return a split like `by`, of all addresses that some of the rules in a row match on.

    `asks` returns the addresses that the rule with an index matches on; None: it does not, or there
    is no such rule. Each of them splits addresses that are no client's, and the traversal begins
    again for either part: most often the rest is all that there is to evaluate.
    """
    asked = [*by.asked]
    while (found := asks(at)) is not None and by.region.common(found) != by.region.intervals:
        asked += found
        at += 1
    if len(asked) == len(by.asked):
        return by
    every = joined(asked)
    inside = by.region.common(every)
    return by if inside == by.region.intervals else Parted(by.region, every, inside)


def as_few(row: Sequence[tuple[AnyRule, Leaf, int]]) -> list[tuple[AnyRule, Leaf]]:
    """Return the rules of a row that may all end the traversal; too many with one outcome as one.

    The number of each is that of rules like it that follow it and are left out.
    """
    many: dict[object, int] = {}
    for _, leaf, others in row:
        many[leaf.outcome] = many.get(leaf.outcome, 0) + 1 + others
    found: dict[object, tuple[AnyRule, Leaf]] = {}
    for number, (rule, leaf, _) in enumerate(row):
        if not is_long(many[leaf.outcome]):
            found[number] = rule, leaf
        elif leaf.outcome not in found:
            first = _of_many(rule, many[leaf.outcome] - 1)
            found[leaf.outcome] = first, Leaf(leaf.outcome, leaf.packet, (first,))
    return [*found.values()]


def is_long(many: int) -> bool:
    """Return whether a row has too many rules with one outcome to tell them apart."""
    return many > _MOST_APART


class _Rule(NamedTuple):
    """A rule of a row: the sources that it matches on, and what it does to each packet."""

    asked: Intervals
    does: Mapping[Packet, Decided]


class _Piece(NamedTuple):
    """Sources whose packets the rules of a row treat alike.

    Attributes:
        sources: these.
        asked: the same, or with some that an earlier piece has.
        rules: those that they match.
        end: how a rule ends them; None: they go on behind the row.
    """

    sources: Intervals
    asked: Intervals
    rules: tuple[AnyRule, ...]
    end: End | None
    packet: Packet


class _Row(NamedTuple):
    """A row of rules, as one packet meets it.

    Attributes:
        length: the number of its rules; 0: the first one does not decide on sources alone.
        whole: the packet that comes to it, from all sources.
        pieces: of its sources, the last one with those that no other has.
        splits: what tells each piece but the last from those after it.
    """

    length: int
    whole: Packet
    pieces: Sequence[_Piece]
    splits: Sequence[Parted]

    @classmethod
    def of(
        cls,
        at: int,
        packet: Packet,
        decides: Callable[[int, Packet], Decided | None],
        effort: Effort,
    ) -> _Row:
        region, whole = packet.clients, packet.from_all()
        assert region is not None
        rules = _rules(at, packet, whole, region, decides, effort)
        if not rules:
            return cls(0, whole, (), ())
        pieces = [*_pieces(rules, region, whole)]
        rest = without(region.intervals, joined(i for each in pieces for i in each.sources))
        if rest:
            pieces.append(_Piece(rest, rest, (), None, whole))
        splits = [Parted(region, each.asked, region.common(each.asked)) for each in pieces[:-1]]
        return cls(len(rules), whole, pieces, splits)


def _seen_by_few(packet: Packet) -> Packet:
    """Return a packet with only what rules read that match on nothing but sources."""
    return _changed(Packet(is_answer=packet.is_answer).of_clients(packet.clients), packet)


def _changed(packet: Packet, by: Packet) -> Packet:
    """Return a packet with what such rules change, as another packet has it."""
    return replace(packet, **{name: getattr(by, name) for name in _READ})


def _rules(
    at: int,
    packet: Packet,
    whole: Packet,
    region: Region,
    decides: Callable[[int, Packet], Decided | None],
    effort: Effort,
) -> list[_Rule]:
    """Return the rules of a row, with what each does to all packets that those before it make."""
    row: list[_Rule] = []
    packets = [whole]
    while True:
        does: dict[Packet, Decided] = {}
        takes_all = False
        for each in packets:
            # Only the first rule is evaluated for the sources that are left for it.
            decided = decides(at + len(row), each if row else packet)
            if decided is None:
                return row
            rule, asked, after = decided
            if isinstance(after, Packet):
                after = effort.as_asked(after.from_all())
                after = next((one for one in packets if effort.are_alike(one, after)), after)
                if after is each:
                    takes_all |= common_of(region.intervals, asked) == region.intervals
                    asked = ()
            does[each] = Decided(rule, asked, after)
        found = {decided.asked for decided in does.values() if decided.asked}
        if takes_all and not found:  # it changes nothing, and is reported as other rules are
            return row
        if len(found) > 1:  # it matches on more than one network, and which depends on the packet
            return row
        asked = found.pop() if found else ()
        made = [each.outcome for each in does.values() if each.asked]
        new = [each for each in made if isinstance(each, Packet) and each not in packets]
        packets += dict.fromkeys(new)
        if len(packets) > _MOST_PACKETS:
            return row
        row.append(_Rule(asked, does))
        ends = len(made) == len(does) and not any(isinstance(each, Packet) for each in made)
        if ends and common_of(region.intervals, asked) == region.intervals:
            return row


def _pieces(row: Sequence[_Rule], region: Region, whole: Packet) -> Iterator[_Piece]:
    """Yield the pieces that a row cuts sources into, but for those whose packets it leaves alone.

    Many with one outcome are one piece, whose rule says how many they are: a part of its own for
    each of thousands of sources that are banned would tell nothing more.
    """
    found: dict[tuple[int, ...], list[Interval]] = {}
    for matched, interval in _matched(row, region):
        applied = _applied(row, matched, whole)
        if applied:
            found.setdefault(applied, []).append(interval)
    alike: dict[tuple[End | None, Packet], list[tuple[int, ...]]] = {}
    for applied in sorted(found):
        end, packet = _outcome(row, applied, whole)
        if end is not None or packet is not whole:
            alike.setdefault((end, packet), []).append(applied)
    told: list[tuple[tuple[int, ...], _Piece]] = []
    for (end, packet), same in alike.items():
        if is_long(len(same)):
            sources = joined(interval for applied in same for interval in found[applied])
            others = len({applied[-1] for applied in same}) - 1
            first = _of_many(_named(row, same[0][-1]), others)
            told.append((same[0], _Piece(sources, sources, (first,), end, packet)))
            continue
        for applied in same:
            sources = joined(found[applied])
            # Those that another piece has of a rule that ends all it matches come before it.
            asked = row[applied[0]].asked if applied[1:] == () and end is not None else sources
            rules = tuple([_named(row, number) for number in applied])
            told.append((applied, _Piece(sources, asked, rules, end, packet)))
    told.sort(key=lambda each: each[0])
    yield from (piece for _, piece in told)


def _matched(row: Sequence[_Rule], region: Region) -> Iterator[tuple[tuple[int, ...], Interval]]:
    """Yield intervals of sources, with the rules of the row that match on them, in order."""
    begins = sorted(
        (low, number, high)
        for number, rule in enumerate(row)
        for low, high in common_of(region.intervals, rule.asked)
    )
    #: Those that match on the address `at`, by their place in the row, and until which address.
    open_at: list[tuple[int, int]] = []
    at = taken = 0
    while taken < len(begins) or open_at:
        if not open_at:
            at = begins[taken][0]
        while taken < len(begins) and begins[taken][0] <= at:
            _, number, high = begins[taken]
            insort(open_at, (number, high))
            taken += 1
        last = min(high for _, high in open_at)
        if taken < len(begins):
            last = min(last, begins[taken][0] - 1)
        yield tuple([number for number, _ in open_at]), (at, last)
        at = last + 1
        open_at = [each for each in open_at if each[1] >= at]


def _applied(row: Sequence[_Rule], matched: Sequence[int], packet: Packet) -> tuple[int, ...]:
    """Return those of the rules that match on a source that do something to its packet."""
    applied: list[int] = []
    for number in matched:
        decided = row[number].does[packet]
        if not decided.asked:
            continue
        applied.append(number)
        if not isinstance(decided.outcome, Packet):
            break
        packet = decided.outcome
    return tuple(applied)


def _outcome(
    row: Sequence[_Rule], applied: Sequence[int], packet: Packet
) -> tuple[End | None, Packet]:
    """Return how rules that were applied in turn end a packet, and the packet then."""
    for number in applied:
        outcome = row[number].does[packet].outcome
        if not isinstance(outcome, Packet):
            return outcome, packet
        packet = outcome
    return None, packet


def _named(row: Sequence[_Rule], number: int) -> AnyRule:
    return next(iter(row[number].does.values())).rule


def _of_many(rule: AnyRule, others: int) -> AnyRule:
    """Return a rule whose text says how many others after it do the same."""
    if not others:
        return rule
    return replace(rule, raw=f"{rule.raw} (or one of {others:,} more such rules after it)")
