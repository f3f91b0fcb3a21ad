"""How two routes of the same flows differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from analyzer.kubeproxy.diff.changes import (
    MASQUERADE,
    NO_CHANGE,
    OTHERWISE,
    SHARES,
    UNANSWERED,
    UNRESOLVED,
    Change,
    EndpointChange,
    MasqueradeChange,
    Otherwise,
)
from analyzer.kubeproxy.diff.shares import (
    certainly_agree,
    certainly_differ,
    evenly_drawn,
    total,
)
from analyzer.kubeproxy.rows.plain_shares import Drawn
from analyzer.kubeproxy.view import Endpoint, Route, Source
from analyzer.model.endings import Ending, Endings, EndKind, any_of, part, summed
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.value import value
from analyzer.semantics.onward import OWN_SOURCE

_NONE: Final = Bounds(NEVER, NEVER)
#: How flows end that are lost after DNAT; of all others it is not known.
_OUTCOMES: Final = {
    EndKind.DROPPED: "drop",
    EndKind.REJECTED: "reject",
    EndKind.UNANSWERED: UNANSWERED,
}
#: What is the same in both, by what of it is not known.
_ALIKE: Final[dict[tuple[str, ...], Change]] = {
    alike: Change(alike=alike) for alike in ((MASQUERADE,), (OTHERWISE,), (MASQUERADE, OTHERWISE))
}


@value(kw_only=True)
class ComparedRoute:
    """A route of one dump, and what else is known of it.

    Attributes:
        otherwise: returns what happens to flows on it that reach no endpoint.
        filled: whether the rules after the frontend are there; they may not be in the middle of a
            sync.
    """

    route: Route
    otherwise: Callable[[], Otherwise]
    filled: bool = True


class _Side:
    """A route by columns.

    Attributes:
        even: how many endpoints there are, if one of them is certainly drawn, each with 1/n.
    """

    def __init__(
        self,
        asked: ComparedRoute,
        endpoints: Sequence[str],
        draws: Sequence[Bounds],
        even: int | None,
    ) -> None:
        self.asked = asked
        self.endpoints = endpoints
        self.draws = draws
        self.masks = asked.route.masquerades()
        self.even = even

    def shares(self) -> dict[str, Bounds]:
        """Return the share of each endpoint that rules name, by its printed form."""
        return dict(zip(self.endpoints, self.draws, strict=True))

    @cached_property
    def losses(self) -> dict[str, Endings]:
        """Of each endpoint how flows are lost after DNAT; empty if none is lost anywhere."""
        return dict(zip(self.endpoints, self.asked.route.losses(), strict=False))

    @cached_property
    def ended(self) -> frozenset[str]:
        """The endpoints whose flows are all lost after DNAT, so that their source is no matter."""
        # Flows that are lost for lack of masquerading are what a change of it is about.
        return frozenset(
            text
            for text, lost in self.losses.items()
            if total(b for end, b in lost if end != OWN_SOURCE) == ALWAYS
        )

    @cached_property
    def known(self) -> dict[str, Endpoint]:
        """The endpoints by their printed form."""
        return dict(zip(self.endpoints, self.asked.route.draws()[0], strict=True))


class RouteComparer:
    """Compares routes; equal draws are compared once."""

    def __init__(self) -> None:
        #: By identity; the draws are kept, so that no other object gets their identity.
        self._even: dict[int, tuple[Sequence[Bounds], int | None]] = {}
        #: The endpoints that were compared last: all sources of a Service have the same.
        self._compared: tuple[Sequence[str], Sequence[str], bool] = (), (), True

    def same(self, a: Route, b: Route) -> Change | None:
        """Return the change of routes where nothing differs; None: compare them fully.

        The rules after both frontends must be there.
        """
        if a.unresolved or b.unresolved:
            return None
        (of_a, draws_a), (of_b, draws_b) = a.columns(), b.columns()
        even = self._evenly(draws_a)
        if even is None or even != self._evenly(draws_b) or not self._equal(of_a, of_b):
            return None
        masks, losses = a.masquerades(), a.losses()
        if masks != b.masquerades() or losses != b.losses():
            return None
        alike: tuple[str, ...] = (MASQUERADE,) if None in masks else ()
        # Most lose nothing: then there is nothing to look at in each.
        if any(losses) and any(not bounds.is_exact for lost in losses for _, bounds in lost):
            alike = (*alike, OTHERWISE)
        return _ALIKE.get(alike, NO_CHANGE)

    def draws_alike(self, a: Drawn, b: Drawn) -> bool:
        """Return whether the same endpoints are drawn in both, each certainly with 1/n."""
        even = self._evenly(a.draws)
        return even is not None and even == self._evenly(b.draws) and a.printed() == b.printed()

    def _equal(self, a: Sequence[str], b: Sequence[str]) -> bool:
        one, other, equal = self._compared
        if one is not a or other is not b:
            equal = a == b
            self._compared = a, b, equal
        return equal

    def change(self, a: ComparedRoute, b: ComparedRoute) -> Change:
        """Return what differs for the sources of both."""
        if not a.filled or not b.filled:
            same = a.filled is b.filled and a.route.shares == b.route.shares
            return Change(alike=(SHARES,)) if same else Change(unknown=(SHARES,))
        return _Differences(self._side(a), self._side(b)).change()

    def _side(self, asked: ComparedRoute) -> _Side:
        endpoints, draws = asked.route.columns()
        even = None if asked.route.unresolved else self._evenly(draws)
        return _Side(asked, endpoints, draws, even)

    def _evenly(self, draws: Sequence[Bounds]) -> int | None:
        found = self._even.get(id(draws))
        if found is None:
            found = self._even[id(draws)] = draws, evenly_drawn(draws)
        return found[1]


class _Differences:
    """Finds what differs between two routes, and what may differ."""

    def __init__(self, a: _Side, b: _Side) -> None:
        self._a, self._b = a, b
        self._unknown: dict[str, None] = {}
        self._alike: dict[str, None] = {}

    def change(self) -> Change:
        a, b = self._a.even, self._b.even
        return Change(
            endpoints=tuple(self._endpoints()),
            each=None if a is None or b is None or a == b else (a, b),
            masquerade=tuple(self._masquerades()),
            otherwise=self._otherwise(),
            unknown=tuple(self._unknown),
            alike=tuple(self._alike),
        )

    def _endpoints(self) -> Iterator[EndpointChange]:
        a, b = self._a, self._b
        evenly = a.even is not None and b.even is not None
        in_a, in_b = a.shares(), b.shares()
        # An endpoint that rules do not name may get some of the unresolved flows.
        open_a = Bounds(NEVER, a.asked.route.unresolved)
        open_b = Bounds(NEVER, b.asked.route.unresolved)
        for text in {**in_a, **in_b}:
            if evenly and text in in_a and text in in_b:
                continue
            here, there = in_a.get(text, open_a), in_b.get(text, open_b)
            if self._differ(here, there, SHARES):
                yield EndpointChange(
                    (a if text in in_a else b).known[text],
                    here if here.upper else None,
                    there if there.upper else None,
                )

    def _differ(self, a: Bounds, b: Bounds, what: str) -> bool:
        """Return whether shares certainly differ, and note `what` if that is not known."""
        if certainly_differ(a, b):
            return True
        if not certainly_agree(a, b):
            (self._alike if a == b else self._unknown)[what] = None
        return False

    def _masquerades(self) -> Iterator[MasqueradeChange]:
        a, b = self._a, self._b
        in_b = dict(zip(b.endpoints, b.masks, strict=True))
        # What an endpoint sends itself is in the hairpin routes.
        itself = {
            network.network_address
            for side in (a, b)
            for network in side.asked.route.networks
            if network.num_addresses == 1
        }
        for text, mask in zip(a.endpoints, a.masks, strict=True):
            if text not in in_b or text in a.ended or text in b.ended:
                continue
            if itself and a.known[text].address in itself:
                continue
            other = in_b[text]
            if mask is None or other is None:
                (self._alike if mask is other else self._unknown)[MASQUERADE] = None
            elif mask is not other:
                yield MasqueradeChange(a.known[text], mask, other)

    def _otherwise(self) -> tuple[Otherwise, Otherwise] | None:
        if self._a.asked.route.source is Source.HAIRPIN:
            return self._lost_hairpins()
        a, b = _otherwise(self._a), _otherwise(self._b)
        return (a, b) if self._end_differently(a, b) else None

    def _lost_hairpins(self) -> tuple[Otherwise, Otherwise] | None:
        """Return what happens to flows that are sent back to their pod, of all endpoints together.

        Where else an endpoint's own flows go is in the other routes.
        """
        a, b = self._a.losses, self._b.losses
        common = [text for text in {**a, **b} if text in self._a.known and text in self._b.known]
        ended = self._a.ended | self._b.ended  # of which no change of masquerading is told
        ends = [
            tuple([_by_kind(lost.get(each, ()), is_ended=each in ended) for lost in (a, b)])
            for each in common
        ]
        differ = [each for each in ends if self._end_differently(*map(_outcomes, each))]
        if not differ:
            return None
        one, other = map(any_of, zip(*ends, strict=True))
        if one == other:  # what one endpoint loses in the first dump, another does in the second
            one, other = (any_of([each, ()]) for each in differ[0])
        return _outcomes(one), _outcomes(other)

    def _end_differently(self, a: Otherwise, b: Otherwise) -> bool:
        """Return whether flows certainly end differently, and note if that is not known."""
        in_a, in_b = dict(a), dict(b)
        open_a, open_b = in_a.pop(UNRESOLVED, _NONE), in_b.pop(UNRESOLVED, _NONE)
        differ = [
            self._differ(
                in_a.get(kind, Bounds(NEVER, open_a.upper)),
                in_b.get(kind, Bounds(NEVER, open_b.upper)),
                OTHERWISE,
            )
            for kind in {**in_a, **in_b}
        ]
        if not differ and (open_a.upper or open_b.upper):
            (self._alike if open_a == open_b else self._unknown)[OTHERWISE] = None
        return any(differ)


def _by_kind(lost: Endings, *, is_ended: bool) -> Endings:
    """Return how an endpoint's flows are lost; for lack of masquerading only if `is_ended`."""
    told = [(end, share) for end, share in lost if is_ended or end != OWN_SOURCE]
    return summed([(Ending(kind=end.kind), share) for end, share in told])


def _outcomes(lost: Endings) -> Otherwise:
    return tuple([(_OUTCOMES.get(end.kind, UNRESOLVED), share) for end, share in lost])


def _otherwise(side: _Side) -> Otherwise:
    route = side.asked.route
    if side.even is None and (route.unresolved or total(side.draws) != ALWAYS):
        return side.asked.otherwise()
    lost = [
        each
        for drawn, endings in zip(side.draws, route.losses(), strict=False)
        for each in part(_by_kind(endings, is_ended=True), drawn)
    ]
    return _outcomes(summed(lost))
