"""New probabilities among the live endpoints."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.model.probability import XT_STATISTIC_BITS


def thresholds(number: int) -> Sequence[int | None]:
    """Return the threshold, out of 2**31, of each of `number` consecutive rules.

    Each takes an equal part of what the rules before it have left, as closely as an integer can;
    None: the last takes all. A share differs from 1/number by less than 2**-31.

    Source: Linux, net/netfilter/xt_statistic.c, ``statistic_mt``; kube-proxy draws the same way,
    with ten digits.
    """
    whole = 1 << XT_STATISTIC_BITS
    return [*[(2 * whole + left) // (2 * left) for left in range(number, 1, -1)], None]
