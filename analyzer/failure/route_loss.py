"""What happens to the new flows on one route: lost on dead endpoints, in other ways, or not."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence

from analyzer.failure.limits import allowed
from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint, Frontend, FrontendKind, Route, Source
from analyzer.model.endings import Ending, Endings, EndKind, part, summed, total
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic, capped_sum
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final


@enum.unique
class Count(enum.Enum):
    """Which flows count as lost: all, or only those to dead endpoints."""

    ALL = "all"
    DEAD = "dead"


@value(kw_only=True)
class RouteLoss:
    """What happens to the new flows on one route.

    Attributes:
        loss: the share that is lost, in the ways that count.
        nowhere: the share that is sent to no endpoint at all, whatever is dead.
        survives: the share that reaches a living endpoint.
        on_dead: the share that is sent to dead endpoints.
        otherwise: the other ways to be lost that count, and the share of each.
    """

    route: Route
    loss: Bounds
    nowhere: Bounds
    survives: Bounds
    on_dead: Bounds
    otherwise: Endings = ()

    @property
    def leads(self) -> bool:
        """Whether a new flow may reach an endpoint, dead or alive, or is lost on its way there."""
        return self.nowhere.lower != ALWAYS or bool(self.otherwise)

    def is_lost_beyond(self, most: Fraction) -> bool:
        """Return whether flows may be lost, and more than `most` reach no living endpoint."""
        if not self.loss.upper:
            return False
        lost = (~self.survives.lower).as_fraction()
        return lost > most and lost > allowed(most, len(self.route.shares))


def greatness(loss: Bounds) -> tuple[Dyadic, Dyadic]:
    """Return a key for ordering losses: the most that may be lost, then what certainly is."""
    return loss.upper, loss.lower


def route_loss(route: Route, dead: Dead) -> RouteLoss:
    """Return what happens to the flows of one route.

    Unresolved flows may end anywhere: on a dead endpoint if anything is dead, which the dump need
    not show, on a living one, or on none. With nothing dead they do not count as lost; what
    survives is a range.
    """
    return DrawnLosses(dead).of(route)


def counted(route: Route) -> Endings:
    """Return how flows of a route go astray, as far as that counts as a loss, and their shares.

    What kube-proxy refuses because there is no endpoint, or the source is not allowed, does not
    count. No host has a ClusterIP. Other addresses belong to some host: flows that kube-proxy
    leaves unchanged get there; for others that pass, or are not translated, the dump does not say
    whether anyone answers.
    """
    judged = [(ending, share, _counts(route, ending)) for ending, share in route.astray]
    return tuple(
        (ending, share if counts is Ternary.TRUE else Bounds(NEVER, share.upper))
        for ending, share, counts in judged
        if counts is not Ternary.FALSE and share.upper
    )


def _counts(route: Route, ending: Ending) -> Ternary:
    """Return whether flows of a route that end so are lost."""
    is_cluster_ip = route.frontend.kind is FrontendKind.CLUSTER_IP
    match ending.kind:
        case EndKind.REFUSED:
            return Ternary.FALSE
        case EndKind.DROPPED | EndKind.REJECTED | EndKind.UNANSWERED:
            return Ternary.TRUE
        case EndKind.LEFT_OVER | EndKind.UNCHANGED if is_cluster_ip or ending.how:
            return Ternary.TRUE
        case EndKind.UNCHANGED if not ending.rule:
            return Ternary.FALSE
        case _:
            return Ternary.UNKNOWN


def reaches_none(shares: Iterable[Bounds], unresolved: Dyadic) -> Bounds:
    """Return the share of flows that reach no endpoint, by the shares of all endpoints."""
    every = list(shares)
    certain = capped_sum(share.lower for share in every)
    possible = capped_sum([*(share.upper for share in every), unresolved])
    return Bounds(~possible, ~certain)


def away(astray: Endings, nowhere: Bounds, spared: Dyadic) -> Bounds:
    """Return the share of flows that go astray, as far as that counts as a loss: `counted`.

    Of two rules each may be the one that drops them, and one of them certainly is: so what
    certainly reaches no endpoint is lost except for what may end in a way that does not count
    (`spared`).
    """
    each = total(astray)
    least = ~capped_sum([~nowhere.lower, spared])
    return Bounds(max(each.lower, min(least, each.upper)), each.upper)


def uncounted(route: Route, nowhere: Bounds) -> Dyadic:
    """Return the greatest share of flows that go astray and may not count as lost.

    Flows that reach no endpoint, and end in none of the ways that the route lists, need not count
    either. Of a hairpin route it is not known: its shares are of many senders, each to itself.
    """
    if route.source is Source.HAIRPIN:
        return ALWAYS
    open_ = [share.upper for end, share in route.astray if _counts(route, end) is not Ternary.TRUE]
    unlisted = ~capped_sum([~nowhere.lower, total(route.astray).upper])
    return capped_sum([*open_, unlisted])


_NONE: Final = Bounds(NEVER, NEVER)
_ANY: Final = Bounds(NEVER, ALWAYS)


_MOST_KNOWN: Final = 4096


class KnownLosses:
    """Results that most Services of a node share, so that each is computed once.

    Keys are by identity; the objects are kept with the results.

    Attributes:
        endings: what is lost, what survives and how flows end, by draws and by the endings of
            each endpoint's flows.
        nowhere: what reaches no endpoint, by draws.
    """

    def __init__(self) -> None:
        self.endings: dict[tuple[object, ...], tuple[object, Bounds, Bounds, Endings]] = {}
        self.nowhere: dict[tuple[int, Dyadic], tuple[object, Bounds]] = {}

    def bound(self) -> None:
        """Forget everything once it is too much."""
        for held in (self.endings, self.nowhere):
            if len(held) > _MOST_KNOWN:
                held.clear()


class DrawnLosses:
    """What is lost of lists of draws; routes from most sources share them."""

    def __init__(
        self,
        dead: Dead,
        unfilled: Collection[Frontend] = (),
        count: Count = Count.ALL,
        known: KnownLosses | None = None,
    ) -> None:
        self._dead = dead
        self._unfilled = unfilled
        self.count = count
        # By identity; the lists are kept, so that no other list gets their identity.
        self._lost: dict[tuple[int, int, Dyadic], tuple[object, Bounds, Bounds]] = {}
        self._known = KnownLosses() if known is None else known
        self._known.bound()

    def of(self, route: Route) -> RouteLoss:
        """Bound what happens to the flows of a route."""
        return self.losing(route, route.losses())

    def losing(self, route: Route, lost: Sequence[Endings]) -> RouteLoss:
        """Bound what happens to the flows of a route if rules lose so much of each endpoint's."""
        if route.frontend in self._unfilled:
            # The middle of a sync, or an interrupted one: there may be endpoints again.
            loss = _ANY if self._dead.is_anything else _NONE
            return RouteLoss(route=route, loss=loss, nowhere=_ANY, survives=_ANY, on_dead=loss)
        endpoints, shares = route.draws()
        nowhere = self._reaches_none(shares, route.unresolved)
        key = id(endpoints), id(shares), route.unresolved
        if key not in self._lost:
            loss, survives = self._lot(endpoints, shares, route.unresolved, nowhere)
            self._lost[key] = (endpoints, shares), loss, survives
        _, loss, survives = self._lost[key]
        found = RouteLoss(route=route, loss=loss, nowhere=nowhere, survives=survives, on_dead=loss)
        if self.count is Count.DEAD:
            return found
        astray = counted(route)
        if not lost and not astray:
            return found
        return self._with_others(found, lost, astray)

    def _with_others(self, found: RouteLoss, lost: Sequence[Endings], astray: Endings) -> RouteLoss:
        """Return the loss of a route if flows are lost in other ways than on dead endpoints."""
        spared = uncounted(found.route, found.nowhere)
        gone = away(astray, found.nowhere, spared)
        if not lost:  # those that are sent on get there
            upper = capped_sum([found.loss.upper, gone.upper])
            lower = capped_sum([found.loss.lower, gone.lower])
            upper = max(lower, min(upper, ~found.survives.lower))
            # Whatever ends them, what can neither survive nor end uncounted is lost.
            sure = ~capped_sum([found.survives.upper, spared])
            loss = Bounds(max(lower, min(sure, upper)), upper)
            return replace(found, loss=loss, otherwise=astray)
        endpoints, shares = found.route.draws()
        open_ = found.route.unresolved
        dies = self._dead.is_anything or self._dead.uncertain
        alive = tuple(map(self._is_alive, endpoints)) if dies else ()
        key = id(shares), open_, spared, astray, gone, alive, *map(id, lost)
        known = self._known.endings
        if key not in known:
            sent = shares, alive or (True,) * len(shares), lost
            loss, survives, ends = self._with_lost(*sent, gone, open_, spared)
            known[key] = (shares, lost), loss, survives, summed((*astray, *ends))
        _, loss, survives, otherwise = known[key]
        return replace(found, loss=loss, survives=survives, otherwise=otherwise)

    def if_alive(self, endpoint: Endpoint) -> DrawnLosses:
        """Return the losses of flows that an endpoint sends: then it is alive."""
        if endpoint not in self._dead.uncertain:
            return self
        dead = replace(self._dead, uncertain=self._dead.uncertain - {endpoint})
        return DrawnLosses(dead, self._unfilled, self.count, self._known)

    @property
    def is_anything_dead(self) -> bool:
        """Whether anything is dead, whether or not it has endpoints in the dump."""
        return self._dead.is_anything

    def is_dead(self, endpoint: Endpoint) -> bool | None:
        """Return whether an endpoint is dead; None if that is not certain."""
        alive = self._is_alive(endpoint)
        return None if alive is None else not alive

    def _is_alive(self, endpoint: Endpoint) -> bool | None:
        """Return whether an endpoint is alive; None if that is not certain."""
        if endpoint in self._dead.endpoints:
            return False
        return None if endpoint in self._dead.uncertain else True

    def _with_lost(
        self,
        shares: Sequence[Bounds],
        alive: Sequence[bool | None],
        lost: Sequence[Endings],
        away: Bounds,
        unresolved: Dyadic,
        spared: Dyadic,
    ) -> tuple[Bounds, Bounds, Endings]:
        """Return what is lost, what survives, and how flows end in other ways than on the dead.

        `spared` is the greatest share that goes astray and may not count.
        """
        ends: list[tuple[Ending, Bounds]] = []
        least, most = [away.lower], [away.upper]
        kept_least: list[Dyadic] = []
        kept_most: list[Dyadic] = []
        for is_alive, share, endings in zip(alive, shares, lost, strict=True):
            if is_alive is False:  # what does not get there is no better off
                least.append(share.lower)
                most.append(share.upper)
                continue
            gone = total(endings)
            ends += part(endings, share)
            least.append(share.lower * gone.lower)
            kept_most.append(share.upper * ~gone.lower)
            if is_alive is None:
                most.append(share.upper)
            else:
                most.append(share.upper * gone.upper)
                kept_least.append(share.lower * ~gone.upper)
        # Unresolved flows may go to a dead endpoint, if anything is dead.
        hidden = unresolved if self._dead.is_anything else NEVER
        all_most = capped_sum([*most, hidden])
        kept = Bounds(capped_sum(kept_least), capped_sum([*kept_most, unresolved]))
        # Whatever ends them, what can neither survive nor end uncounted is lost.
        all_least = max(capped_sum(least), min(all_most, ~capped_sum([kept.upper, spared])))
        return (
            Bounds(all_least, max(all_least, min(all_most, ~kept.lower))),
            Bounds(kept.lower, max(kept.lower, min(kept.upper, ~all_least))),
            tuple(ends),
        )

    def _reaches_none(self, shares: Sequence[Bounds], unresolved: Dyadic) -> Bounds:
        key, known = (id(shares), unresolved), self._known.nowhere
        if key not in known:
            known[key] = shares, reaches_none(shares, unresolved)
        return known[key][1]

    def _lot(
        self,
        endpoints: Sequence[Endpoint],
        shares: Sequence[Bounds],
        unresolved: Dyadic,
        nowhere: Bounds,
    ) -> tuple[Bounds, Bounds]:
        """Return the shares that are sent to dead and to living endpoints."""
        dead, uncertain = self._dead.endpoints, self._dead.uncertain
        hidden = unresolved if self._dead.is_anything else NEVER
        if not hidden and all(not each or each.isdisjoint(endpoints) for each in (dead, uncertain)):
            return _NONE, Bounds(~nowhere.upper, ~nowhere.lower)
        drawn = list(zip(endpoints, shares, strict=True))
        lost = [share for end, share in drawn if end in dead]
        safe = [share for end, share in drawn if end not in dead and end not in uncertain]
        perhaps = [share for end, share in drawn if end in uncertain and end not in dead]
        most_lost = capped_sum([*(b.upper for b in (*lost, *perhaps)), hidden])
        least_lost = capped_sum(b.lower for b in lost)
        most_kept = capped_sum([*(b.upper for b in (*safe, *perhaps)), unresolved])
        least_kept = capped_sum(b.lower for b in safe)
        return (
            Bounds(least_lost, min(most_lost, ~least_kept)),
            Bounds(least_kept, min(most_kept, ~least_lost)),
        )
