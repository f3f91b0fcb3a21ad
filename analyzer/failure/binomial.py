"""Exact tests and intervals of counts whose share is predicted, many of them together.

Source: Clopper and Pearson, The Use of Confidence or Fiducial Limits (1934); Holm, A Simple
Sequentially Rejective Multiple Test Procedure (1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from analyzer.model.probability import Bounds

#: The least number of flows sent, and by which part of it the number may be too high.
_FEWEST = 64
_FINELY = 20

#: Steps to find the end of an interval, to 1 in 2**30.
_HALVINGS = 30

#: Terms of a sum of doubles that are negligible.
_NEGLIGIBLE = 1e-18


def holm(p_values: Sequence[float], rate: float) -> list[bool]:
    """Return, for each p-value, whether its hypothesis is kept at a family-wise `rate`."""
    kept = [True] * len(p_values)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, at in enumerate(order):
        if p_values[at] > rate / (len(p_values) - rank):
            break
        kept[at] = False
    return kept


def p_value_within(hits: int, trials: int, share: Bounds) -> float:
    """Return the largest p-value that any probability within `share` gives to `hits`."""
    lower, upper = float(share.lower), float(share.upper)
    if trials and lower <= hits / trials <= upper:
        return 1.0
    nearest = lower if hits < lower * trials else upper
    return binomial_p_value(hits, trials, nearest)


def interval(hits: int, trials: int, rate: float = 0.01) -> tuple[float, float]:
    """Return the exact confidence interval of a share; it misses the true one at most at `rate`.

    Source: Clopper and Pearson, The Use of Confidence or Fiducial Limits (1934).
    """

    def edge(holds: Callable[[float], bool]) -> float:
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    lower = edge(lambda p: at_least(hits, trials, p) <= rate / 2) if hits else 0.0
    upper = edge(lambda p: at_most(hits, trials, p) > rate / 2) if hits < trials else 1.0
    return lower, upper


@lru_cache(maxsize=4096)  # of a Service's routes most have the same shares
def noticed_deviation(trials: int, share: Bounds, rate: float) -> float | None:
    """Return how far off, as a share of `trials`, a count must be to be called wrong.

    None if no count would be: there are too few trials, or the share is too uncertain.
    """
    found = []
    low, high = math.floor(float(share.lower) * trials), math.ceil(float(share.upper) * trials)
    for nearest, farthest in ((high, trials), (low, 0)):
        if p_value_within(farthest, trials, share) > rate:
            continue
        kept, wrong = nearest, farthest
        while abs(wrong - kept) > 1:
            middle = (kept + wrong) // 2
            if p_value_within(middle, trials, share) > rate:
                kept = middle
            else:
                wrong = middle
        found.append(abs(wrong - nearest) / trials)
    return max(found, default=None)


def flows_needed(share: Bounds, deviation: float, rate: float, most: int) -> int:
    """Return how many flows detect a count that is off by `deviation`, a share of the flows.

    At most `most`, if it takes more or no number is enough.
    """

    def enough(flows: int) -> bool:
        noticed = noticed_deviation(flows, share, rate)
        return noticed is not None and noticed <= deviation

    few, flows = 0, _FEWEST
    while flows < most and not enough(flows):
        few, flows = flows, 2 * flows
    flows = min(flows, most)
    while flows - few > max(1, flows // _FINELY):
        middle = (few + flows) // 2
        few, flows = (few, middle) if enough(middle) else (middle, flows)
    return flows


def binomial_p_value(hits: int, trials: int, probability: float) -> float:
    """Return the two-sided p-value of the exact binomial test.

    The sum of the probabilities of all counts that are at most as likely as `hits`, as scipy's
    ``binomtest`` defines it; computed from logarithms, since the reading path has no scipy.
    """
    if not trials:
        return 1.0
    if probability in (0.0, 1.0):
        return 1.0 if hits == round(probability * trials) else 0.0
    observed = _log_pmf(hits, trials, probability)
    # Equal by symmetry but not in the last digit: scipy allows the same 1e-7.
    most = observed + 1e-7
    mean = probability * trials
    below = _last_at_most(most, 0, math.floor(mean), trials, probability, rising=True)
    above = _last_at_most(most, math.ceil(mean), trials, trials, probability, rising=False)
    tails = [
        _tail(range(below, -1, -1), trials, probability),
        _tail(range(max(above, below + 1), trials + 1), trials, probability),
    ]
    return min(1.0, math.fsum(tails))


def at_least(hits: int, trials: int, probability: float) -> float:
    """Return the probability of `hits` or more in `trials`."""
    if hits <= 0 or probability >= 1:
        return 1.0
    if hits > trials or probability <= 0:
        return 0.0
    mean = math.floor(probability * trials)
    if hits > mean:
        return min(1.0, _tail(range(hits, trials + 1), trials, probability))
    return max(0.0, 1.0 - _tail(range(hits - 1, -1, -1), trials, probability))


def at_most(hits: int, trials: int, probability: float) -> float:
    """Return the probability of `hits` or fewer in `trials`."""
    if probability <= 0:
        return 1.0
    return at_least(trials - hits, trials, 1 - probability)


def _tail(counts: range, trials: int, probability: float) -> float:
    """Return the sum of the probabilities of `counts`, which decrease; negligible ones are omitted.

    Each follows from the one before by a ratio, which is ten times as fast as its logarithm.
    """
    if not counts:
        return 0.0
    total = 0.0
    each = math.exp(_log_pmf(counts[0], trials, probability))
    odds = probability / (1 - probability)
    rising = counts.step > 0
    for hits in counts:
        total += each
        if each <= total * _NEGLIGIBLE:
            break
        each *= (trials - hits) / (hits + 1) * odds if rising else hits / (trials - hits + 1) / odds
    return total


def _last_at_most(
    most: float, low: int, high: int, trials: int, probability: float, *, rising: bool
) -> int:
    """Return where, from the mean outwards, the counts' probabilities fall to `most`.

    If rising, the largest count in [low, high] with at most that probability, or low - 1; if
    falling, the smallest, or high + 1.
    """
    if rising:
        left, right = low - 1, high
        while left < right:
            middle = (left + right + 1) // 2
            if _log_pmf(middle, trials, probability) <= most:
                left = middle
            else:
                right = middle - 1
        return left
    left, right = low, high + 1
    while left < right:
        middle = (left + right) // 2
        if _log_pmf(middle, trials, probability) <= most:
            right = middle
        else:
            left = middle + 1
    return left


def _log_pmf(hits: int, trials: int, probability: float) -> float:
    chosen = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    return chosen + hits * math.log(probability) + (trials - hits) * math.log1p(-probability)
