"""Evaluates nft comparisons and lookups against a packet.

Source: Linux, net/netfilter/nft_cmp.c, nft_range.c, nft_lookup.c, nft_bitwise.c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Final, TypeAlias

from analyzer.model.bits import WIDTH, Bits
from analyzer.model.devices import Devices
from analyzer.model.intervals import Interval, Intervals, joined
from analyzer.model.nft.expressions import (
    AnonymousSet,
    Concat,
    Element,
    Expression,
    MapLookup,
    Payload,
    Range,
    SetRef,
    Unknown,
    Wildcard,
)
from analyzer.model.nft.ruleset import Set, Table
from analyzer.model.nft.statements import Match, Vmap
from analyzer.model.packet import Packet
from analyzer.model.probability import NEVER, Dyadic
from analyzer.model.region import Region
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.nft.covering import (
    covers,
    interval_of,
    ordered,
    reversed_range,
)
from analyzer.semantics.nft.fading import (
    MOST_FADING,
    changes,
    lasting,
    networks_of,
)
from analyzer.semantics.nft.fields import constant_number, read
from analyzer.semantics.nft.found import Found, Hit, some
from analyzer.semantics.nft.index import Index
from analyzer.semantics.nft.lookup import lookup, misses
from analyzer.semantics.nft.values import Draw, Evaluated
from analyzer.semantics.situation import Situation

_Words: TypeAlias = Mapping[str, int] | tuple[Mapping[str, int], ...]

_FALSE: Final = MatchResult(Ternary.FALSE)
_ADDRESSES: Final = frozenset({"saddr", "daddr"})
_NOTHING: Final = Found(Ternary.TRUE, (), is_sure=False)
_UNKNOWN: Final = MatchResult(Ternary.UNKNOWN)
_MOST: Final = (1 << WIDTH) - 1
_NONE: Final[Mapping[str, int]] = {}


class Lookups:
    """Lookups in the sets of one table by packets of one family; keeps indexes of the sets."""

    def __init__(self, table: Table, family: str, situation: Situation) -> None:
        self._table = table
        self._family = family
        #: What is assumed of the flow.
        self.situation = situation
        self._indexes: dict[str, Index] = {}
        self._held: dict[str, Intervals | None] = {}
        self._by_device: dict[object, Found] = {}

    def read(self, given: Expression, packet: Packet) -> Evaluated:
        """Return the value of an expression for `packet`."""
        return read(given, packet, self._family, self.situation)

    def given(self, operand: Expression, packet: Packet) -> Evaluated:
        """Return the value of an operand for `packet`; the result depends on all of it."""
        found = self.read(operand, packet)
        self._note(found, Ternary.TRUE)
        return found

    def evaluate(self, match: Match, packet: Packet) -> MatchResult:
        """Evaluate a comparison."""
        if match.operator == "==" and self._misses(match.left, match.right, packet):
            return _FALSE
        left = self.read(match.left, packet)
        if left.applies is Ternary.FALSE:
            return _FALSE
        result = self._compared(match, left)
        self._note(left, result.known, lambda other: self._compared(match, other).known)
        return MatchResult(result.known & left.applies, result.chance)

    def _note(
        self,
        read: Evaluated,
        found: Ternary,
        evaluate: Callable[[Evaluated], Ternary] | None = None,
    ) -> None:
        """Record that a result depends on assumptions about devices, ports or sizes, if it does.

        `evaluate` returns the result for another value; without it, it depends on all of `read`.
        """
        for part in read.held if isinstance(read.held, tuple) else (read.held,):
            if isinstance(part, Devices):
                again = (
                    None if evaluate is None else partial(_evaluated_in_part, evaluate, read, part)
                )
                self.situation.told_by_devices(part, found, again)
            elif isinstance(part, Bits):
                self.situation.told_by_port(part, found)
                self.situation.told_by_size(part, found)

    def _compared(self, match: Match, left: Evaluated) -> MatchResult:
        operator, right = match.operator, match.right
        ends = reversed_range(right, left.words)
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
                return MatchResult(ordered(left, operator, right))

    def _is(self, left: Evaluated, right: Expression) -> Ternary:
        if isinstance(right, SetRef | AnonymousSet):
            found = self._find(left, right)
            if not found.hits:
                return Ternary.FALSE
            return Ternary.TRUE if found.is_sure else Ternary.UNKNOWN
        return covers(right, left.held, left.words)

    def _has_none(self, left: Evaluated, right: Expression) -> Ternary:
        """Return whether none of the bits of `right` is set."""
        words = left.words if isinstance(left.words, Mapping) else _NONE
        if isinstance(right, AnonymousSet):
            # `ct state { new, established }` compares values, not bits.
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
        """Return the numbers that an operand covers; for `!=`, those that it excludes."""
        if isinstance(right, AnonymousSet | SetRef):
            elements = self._elements(right)
            if operator not in {"==", "!="} or elements is None:
                return None
            found = [interval_of(element.key, words) for element in elements]
            return None if None in found else [each for each in found if each is not None]
        one = interval_of(right, words)
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
        """Return the result of a lookup in a map."""
        if self._misses(given.key, given.map, packet):
            return _NOTHING
        key = self.read(given.key, packet)
        found = self._find(key, given.map)
        self._note(key, _known(found), lambda other: _known(self._find(other, given.map)))
        return found

    def _misses(self, key: Expression, where: Expression, packet: Packet) -> bool:
        """Return whether the addresses of a packet alone show that no element covers its key.

        Then no other part of the key is read, so that the result does not depend on these.
        """
        held = self._table.sets.get(where.name) if isinstance(where, SetRef) else None
        if held is None or changes(held):
            return False
        if not held.elements or not isinstance(key, Concat):
            return not held.elements
        of = len(key.parts)
        index = self._index(SetRef(held.name), held.elements)
        return any(
            isinstance(part, Payload)
            and part.field in _ADDRESSES
            and misses(self.read(part, packet), index, at, of)
            for at, part in enumerate(key.parts)
        )

    def _find(self, key: Evaluated, where: SetRef | AnonymousSet | Unknown) -> Found:
        if key.applies is Ternary.FALSE:
            return Found(Ternary.FALSE, (), is_sure=False)
        elements = self._elements(where)
        if elements is None:
            unknown = Element(key=Unknown("a set that is not in the dump"), value=Unknown("?"))
            return Found(key.applies, (Hit(unknown),), is_sure=False)
        changing = isinstance(where, SetRef) and self._table.sets[where.name]
        if changing and changes(changing):
            return self._find_changing(key, changing)
        if isinstance(key.held, Region):
            networks = self._networks(where, elements)
            if networks is not None:  # one question, however many they are
                return some(key, key.held.is_within(networks))
        if not isinstance(key.held, Devices):
            return lookup(key, self._index(where, elements))
        asked = where, key.held, key.applies
        if asked not in self._by_device:  # many flows are of the same devices
            self._by_device[asked] = lookup(key, self._index(where, elements))
        return self._by_device[asked]

    def _networks(
        self, where: SetRef | AnonymousSet | Unknown, elements: Sequence[Element]
    ) -> Intervals | None:
        """Return all addresses of a set of addresses; None if it is a map, or holds others."""
        name = where.name if isinstance(where, SetRef) else None
        if name is not None and name in self._held:
            return self._held[name]
        found = networks_of(elements)
        if name is not None:
            self._held[name] = found
        return found

    def has_room(self, name: str) -> bool:
        """Return whether a set had fewer elements than its size; a full one takes no other.

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

    def _find_changing(self, key: Evaluated, held: Set) -> Found:
        """Look up in a set that packets change, of which the dump shows an earlier state."""
        situation, here = self.situation, (Hit(Element(key=Wildcard())),)
        if held.name.startswith(situation.affinity_lists) and situation.lists is not None:
            client = held.name in situation.lists
            return Found(key.applies, here if client else (), is_sure=client)
        is_of_clients = held.name.startswith(situation.affinity_lists)
        if not is_of_clients and "dynamic" not in held.flags:
            return self._find_fading(key, held)
        if held.value is not None:
            shown = lookup(key, self._index(SetRef(held.name), held.elements)).hits
            later = Element(key=Wildcard(), value=Unknown("what was added since"))
            hits = [*(Hit(hit.element) for hit in shown), Hit(later)]
            return Found(key.applies, tuple(hits), is_sure=False)
        return Found(key.applies, here, is_sure=False)

    def _find_fading(self, key: Evaluated, held: Set) -> Found:
        """Look into a set whose elements may have gone since, and that no rule adds to."""
        where, stays = SetRef(held.name), lasting(held)
        networks = self._networks(where, held.elements) if isinstance(key.held, Region) else None
        if networks is not None and isinstance(key.held, Region):
            if len(networks) > MOST_FADING:
                is_out = not key.held.common(networks)
                return some(key, Ternary.FALSE if is_out else Ternary.UNKNOWN)
            known = key.held.is_within(networks)
            if known is Ternary.TRUE and len(stays) < len(held.elements):
                known = key.held.is_within(networks_of(stays) or ()) | Ternary.UNKNOWN
            return some(key, known)
        if len(stays) < len(held.elements):
            found = lookup(key, Index(stays))
            if found.is_sure:
                return found
        found = lookup(key, self._index(where, held.elements))
        return replace(found, is_sure=found.is_sure and len(stays) == len(held.elements))


def _known(found: Found) -> Ternary:
    """Return whether a lookup has a result; unknown if it may have several."""
    return Ternary.of(found.is_sure) if found.is_sure or not found.hits else Ternary.UNKNOWN


def _evaluated_in_part(
    evaluate: Callable[[Evaluated], Ternary], read: Evaluated, device: Devices, other: Devices
) -> Ternary:
    """Return the result for a value with another device."""
    held = read.held
    parts = (
        tuple([other if each is device else each for each in held])
        if isinstance(held, tuple)
        else other
    )
    return evaluate(replace(read, held=parts))
