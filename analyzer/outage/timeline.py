"""A simulated outage: the share of new flows lost over time, between two bounds.

Theory of operation
===================

The share that a route loses at first is that of `loss`, exactly as the rules draw it. It changes
when rules change: an endpoint that leaves them gives its share to the others, a pod that comes
takes some. When that happens is a `TimeBounds`, so that at each moment there is a set of endpoints
that certainly are still in the rules, and one of those that may be. The bounds are those over all
choices between the two: most is lost with as many dead ones as may be there, least with as few.
Rules that kube-proxy rewrites give n endpoints 1/n each; the kernel draws that to n / 2**31,
by which bounds are widened.

A route whose last endpoint has left refuses new flows: they are as lost as before, until a pod has
come in the place of one. Where the route draws only some of its Service's endpoints (hints for
zones), or nothing lists them all, it may lead to others by then, and that is a bound too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from analyzer.failure.loss import service_loss
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import Count, RouteLoss
from analyzer.kubeproxy.view import Endpoint, FrontendKind, Route, ServicePort, Source
from analyzer.model.services import ApiServicePort
from analyzer.model.value import value
from analyzer.outage.api_servers import is_api
from analyzer.outage.causes import Replacement
from analyzer.outage.clocks import NEVER, TimeBounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.services import ServicePortKey

_ZERO: Final = Fraction(0)
_ONE: Final = Fraction(1)
#: What one draw may be off: of iptables ten digits and 2**-31, of nft 2**-32.
#: Source: kube-proxy, pkg/proxy/iptables/proxier.go, ``computeProbability``; libxt_statistic.
_OFF: Final = Fraction(1, 1 << 31)


@value
class LossStep:
    """The share of new flows lost from some second on, until the next step."""

    since: Fraction
    lower: Fraction
    upper: Fraction


@value(kw_only=True)
class Curve:
    """The share that a route loses over time, as steps; the first is at 0.

    Attributes:
        until: seconds; where it ends.
    """

    steps: tuple[LossStep, ...]
    until: Fraction

    def pieces(self) -> Iterable[tuple[LossStep, Fraction]]:
        """Yield each step with the second at which it ends."""
        ends = [*(step.since for step in self.steps[1:]), self.until]
        return zip(self.steps, ends, strict=True)

    @property
    def lost(self) -> tuple[Fraction, Fraction]:
        """Seconds in which all flows would be lost, at least and at most: the integral."""
        pieces = [*self.pieces()]
        lower = sum((step.lower * (end - step.since) for step, end in pieces), _ZERO)
        upper = sum((step.upper * (end - step.since) for step, end in pieces), _ZERO)
        return lower, upper

    @property
    def over(self) -> TimeBounds:
        """When losses end; None of a bound: not before the end."""
        return TimeBounds(self._gone(lambda step: step.lower), self._gone(lambda step: step.upper))

    def at(self, second: Fraction) -> LossStep:
        """Return the step that a second is in."""
        return [step for step in self.steps if step.since <= second][-1]

    def _gone(self, share: Callable[[LossStep], Fraction]) -> Fraction | None:
        """Return from when on a bound is 0 until the end."""
        lost = [end for step, end in self.pieces() if share(step)]
        if not lost:
            return _ZERO
        return None if lost[-1] == self.until else lost[-1]


@value(kw_only=True)
class Played:
    """The simulated losses of one ServicePort.

    Attributes:
        route: the route that loses most over the whole time; None if none loses anything.
        first: what it loses with the present rules, least and most.
        fates: of its dead endpoints.
    """

    service: ServicePort
    route: Route | None
    first: tuple[Fraction, Fraction]
    curve: Curve
    fates: Mapping[Endpoint, Replacement]


@value(kw_only=True)
class Reboot:
    """The dump's node restarts at some second while the API is unavailable.

    Attributes:
        rules: when it has rules again.
    """

    at: Fraction
    rules: TimeBounds


def play(
    services: Sequence[ServicePort],
    died: Dead,
    fates: Callable[[ServicePort, Collection[Endpoint]], dict[Endpoint, Replacement]],
    specs: Mapping[ServicePortKey, ApiServicePort],
    until: Fraction,
    reboot: Reboot | None = None,
    unsettled: Sequence[TimeBounds] = (),
) -> tuple[Played, ...]:
    """Return the losses of each ServicePort up to a time.

    Args:
        services: of a dump.
        died: what is dead from the beginning.
        fates: returns the replacement of dead endpoints.
        specs: the objects' ServicePorts by their keys; empty if endpoints are not listed.
        until: seconds.
        reboot: of the node whose rules these are.
        unsettled: from when to when endpoints of living nodes may be missing from the rules.
    """
    player = _Player(died, fates, until, reboot, unsettled)
    return tuple(
        player.played(service, specs.get((service.name.text, service.protocol, service.version)))
        for service in services
    )


class _Player:
    """Plays one outage for any ServicePort."""

    def __init__(
        self,
        died: Dead,
        fates: Callable[[ServicePort, Collection[Endpoint]], dict[Endpoint, Replacement]],
        until: Fraction,
        reboot: Reboot | None,
        unsettled: Sequence[TimeBounds],
    ) -> None:
        self._died = died
        self._fates = fates
        self._until = until
        self._reboot = reboot
        self._unsettled = unsettled

    def played(self, service: ServicePort, spec: ApiServicePort | None) -> Played:
        """Return the losses of one ServicePort, on the route that loses most."""
        died = self._died
        gone = [end for end in service.endpoints if end in died.endpoints or end in died.uncertain]
        found = self._fates(service, gone)
        # No node's kubelet decides about API servers.
        unsettled = () if is_api(service) else self._unsettled
        best: tuple[tuple[Fraction, Fraction], RouteLoss, Curve] | None = None
        seen: set[tuple[int, int, object, bool]] = set()
        for each in service_loss(service, died, Count.DEAD).routes:
            endpoints, shares = each.route.draws()
            key = id(endpoints), id(shares), each.route.unresolved, _is_local(each.route, spec)
            if key in seen or not each.leads:
                continue  # routes from most sources share one list object
            seen.add(key)
            route = _Route(each, service, died, found, spec)
            curve = route.curve(self._until, self._reboot, unsettled)
            lower, upper = curve.lost
            if best is None or (upper, lower) > best[0]:
                best = (upper, lower), each, curve
        if best is None:
            nothing = Curve(steps=(LossStep(_ZERO, _ZERO, _ZERO),), until=self._until)
            return Played(
                service=service, route=None, first=(_ZERO, _ZERO), curve=nothing, fates=found
            )
        (upper, _), worst, curve = best
        return Played(
            service=service,
            route=worst.route if upper else None,
            first=(worst.loss.lower.as_fraction(), worst.loss.upper.as_fraction()),
            curve=curve,
            fates=found,
        )


def _is_local(route: Route, spec: ApiServicePort | None) -> bool:
    """Return whether a policy leaves the route only endpoints of the node."""
    if spec is None:
        return False
    if route.frontend.kind is FrontendKind.CLUSTER_IP:
        return spec.internal_local
    return spec.external_local is True and route.source is Source.EXTERNAL


class _Route:
    """Bounds what one route loses at a moment."""

    def __init__(
        self,
        loss: RouteLoss,
        service: ServicePort,
        died: Dead,
        fates: Mapping[Endpoint, Replacement],
        spec: ApiServicePort | None,
    ) -> None:
        route = loss.route
        endpoints, _ = route.draws()
        drawn = list(dict.fromkeys(endpoints))
        self._all = len(drawn)
        self._dead = [end for end in drawn if end in died.endpoints]
        self._perhaps = [e for e in drawn if e in died.uncertain and e not in died.endpoints]
        self._fates = fates
        self._is_vague = not route.is_exact or route.frontend in service.unfilled
        self._first = loss.loss.lower.as_fraction(), loss.loss.upper.as_fraction()
        nowhere = loss.nowhere
        self._leads = (~nowhere.upper).as_fraction(), (~nowhere.lower).as_fraction()
        self._is_anything = died.is_anything
        local = _is_local(route, spec)
        hints = spec is not None and any(e.zones or e.nodes for e in spec.endpoints)
        listed = (
            set() if spec is None else {(e.address, e.port) for e in spec.endpoints if e.is_ready}
        )
        more = spec is None or not listed or not listed.issubset((e.address, e.port) for e in drawn)
        #: Rules that are rewritten may draw others than these rules do.
        self._may_widen = hints or (more and not local)
        #: Pods that come in their place are certainly drawn.
        self._draws_new = spec is not None and not (local or hints or more)

    def curve(
        self, until: Fraction, reboot: Reboot | None, unsettled: Sequence[TimeBounds]
    ) -> Curve:
        """Return what the route loses, second by second."""
        fates = [self._fates[end] for end in (*self._dead, *self._perhaps)]
        spans = [span for f in fates for span in (f.removed, f.replaced, f.returns)]
        if reboot is not None:
            spans += [reboot.rules, TimeBounds(reboot.at, reboot.at)]
        spans += unsettled
        times = {_ZERO, *(t for s in spans for t in (s.earliest, s.latest) if t is not None)}
        steps: list[LossStep] = []
        for time in sorted(each for each in times if each < until):
            lower, upper = self._at(time)
            if any(_may(span, time) and not _must(span, time) for span in unsettled):
                upper = max(upper, self._leads[1])
            if reboot is not None and reboot.at <= time:
                lower, upper = _rebooted(reboot, time, (lower, upper), self._leads)
            if not steps or (steps[-1].lower, steps[-1].upper) != (lower, upper):
                steps.append(LossStep(time, lower, upper))
        return Curve(steps=tuple(steps), until=until)

    def _at(self, time: Fraction) -> tuple[Fraction, Fraction]:
        """Return what is lost at a moment, over all that may have happened by then."""
        fates = {end: self._fates[end] for end in (*self._dead, *self._perhaps)}
        # Dead and in the rules: for certain, and perhaps.
        certainly = {
            end
            for end, fate in fates.items()
            if not _may(fate.removed, time) and not _may(fate.returns, time)
        }
        maybe = {
            end
            for end, fate in fates.items()
            if not _must(fate.removed, time) and not _must(fate.returns, time)
        }
        may_come = [fate for fate in fates.values() if _may(fate.replaced, time)]
        if len(certainly) == len(fates) and not may_come:
            return self._first
        if self._is_vague:
            return _ZERO, self._leads[1] if self._is_anything else _ZERO
        # What new flows may reach beside them: at least, and at most.
        # Who may live is not certainly replaced.
        came = [end for end in self._dead if _must(fates[end].replaced, time)]
        few = self._all - len(fates) + (len(came) if self._draws_new else 0)
        few += len([f for f in fates.values() if _must(f.returns, time) and f.removed == NEVER])
        many = self._all - len(fates) + len(self._perhaps)
        many += len(may_come)
        many += len([end for end in self._dead if _may(fates[end].returns, time)])
        is_first = len(maybe) == len(fates) and not came
        lower = self._share(len([e for e in self._dead if e in certainly]), many, up=False)
        # Of rules that are still as they were the share is known better.
        upper = self._share(len(maybe) - is_first, few, up=True)
        if self._may_widen:
            lower, upper = _ZERO, self._leads[1] if maybe or not few else upper
        if is_first:
            lower, upper = min(lower, self._first[0]), max(upper, self._first[1])
        return lower, min(upper, _ONE)

    def _share(self, dead: int, others: int, *, up: bool) -> Fraction:
        """Return the share of the dead among equally drawn endpoints, rounded outwards."""
        leads = self._leads[1] if up else self._leads[0]
        if not dead:
            # No endpoint is left to draw: every flow is refused.
            return leads if not others else _ZERO
        if not others:
            return leads
        off = (dead + others) * _OFF
        share = Fraction(dead, dead + others) * leads
        return min(leads, share + off) if up else max(_ZERO, share - off)


def _may(span: TimeBounds, time: Fraction) -> bool:
    return span.earliest is not None and span.earliest <= time


def _must(span: TimeBounds, time: Fraction) -> bool:
    return span.latest is not None and span.latest <= time


def _rebooted(
    reboot: Reboot,
    time: Fraction,
    otherwise: tuple[Fraction, Fraction],
    leads: tuple[Fraction, Fraction],
) -> tuple[Fraction, Fraction]:
    """Return what is lost at a node that has restarted: everything, until it has rules again."""
    if _must(reboot.rules, time):
        return otherwise
    if _may(reboot.rules, time):
        return min(otherwise[0], leads[0]), max(otherwise[1], leads[1])
    return leads
