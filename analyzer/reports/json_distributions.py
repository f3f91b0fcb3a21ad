"""Distributions of new flows as JSON: each once, so that output grows with distinct ones.

Theory of operation: draws one after the other, as kube-proxy's iptables rules make them, give
endpoint i the share ``t_i / 2**31 * prod(1 - t_j / 2**31)`` over all j before i. Its numerator has
31 bits for each draw, so that those of n endpoints together grow with n**2; the thresholds t say
the same with n numbers. They are written where they give just these shares, which is computed
again and compared each time; elsewhere the shares are written.

Each threshold is below 2**31, so that a share has more factors 2 in its denominator than the one
drawn before it; the last two have as many. Where the order of the draws is not known, that of the
exponents is it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from analyzer.model.probability import NEVER, XT_STATISTIC_BITS, Bounds, Dyadic
from analyzer.model.value import value
from analyzer.reports import json_values as values

#: Characters of text that are kept for distributions that occur again.
_MOST_KEPT: Final = 1 << 23
#: The cost of looking a list of shares up, as a number of characters.
_ENTRY: Final = 300


@value
class ConsecutiveDraws:
    """Consecutive draws.

    Attributes:
        order: who is drawn first, second, and so on: indices into the given endpoints.
        thresholds: of each draw, out of 2**31: one for each but the last, which takes what is
            left, or one for each, and what is left goes to none of them.
    """

    order: tuple[int, ...]
    thresholds: tuple[int, ...]


def draws_of(shares: Sequence[Dyadic]) -> ConsecutiveDraws | None:
    """Return the draws that give exactly these shares; None if none do."""
    if not shares:
        return None
    order = tuple(range(len(shares)))
    found = _thresholds(shares)
    if found is None:
        order = tuple(sorted(order, key=lambda at: shares[at].exponent))
        found = _thresholds([shares[at] for at in order])
    if found is None:
        return None
    # What is written is what is read again, and nothing less than equal will do.
    again = shares_of(found, len(order))
    same = all(shares[at] == share for at, share in zip(order, again, strict=True))
    return ConsecutiveDraws(order, found) if same else None


def shares_of(thresholds: Sequence[int], size: int) -> tuple[Dyadic, ...]:
    """Return the shares of `size` endpoints by draws, the last of which may take the rest.

    Raises:
        ValueError: there are too few draws or too many, or one is no number of 31 bits.
    """
    if not size - 1 <= len(thresholds) <= size or not size:
        raise ValueError(f"{len(thresholds)} draws cannot be of {size}")
    found: list[Dyadic] = []
    numerator, exponent = 1, 0
    for threshold in thresholds:
        if not 0 <= threshold <= 1 << XT_STATISTIC_BITS:
            raise ValueError(f"{threshold} is not between 0 and 2**{XT_STATISTIC_BITS}")
        exponent += XT_STATISTIC_BITS
        found.append(Dyadic.of(numerator * threshold, exponent))
        numerator *= (1 << XT_STATISTIC_BITS) - threshold
    if len(found) < size:
        found.append(Dyadic.of(numerator, exponent))
    return tuple(found)


def _thresholds(shares: Sequence[Dyadic]) -> tuple[int, ...] | None:
    """Return the thresholds of draws in just this order."""
    found: list[int] = []
    numerator, exponent = 1, 0  # of what is left
    for at, share in enumerate(shares):
        if at == len(shares) - 1 and _over(share, exponent) == numerator:
            return tuple(found)
        drawn = _over(share, exponent + XT_STATISTIC_BITS)
        if drawn is None or not numerator:
            return None
        threshold, rest = divmod(drawn, numerator)
        if rest or threshold > 1 << XT_STATISTIC_BITS:
            return None
        found.append(threshold)
        numerator *= (1 << XT_STATISTIC_BITS) - threshold
        exponent += XT_STATISTIC_BITS
    return tuple(found)


def _over(share: Dyadic, exponent: int) -> int | None:
    more = exponent - share.exponent
    return share.numerator << more if more >= 0 else None


class Distributions:
    """Numbers the distributions of a document in order of first use, each once.

    What is known again without being encoded is given up for room after `most_kept` characters.
    """

    def __init__(self, most_kept: int = _MOST_KEPT) -> None:
        self._most_kept = most_kept
        self._numbers: dict[str, int] = {}
        self._known: dict[tuple[object, ...], tuple[object, int]] = {}
        self._alike: dict[tuple[object, ...], list[tuple[tuple[Bounds, ...], int]]] = {}
        self._size = 0

    def number(
        self,
        shares: Sequence[Bounds],
        places: Sequence[int] | None,
        size: int,
        unresolved: Dyadic = NEVER,
    ) -> int:
        """Return the index, from 0, of a distribution over `size` endpoints in `written`.

        `places` says of which of them each share is; None: of all, in their order. Who is not
        among them is never drawn, except for what is `unresolved`.
        """
        # Those of one Service often are one object, and those of two Services equal.
        where = places if places is None else tuple(places)
        found = self._known.get((id(shares), where, size, unresolved))
        if found is not None:
            return found[1]
        # Numbers of thousands of digits are not hashed: few distributions have the same floats.
        floats = tuple([(float(share.lower), float(share.upper)) for share in shares])
        key = floats, where, size, unresolved
        number = next((n for known, n in self._alike.get(key, ()) if known == tuple(shares)), None)
        if number is None:
            text = values.encode(distribution(shares, where, size, unresolved))
            number = self._numbers.setdefault(text, len(self._numbers))
            self._make_room(len(text))
            self._alike.setdefault(key, []).append((tuple(shares), number))
        # The shares are kept, so that no others get their identity.
        self._make_room(_ENTRY)
        self._known[id(shares), where, size, unresolved] = shares, number
        return number

    def written(self) -> Iterator[str]:
        """Yield each distribution, encoded."""
        yield from self._numbers

    def _make_room(self, more: int) -> None:
        self._size += more
        if self._size > self._most_kept:
            self._known.clear()
            self._alike.clear()
            self._size = more


def distribution(
    shares: Sequence[Bounds],
    places: Sequence[int] | None,
    size: int,
    unresolved: Dyadic | None = NEVER,
) -> dict[str, Any]:
    """Return one distribution, as described in `number`; empty `unresolved` is left out."""
    if places is not None and len(places) == size and all(i == at for i, at in enumerate(places)):
        places = None
    where: Sequence[int] = range(size) if places is None else places
    known = all(share.is_exact for share in shares)
    floats: list[float | None] = [None] * size
    for at, share in zip(where, shares, strict=True):
        floats[at] = float(share.lower) if share.is_exact else None
    found: dict[str, Any] = {"values": floats}
    if not known:
        for end in ("lower", "upper"):
            ends: list[float | None] = [None] * size
            for at, share in zip(where, shares, strict=True):
                ends[at] = float(share.lower if end == "lower" else share.upper)
            found[end] = ends
    if unresolved is not None:
        found["unresolved"] = values.probability(unresolved)
    drawn = draws_of([share.lower for share in shares]) if known else None
    if drawn is None:
        told: list[dict[str, Any] | None] = [None] * size
        for at, share in zip(where, shares, strict=True):
            told[at] = values.probability(share.lower) if share.is_exact else values.bounds(share)
        return {**found, "exact": {"shares": told}, "order": None}
    order = [where[at] for at in drawn.order]
    in_order = len(order) == size and all(i == at for i, at in enumerate(order))
    exact = {"draws": [hex(t) for t in drawn.thresholds], "bits": XT_STATISTIC_BITS}
    return {**found, "exact": exact, "order": None if in_order else order}
