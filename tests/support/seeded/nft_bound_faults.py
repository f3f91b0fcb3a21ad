"""Faults in what nft's walks make of what is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from analyzer.model.bits import Bits
from analyzer.model.packet import Mark
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.nft import changes as nft_changes
from analyzer.semantics.nft import fields as nft_fields
from analyzer.semantics.nft import header_fields
from analyzer.semantics.nft import matching as nft_matching
from analyzer.semantics.nft.found import Found, Hit
from analyzer.semantics.nft.matching import Lookups
from analyzer.semantics.nft.values import Draw
from analyzer.semantics.situation import Situation
from tests.support.seeded.fault import Fault, method

FALSE, UNKNOWN, TRUE = Ternary


def judged(change: Callable[[MatchResult], MatchResult]) -> Fault:
    return method(
        Lookups, "evaluate", lambda right: lambda self, m, packet: change(right(self, m, packet))
    )


def known_as(known: Ternary) -> Callable[[MatchResult], MatchResult]:
    return lambda result: MatchResult(known) if result.known is UNKNOWN else result


def looked_up(change: Callable[[Found], Found]) -> Fault:
    return method(
        Lookups,
        "find",
        lambda right: lambda self, given, packet: change(right(self, given, packet)),
    )


FAULTS: Final[dict[str, Fault]] = {
    "unknown as false": judged(known_as(FALSE)),
    "unknown as true": judged(known_as(TRUE)),
    "numbers counted taken for drawn": method(
        nft_matching,
        "read",
        lambda right: (
            lambda *a: (
                replace(r, held=replace(r.held, is_random=True))
                if isinstance((r := right(*a)).held, Draw)
                else r
            )
        ),
    ),
    "first hit taken for the only one": looked_up(
        lambda found: replace(found, hits=found.hits[:1], is_sure=True) if found.hits else found
    ),
    "a look-up that may find nothing taken for sure": looked_up(
        lambda found: replace(found, is_sure=True)
    ),
    "what may not be there taken for there": looked_up(lambda found: replace(found, applies=TRUE)),
    "hits taken for certain": looked_up(
        lambda found: replace(found, hits=tuple([Hit(h.element) for h in found.hits[:1]]))
    ),
    "ports that are not known as none": method(
        header_fields, "port_of", lambda right: lambda *a: Bits(right(*a).value)
    ),
    "unknown bits of a computed mark as zeros": method(
        nft_changes, "_mark", lambda right: lambda held: Mark(right(held).value)
    ),
    "known bits forgotten in a comparison, the wrong way": method(
        Bits,
        "equals",
        lambda right: lambda b, w, mask=(1 << 128) - 1: right(b, w, mask & ~b.unknown),
    ),
    "least number as the only one": method(
        Bits, "is_within", lambda right: lambda b, first, last: right(Bits(b.value), first, last)
    ),
    "addresses that are not known as others' own": method(
        Situation,
        "is_own",
        lambda right: lambda self, *of: FALSE if right(self, *of) is UNKNOWN else right(self, *of),
    ),
    "flows that may be tracked taken for tracked": method(
        nft_fields,
        "ct",
        lambda right: (
            lambda k, d, p, *rest: right(
                k, d, replace(p, tracked=True) if p.tracked is None else p, *rest
            )
        ),
    ),
    "clients that may be held taken for not": method(
        Lookups, "_find_changing", lambda _: lambda _self, key, _held: Found(key.applies, (), False)
    ),
}


#: What the matches of tables are about, and what is forgotten, that show a fault sooner.
ABOUT: Final = {
    "addresses that are not known as others' own": ("Fib", "own"),
    "least number as the only one": ("mark", "mark"),
    "unknown bits of a computed mark as zeros": ("mark", "mark"),
    "clients that may be held taken for not": ("affinity", "lists"),
    "flows that may be tracked taken for tracked": ("direction", "tracked"),
    "what may not be there taken for there": ("", "protocol"),
}
