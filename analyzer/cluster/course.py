"""The history of rules and objects that were observed at some times.

Theory of operation
===================

Rules, and objects, are known at the times of observations, and change in between: if two
observations differ, the change was at any time between them. So between two observations the state
is one of both, and a share or a length of time has bounds: what holds for both states is certain,
what holds for one of them is possible. Both bounds are attained: by a change right after the first
observation, or right before the second. A state that came and went in between was not seen.

Before the first observation of rules, and after the last, nothing is known of them; objects are
taken to be as at the first observation before it, and as at the last after it.

Times are seconds since 1970, as fractions: all sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from analyzer.model.probability import NEVER, Bounds
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_NONE: Final = Fraction(0)


@value
class Length:
    """Seconds, at least and at most."""

    lower: Fraction
    upper: Fraction

    def __add__(self, other: Length) -> Length:
        return Length(self.lower + other.lower, self.upper + other.upper)

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self.upper)


NO_TIME: Final = Length(_NONE, _NONE)


@value(kw_only=True)
class Moment:
    """A time interval between two consecutive observations, or an instant.

    Attributes:
        rules: numbers of the observations of rules, one of which is the state; `objects` likewise.
    """

    start: Fraction
    end: Fraction
    rules: tuple[int, ...]
    objects: tuple[int, ...]

    @property
    def seconds(self) -> Fraction:
        """How long it is."""
        return self.end - self.start

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield each state of the rules with each of the objects that may coincide with it."""
        for rule in self.rules:
            for of_objects in self.objects:
                yield rule, of_objects


def moments(
    rules: Sequence[Fraction], objects: Sequence[Fraction], others: Iterable[Fraction] = ()
) -> tuple[Moment, ...]:
    """Return the time from the first to the last dump, split wherever anything was observed.

    `rules` and `objects` are the times of observations, in order; `others` are more times to split
    at. Without observations of objects, their number is 0.
    """
    if not rules:
        return ()
    first, last = rules[0], rules[-1]
    cuts = {each for each in (*rules, *objects, *others) if first <= each <= last}
    return tuple(
        Moment(
            start=start,
            end=end,
            rules=_possible(rules, start, end),
            objects=_possible(objects, start, end) or (0,),
        )
        for start, end in pairwise(sorted(cuts))
    )


def _possible(times: Sequence[Fraction], start: Fraction, end: Fraction) -> tuple[int, ...]:
    """Return the observations next to an interval without any."""
    before = [at for at, time in enumerate(times) if time <= start]
    after = [at for at, time in enumerate(times) if time >= end]
    return tuple(dict.fromkeys([*before[-1:], *after[:1]]))


def time_of(found: Iterable[Moment], holds: Callable[[int, int], bool]) -> Length:
    """Return for how long something held, given the states in which it does."""
    lower = upper = _NONE
    for each in found:
        answers = [holds(rule, of_objects) for rule, of_objects in each.pairs()]
        lower += each.seconds * all(answers)
        upper += each.seconds * any(answers)
    return Length(lower, upper)


def coinciding(
    rules: Sequence[Fraction], objects: Sequence[Fraction]
) -> frozenset[tuple[int, int]]:
    """Return the states of rules and objects that may have been there at the same time."""
    found = {pair for each in moments(rules, objects) for pair in each.pairs()}
    for at, time in enumerate(rules):  # an instant, if there is only one dump
        found |= {(at, of_objects) for of_objects in _possible(objects, time, time) or (0,)}
    return frozenset(found)


@value(kw_only=True)
class Stretch:
    """A period in which a loss has the same bounds."""

    start: Fraction
    end: Fraction
    loss: Bounds


@value(kw_only=True)
class Lost:
    """What was lost over time.

    Attributes:
        stretches: in order, each with bounds that hold all the while.
        total: seconds of all new flows that were lost.
        lossy: for how long any were.
        most: the greatest share at any time, at least and at most.
    """

    stretches: tuple[Stretch, ...]
    total: Length
    lossy: Length
    most: Bounds


def lost_over(found: Iterable[Moment], loss: Callable[[Moment, int, int], Bounds | None]) -> Lost:
    """Return what was lost; `loss` gives the share of new flows lost in a state.

    None: nothing can be lost then, since there is no route.
    """
    stretches: list[Stretch] = []
    total, lossy = NO_TIME, NO_TIME
    most = Bounds(NEVER, NEVER)
    for each in found:
        if not each.seconds:
            continue
        told = [loss(each, *pair) or Bounds(NEVER, NEVER) for pair in each.pairs()]
        bounds = Bounds(min(b.lower for b in told), max(b.upper for b in told))
        span = each.seconds
        total += Length(span * bounds.lower.as_fraction(), span * bounds.upper.as_fraction())
        lossy += Length(span * bool(bounds.lower), span * bool(bounds.upper))
        most = Bounds(max(most.lower, bounds.lower), max(most.upper, bounds.upper))
        last = stretches[-1] if stretches else None
        if last is not None and last.end == each.start and last.loss == bounds:
            stretches[-1] = Stretch(start=last.start, end=each.end, loss=bounds)
        else:
            stretches.append(Stretch(start=each.start, end=each.end, loss=bounds))
    return Lost(stretches=tuple(stretches), total=total, lossy=lossy, most=most)


@value(kw_only=True)
class Stood:
    """How long a state lasted before it changed; no upper bound if its start was not observed."""

    lower: Fraction
    upper: Fraction | None


def stood(times: Sequence[Fraction], states: Sequence[Hashable], at: int) -> Stood:
    """Return for how long the state of look `at` - 1 had stood when that of look `at` was seen."""
    first = at - 1
    while first and states[first - 1] == states[at - 1]:
        first -= 1
    return Stood(
        lower=times[at - 1] - times[first],
        upper=None if not first else times[at] - times[first - 1],
    )
