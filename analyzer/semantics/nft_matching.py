"""What a comparison or a look-up of nft says about a packet.

Both ask whether an operand covers what a packet holds, and so stand in one file, past 400 lines.

Source: Linux, net/netfilter/nft_cmp.c, nft_range.c, nft_lookup.c, nft_bitwise.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise
from typing import Final, TypeAlias

from analyzer.model.bits import WIDTH, Bits
from analyzer.model.devices import Devices
from analyzer.model.nft import Set, Table
from analyzer.model.nft_expressions import (
    AnonymousSet,
    Binary,
    Concat,
    Element,
    Expression,
    Flags,
    MapLookup,
    Prefix,
    Range,
    SetRef,
    Unknown,
    Wildcard,
)
from analyzer.model.nft_statements import Match, Vmap
from analyzer.model.packet import Packet
from analyzer.model.probability import NEVER, Dyadic
from analyzer.model.region import Interval, Intervals, Parted, Region, joined
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.semantics.matching import MatchResult
from analyzer.semantics.nft_fields import constant_number, number, read
from analyzer.semantics.nft_held import Draw, Held, Read, Route, Type
from analyzer.semantics.nft_index import Index
from analyzer.semantics.situation import Situation

_Words: TypeAlias = Mapping[str, int] | tuple[Mapping[str, int], ...]

_FALSE: Final = MatchResult(Ternary.FALSE)
_UNKNOWN: Final = MatchResult(Ternary.UNKNOWN)
_MOST: Final = (1 << WIDTH) - 1
_NONE: Final[Mapping[str, int]] = {}


@value
class Hit:
    """An element that a look-up may find.

    Attributes:
        chance: of a random draw, how likely; None: the packet decides.
    """

    element: Element
    chance: Dyadic | None = None


@value
class Found:
    """What a look-up finds: one of `hits`, or nothing.

    Attributes:
        applies: whether there was something to look up.
        is_sure: whether it certainly finds something; of a random draw the chances say it.
    """

    applies: Ternary
    hits: tuple[Hit, ...]
    is_sure: bool


class Lookups:
    """The sets of one table, as packets of one family look into them; keeps indexes of them."""

    def __init__(self, table: Table, family: str, situation: Situation) -> None:
        self._table = table
        self._family = family
        #: What is assumed of the flow.
        self.situation = situation
        self._indexes: dict[str, Index] = {}
        self._held: dict[str, Intervals | None] = {}

    def read(self, given: Expression, packet: Packet) -> Read:
        """Return what an expression yields for `packet`."""
        return read(given, packet, self._family, self.situation)

    def given(self, operand: Expression, packet: Packet) -> Read:
        """Return what an operand yields for `packet`; what comes of it rests on all of that."""
        found = self.read(operand, packet)
        self._note(found, Ternary.TRUE)
        return found

    def judge(self, match: Match, packet: Packet) -> MatchResult:
        """Judge a comparison."""
        left = self.read(match.left, packet)
        if left.applies is Ternary.FALSE:
            return _FALSE
        result = self._compared(match, left)
        self._note(left, result.known)
        return MatchResult(result.known & left.applies, result.chance)

    def _note(self, read: Read, found: Ternary) -> None:
        """Note that what was found rests on what is assumed of devices or ports, if it does."""
        for part in read.held if isinstance(read.held, tuple) else (read.held,):
            if isinstance(part, Devices):
                self.situation.told_by_devices(found)
            elif isinstance(part, Bits):
                self.situation.told_by_port(part, found)

    def _compared(self, match: Match, left: Read) -> MatchResult:
        operator, right = match.operator, match.right
        ends = _reversed(right, left.words)
        if isinstance(left.held, Draw):
            if ends is None and isinstance(right, Range):
                return _UNKNOWN  # one draw, or two, as below
            if ends is None:
                return self._drawn(left.held, operator, right, left.words)
            signs = ("<", ">") if operator == "!=" else (">=", "<=")
            one, other = map(partial(self._drawn, left.held, words=left.words), signs, ends)
            return MatchResult(one.known & other.known, one.chance * other.chance)
        if ends is not None and operator == "!=":
            operator, right = "==", Range(ends[1] + 1, ends[0] - 1)
        match operator:
            case "==":
                return MatchResult(self._is(left, right))
            case "!=":
                return MatchResult(~self._is(left, right))
            case "in" | "!":
                has_bits = ~self._has_none(left, right)
                return MatchResult(has_bits if operator == "in" else ~has_bits)
            case _:
                return MatchResult(_ordered(left, operator, right))

    def _is(self, left: Read, right: Expression) -> Ternary:
        if isinstance(right, SetRef | AnonymousSet):
            found = self._find(left, right)
            if not found.hits:
                return Ternary.FALSE
            return Ternary.TRUE if found.is_sure else Ternary.UNKNOWN
        return covers(right, left.held, left.words)

    def _has_none(self, left: Read, right: Expression) -> Ternary:
        """Tell whether none of the bits of `right` is set."""
        words = left.words if isinstance(left.words, Mapping) else _NONE
        if isinstance(right, AnonymousSet):
            # `ct state { new, established }` asks for one of the values, not for bits.
            return ~self._is(left, right)
        mask = constant_number(right, words)
        if mask is None or not isinstance(left.held, Bits):
            return Ternary.UNKNOWN
        if left.held.value & mask:
            return Ternary.FALSE
        return left.held.equals(0, mask)

    # --- draws ---

    def _drawn(self, draw: Draw, operator: str, right: Expression, words: _Words) -> MatchResult:
        covered = self._covered(operator, right, words if isinstance(words, Mapping) else _NONE)
        if covered is None:
            return _UNKNOWN
        last = draw.offset + draw.modulus - 1
        clipped = joined((max(low, draw.offset), min(high, last)) for low, high in covered)
        numbers = sum(b - a + 1 for a, b in clipped)
        negated = operator in {"!=", "!"}
        if numbers in {0, draw.modulus}:
            return MatchResult(Ternary.of((numbers > 0) is not negated))
        if not draw.is_random:
            return _UNKNOWN
        chance = reduce(Dyadic.__add__, (draw.chance(a, b) for a, b in clipped), NEVER)
        return MatchResult(Ternary.TRUE, ~chance if negated else chance)

    def _covered(
        self, operator: str, right: Expression, words: Mapping[str, int]
    ) -> list[Interval] | None:
        """Return the numbers that an operand covers, with `!=` those that it excludes."""
        if isinstance(right, AnonymousSet | SetRef):
            elements = self._elements(right)
            if operator not in {"==", "!="} or elements is None:
                return None
            found = [_interval(element.key, words) for element in elements]
            return None if None in found else [each for each in found if each is not None]
        one = _interval(right, words)
        if one is None:
            return None
        first, last = one
        match operator:
            case "==" | "!=":
                return [one]
            case "<":
                return [(0, first - 1)]
            case "<=":
                return [(0, last)]
            case ">":
                return [(last + 1, _MOST)]
            case ">=":
                return [(first, _MOST)]
            case _:
                return None

    # --- look-ups ---

    def find(self, given: Vmap | MapLookup, packet: Packet) -> Found:
        """Return what a look-up in a map finds."""
        key = self.read(given.key, packet)
        found = self._find(key, given.map)
        self._note(
            key, Ternary.of(found.is_sure) if found.is_sure or not found.hits else Ternary.UNKNOWN
        )
        return found

    def _find(self, key: Read, where: SetRef | AnonymousSet | Unknown) -> Found:
        if key.applies is Ternary.FALSE:
            return Found(Ternary.FALSE, (), is_sure=False)
        elements = self._elements(where)
        if elements is None:
            unknown = Element(key=Unknown("a set that is not in the dump"), value=Unknown("?"))
            return Found(key.applies, (Hit(unknown),), is_sure=False)
        changing = isinstance(where, SetRef) and self._table.sets[where.name]
        if changing and _changes(changing):
            return self._find_changing(key, changing)
        if isinstance(key.held, Region):
            networks = self._networks(where, elements)
            if networks is not None:  # one question, however many they are
                match key.held.is_within(networks):
                    case Ternary.TRUE:
                        return Found(key.applies, (Hit(Element(key=Wildcard())),), is_sure=True)
                    case _:
                        return Found(key.applies, (), is_sure=False)
        return _lookup(key, self._index(where, elements))

    def _networks(
        self, where: SetRef | AnonymousSet | Unknown, elements: Sequence[Element]
    ) -> Intervals | None:
        """Return all addresses of a set of addresses; None: it is a map, or holds others."""
        name = where.name if isinstance(where, SetRef) else None
        if name is not None and name in self._held:
            return self._held[name]
        each = [None if e.value is not None else _interval(e.key, _NONE) for e in elements]
        found = None if None in each else joined([one for one in each if one is not None])
        if name is not None:
            self._held[name] = found
        return found

    def has_room(self, name: str) -> bool:
        """Tell whether a set held fewer elements than it may; what is full takes no other.

        Source: Linux, net/netfilter/nft_dynset.c, ``nft_dynset_eval``.
        """
        held = self._table.sets.get(name)
        return held is not None and (held.size is None or len(held.elements) < held.size)

    def _elements(self, where: SetRef | AnonymousSet | Unknown) -> Sequence[Element] | None:
        match where:
            case AnonymousSet(elements):
                return elements
            case SetRef(name) if name in self._table.sets:
                return self._table.sets[name].elements
            case _:
                return None

    def _index(self, where: SetRef | AnonymousSet | Unknown, elements: Sequence[Element]) -> Index:
        if not isinstance(where, SetRef):
            return Index(elements)
        index = self._indexes.get(where.name)
        if index is None:
            index = self._indexes[where.name] = Index(elements)
        return index

    def _find_changing(self, key: Read, held: Set) -> Found:
        """Look into a set that packets change, so that the dump shows what it held once."""
        situation, here = self.situation, (Hit(Element(key=Wildcard())),)
        if held.name.startswith(situation.affinity_lists) and situation.lists is not None:
            client = held.name in situation.lists
            return Found(key.applies, here if client else (), is_sure=client)
        if held.value is not None:
            shown = _lookup(key, self._index(SetRef(held.name), held.elements)).hits
            later = Element(key=Wildcard(), value=Unknown("what was added since"))
            hits = [*(Hit(hit.element) for hit in shown), Hit(later)]
            return Found(key.applies, tuple(hits), is_sure=False)
        return Found(key.applies, here, is_sure=False)


def _changes(held: Set) -> bool:
    return bool({"dynamic", "timeout"} & set(held.flags)) or held.timeout is not None


def _lookup(key: Read, index: Index) -> Found:
    if isinstance(key.held, Draw):
        return _draw(key, key.held, index)
    candidates = index.candidates(key)
    if not _may_cover(key, index, candidates):
        return Found(key.applies, (), is_sure=False)
    certain: list[Hit] = []
    hits: list[Hit] = []
    rest: list[Hit] = []
    for at in candidates:
        element = index.elements[at]
        if isinstance(element.key, Wildcard):
            rest.append(Hit(element))
            continue
        match covers(element.key, key.held, key.words):
            case Ternary.TRUE:
                certain.append(Hit(element))
            case Ternary.UNKNOWN:
                hits.append(Hit(element))
            case Ternary.FALSE:
                pass
    if certain:
        # More than one: the kernel refuses that, so somebody has changed the dump.
        return Found(key.applies, tuple(certain), is_sure=True)
    return Found(key.applies, (*hits, *rest), is_sure=bool(rest))


def _may_cover(key: Read, index: Index, candidates: Sequence[int]) -> bool:
    """Tell whether one of some elements may cover a key that has a region for a part.

    Raises:
        Parted: some do so for a part of the region, and none for the rest.
    """
    parts = key.held if isinstance(key.held, tuple) else (key.held,)
    parted: Parted | None = None
    for at, region in enumerate(parts):
        if not isinstance(region, Region):
            continue
        every = index.intervals(at, len(parts), _addresses)
        intervals = [interval for place in candidates if (interval := every[place]) is not None]
        if len(intervals) < len(candidates):
            continue
        try:
            known = region.is_within(joined(intervals))
        except Parted as by:
            parted = by  # which matters only where all else may be covered
            continue
        if known is Ternary.FALSE:
            return False
    if parted is not None:
        raise parted
    return True


def _addresses(part: Expression) -> Interval | None:
    """Return the addresses that a part of a key covers; None: not known."""
    return _interval(part, _NONE)


def _draw(key: Read, draw: Draw, index: Index) -> Found:
    hits: list[Hit] = []
    words = key.words if isinstance(key.words, Mapping) else _NONE
    first, last = draw.offset, draw.offset + draw.modulus - 1
    covered = 0
    taken: list[tuple[int, int]] = []
    rest: Element | None = None
    for element in index.elements:
        if isinstance(element.key, Wildcard):
            rest = element
            continue
        interval = _interval(element.key, words)
        if interval is None:
            return Found(key.applies, tuple(map(Hit, index.elements)), is_sure=False)
        low, high = max(interval[0], first), min(interval[1], last)
        if low <= high:
            hits.append(Hit(element, draw.chance(low, high) if draw.is_random else None))
            covered += high - low + 1
            taken.append((low, high))
    taken.sort()
    if any(low <= high for (_, high), (low, _) in pairwise(taken)):
        # The kernel refuses that, so somebody has changed the dump.
        return Found(key.applies, tuple(map(Hit, index.elements)), is_sure=False)
    if rest is not None and covered < draw.modulus:
        left = ~reduce(Dyadic.__add__, (h.chance or NEVER for h in hits), NEVER)
        hits.append(Hit(rest, left if draw.is_random else None))
        covered = draw.modulus
    return Found(key.applies, tuple(hits), is_sure=covered == draw.modulus)


# --- values ---


def covers(given: Expression, held: Held, words: _Words) -> Ternary:
    """Tell whether an operand, or the key of an element, covers what a packet holds."""
    match given, held:
        case Wildcard(), _:
            return Ternary.TRUE
        case Concat(parts), tuple():
            if len(parts) != len(held) or not isinstance(words, tuple):
                return Ternary.UNKNOWN
            return _covers_all(zip(parts, held, words, strict=True))
        case str(), str():
            return _is_name(given, held)
        case str(), Devices():
            return held.is_named(_as_pattern(given))
        case ((str() | int()), Type()) if isinstance(words, Mapping):
            wanted = number(given, words)
            return Ternary.UNKNOWN if wanted is None else held.equals(wanted)
        case ((bool() | int() | str()), Route()):
            return held.equals(given)
        case _, Bits() if isinstance(words, Mapping):
            return _covers_number(given, held, words)
        case _, Region() if isinstance(words, Mapping):
            interval = _interval(given, words)
            return Ternary.UNKNOWN if interval is None else _is_among(held, interval)
        case _:
            return Ternary.UNKNOWN


def _covers_all(parts: Iterable[tuple[Expression, Held, Mapping[str, int]]]) -> Ternary:
    result, parted = Ternary.TRUE, None
    for part in parts:
        try:
            result &= covers(*part)
        except Parted as by:
            parted = by  # which matters only where all else is covered
        if result is Ternary.FALSE:
            return result
    if parted is not None:
        raise parted
    return result


def _is_among(held: Region, interval: Interval) -> Ternary:
    """Tell whether the address that is meant lies in an interval, which may be empty."""
    return held.is_within(joined([interval]))


def _covers_number(given: Expression, held: Bits, words: Mapping[str, int]) -> Ternary:
    if isinstance(given, Prefix):
        bits = given.address.max_prefixlen
        mask = ((1 << given.length) - 1) << (bits - given.length)
        return held.equals(int(given.address) & mask, mask)
    interval = _interval(given, words)
    if interval is None:
        return Ternary.UNKNOWN
    first, last = interval
    return held.equals(first) if first == last else held.is_within(first, last)


def _interval(given: Expression, words: Mapping[str, int]) -> Interval | None:
    """Return the first and the last number that an operand covers."""
    match given:
        case Range(first, last):
            low, high = number(first, words), number(last, words)
            return None if low is None or high is None else (low, high)
        case Prefix(address, length):
            rest = (1 << (address.max_prefixlen - length)) - 1
            return int(address) & ~rest, int(address) | rest  # nft leaves out what is beyond
        case Flags() | Binary() | bool() | int() | str() | IPv4Address() | IPv6Address():
            only = constant_number(given, words)
            return None if only is None else (only, only)
        case _:
            return None


def _reversed(given: Expression, words: _Words) -> tuple[int, int] | None:
    """Return the ends of a range that ends before it begins, or None.

    nft joins ``th dport < 80 th dport > 53`` and lists it as ``th dport != 80-53``, ``>=`` and
    ``<=`` likewise as ``80-53``; of draws those are two. ``< 53`` and ``> 80``, which nothing
    meets, it lists as it does what is not of 53 to 80, and so it is read.

    Source: listings of nft 1.0.6 beside the expressions of its netlink.
    """
    if not isinstance(given, Range) or not isinstance(words, Mapping):
        return None
    first, last = number(given.first, words), number(given.last, words)
    return None if first is None or last is None or first <= last else (first, last)


def _is_name(wanted: str, name: str) -> Ternary:
    if wanted.endswith("*") and not wanted.endswith("\\*"):
        return Ternary.of(name.startswith(wanted[:-1]))
    return Ternary.of(name == wanted.replace("\\*", "*"))


def _as_pattern(wanted: str) -> str:
    """Return a name, or all that begin so, as iptables writes it."""
    if wanted.endswith("*") and not wanted.endswith("\\*"):
        return f"{wanted[:-1]}+"
    return wanted.replace("\\*", "*")


def _ordered(left: Read, operator: str, right: Expression) -> Ternary:
    words = left.words if isinstance(left.words, Mapping) else _NONE
    interval = _interval(right, words)
    held = left.held
    if interval is None or not isinstance(held, Bits | Region):
        return Ternary.UNKNOWN
    first, last = interval
    match operator:
        case "<":
            wanted = 0, first - 1
        case "<=":
            wanted = 0, last
        case ">":
            wanted = last + 1, _MOST
        case ">=":
            wanted = first, _MOST
        case _:
            return Ternary.UNKNOWN
    if isinstance(held, Region):
        return _is_among(held, wanted)
    return held.is_within(*wanted) if wanted[0] <= wanted[1] else Ternary.FALSE
