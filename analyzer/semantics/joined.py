"""Packets with marks by source, which take the place of branches by source in a tree."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from analyzer.model.intervals import Intervals
from analyzer.model.iptables.matches import MatchNot, MatchSource
from analyzer.model.iptables.targets import Dnat
from analyzer.model.packet import MarksDiffer, Packet
from analyzer.model.region import Parted
from analyzer.model.source_marks import SourceMarks
from analyzer.model.value import fields_of, replace
from analyzer.semantics.effort import MOST_MARKS
from analyzer.semantics.grow import Grown
from analyzer.semantics.tree import Leaf, Tree, Unresolved, every_leaf

#: All fields of a packet but its marks.
_BUT_MARKS: Final = attrgetter(
    *(name for name in fields_of(Packet) if name not in {"mark", "marks"})
)


def with_marks(packet: Packet) -> Packet:
    """Return the packet with its mark for each part of its sources, if these are known."""
    if packet.sources is None:
        return packet
    return replace(packet, marks=SourceMarks.of(packet.sources.whole.intervals, packet.mark))


def marked_by_source(
    by: Parted, packet: Packet, passed: Callable[[], Leaf | None]
) -> Packet | None:
    """Return a packet for all sources after a rule that at most marks those it matches.

    `passed` returns the packet after the rule, if it certainly continues. None: the rule does more
    than that.

    Raises:
        MarksDiffer: too many parts of the sources would have marks of their own.
    """
    where = _matched(by, packet)
    marks = packet.marks
    through = None if where is None else passed()
    if where is None or through is None or marks is None or through.packet.marks is None:
        return None
    after = through.packet
    if after is not packet and _BUT_MARKS(after) != _BUT_MARKS(packet):
        return None
    found = marks.where(where, through.packet.marks)
    if found.size > MOST_MARKS:
        raise MarksDiffer
    return packet if found == marks else replace(packet, mark=found.mark, marks=found)


def _matched(by: Parted, packet: Packet) -> Intervals | None:
    """Return the sources of a packet that a rule matches; None: it matches on more than these."""
    if by.region is not packet.sources or by.region.whole is not by.region:
        return None
    match by.match:
        case MatchSource():
            return by.within
        case MatchNot(MatchSource()):
            return by.without
        case _:
            return None


def are_all_sent_on(tree: Tree) -> bool:
    """Return whether DNAT sends all packets on, as far as their ends are known."""
    return all(isinstance(leaf.outcome, Dnat | Unresolved) for leaf in every_leaf(tree))


def only_sent_on(tree: Tree) -> Tree | None:
    """Return a tree in which only packets that DNAT has sent on have marks by source.

    None: another packet's mark depends on the source. Which rules decided that is not in the tree,
    and how such flows end may depend on it.
    """
    others = [leaf for leaf in every_leaf(tree) if _is_left(leaf)]
    if not others:
        return tree
    if any(leaf.packet.marks is not None and leaf.packet.marks.is_joined for leaf in others):
        return None
    return Grown(_with_one_mark).of(tree)


def _is_left(leaf: Leaf) -> bool:
    return leaf.packet.marks is not None and not isinstance(leaf.outcome, Dnat)


def _with_one_mark(leaf: Leaf) -> Leaf:
    return replace(leaf, packet=leaf.packet.with_one_mark(), rules=()) if _is_left(leaf) else leaf
