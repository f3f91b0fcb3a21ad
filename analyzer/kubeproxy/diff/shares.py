"""When two shares count as equal, given the precision of kube-proxy's probabilities.

Theory of operation
===================

kube-proxy means 1/n, and no backend draws exactly that. nftables mode has `numgen`, whose values
differ from 1/n by less than 2**-32. iptables mode draws the endpoints one after the other, each
with 1/k when k are left, printed with ten digits and rounded by iptables to 2**-31: each draw is
off by at most e = 0.5e-10 + 2**-32. The i-th share then is off by at most e: what is left before it
by e*i*(n-i)/n, of which it takes 1/(n-i), and its own draw by e of the (n-i)/n that are left,
together e*i/n + e*(n-i)/n. So two dumps of what is meant to be the same differ by less than
e + 2**-32 < 2**-30, which is `BIAS`; shares that differ by more have changed.

Up to 1.16 there were five digits, and e is 5e-6. A tolerance that wide would hide changes of other
versions, so there is none for that: shares that are exactly those of n draws with five digits mean
1/n.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``computeProbability``; iptables,
extensions/libxt_statistic.c; Linux, net/netfilter/nft_numgen.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from analyzer.model.probability import (
    ALWAYS,
    NEVER,
    XT_STATISTIC_BITS,
    Bounds,
    Dyadic,
    numgen_weights,
    threshold_from_text,
)

#: Shares that differ by no more than this are the same.
BIAS: Final = Dyadic.of(1, 30)
#: Digits of the probabilities that kube-proxy prints: since 1.17, and before.
_DIGITS: Final = (10, 5)
#: In a form that can be sorted.
_Multiset = list[tuple[int, int]]


def certainly_differ(a: Bounds, b: Bounds) -> bool:
    """Return whether two shares differ by more than the bias, wherever in their bounds they are."""
    return _exceeds(a.lower, b.upper) or _exceeds(b.lower, a.upper)


def certainly_agree(a: Bounds, b: Bounds) -> bool:
    """Return whether two shares differ by no more than the bias, wherever in their bounds."""
    return not _exceeds(a.upper, b.lower) and not _exceeds(b.upper, a.lower)


def _exceeds(a: Dyadic, b: Dyadic) -> bool:
    exponent = max(a.exponent, b.exponent, BIAS.exponent)
    more = (a.numerator << exponent - a.exponent) - (b.numerator << exponent - b.exponent)
    return more > BIAS.numerator << exponent - BIAS.exponent


def evenly_drawn(draws: Sequence[Bounds]) -> int | None:
    """Return n if `draws` are exactly how some kube-proxy writes 1/n each; otherwise None."""
    number = len(draws)
    if not number or not all(draw.is_exact for draw in draws):
        return None
    found = _sorted(draw.lower for draw in draws)
    return number if any(found == known for known in _even(number)) else None


def _sorted(shares: Iterable[Dyadic]) -> _Multiset:
    return sorted((share.exponent, share.numerator) for share in shares)


@lru_cache(maxsize=64)
def _even(number: int) -> tuple[_Multiset, ...]:
    by_digits = [_sorted(_drawn_in_turn(number, digits)) for digits in _DIGITS]
    return (*by_digits, _sorted(numgen_weights(number)))


def _drawn_in_turn(number: int, digits: int) -> list[Dyadic]:
    found: list[Dyadic] = []
    left = ALWAYS
    for behind in range(number, 1, -1):
        threshold = threshold_from_text(f"{1 / behind:.{digits}f}")
        chance = Dyadic.of(threshold, XT_STATISTIC_BITS)
        found.append(left * chance)
        left = left * ~chance
    return [*found, left]


def total(draws: Iterable[Bounds]) -> Dyadic:
    """Return the sum of the lower bounds."""
    return sum((draw.lower for draw in draws), NEVER)
