"""The effect of a repair: the rules with the repair applied, analysed again."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analyzer.errors import InputError
from analyzer.failure.loss import ServiceLoss
from analyzer.failure.route_loss import RouteLoss
from analyzer.kubeproxy.view import Source, each_network
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.view import Frontend
    from analyzer.model.addresses import Network


@enum.unique
class RepairedOutcome(enum.Enum):
    """What happens to flows of a route that went to dead endpoints, or may have.

    COVERED: they are sent to living ones, where rules of other programs may still end them.
    REFUSED: none is left on this route; they are refused at once. LEFT: some may still go to dead
    ones.
    """

    COVERED = "covered"
    REFUSED = "refused"
    LEFT = "left"


@value(kw_only=True)
class Repaired:
    """One ServicePort with routes that led to dead endpoints.

    Attributes:
        routes: those, as they were, and what happens to their flows.
        after: for each of them, what is lost with the repair; None if the rules have no such route.
    """

    before: ServiceLoss
    routes: tuple[tuple[RouteLoss, RepairedOutcome], ...]
    after: tuple[RouteLoss | None, ...]

    def of(self, fate: RepairedOutcome) -> tuple[RouteLoss, ...]:
        """Return the routes with one fate."""
        return tuple(route for route, found in self.routes if found is fate)

    @property
    def still_lost(self) -> tuple[RouteLoss, ...]:
        """The routes, with the repair, whose flows no longer go to dead endpoints but may be lost.

        Rules of other programs end them.
        """
        every = zip(self.routes, self.after, strict=True)
        covered = [found for (_, fate), found in every if fate is RepairedOutcome.COVERED]
        return tuple(found for found in covered if found is not None and found.loss.upper)

    @property
    def fate(self) -> RepairedOutcome:
        """The worst fate of any route."""
        found = {each for _, each in self.routes}
        return next(
            f
            for f in (RepairedOutcome.LEFT, RepairedOutcome.REFUSED, RepairedOutcome.COVERED)
            if f in found
        )


_Key = tuple["Frontend", Source, "Network | None"]


def repaired(
    before: Iterable[ServiceLoss], after: Iterable[ServiceLoss], file: str
) -> Iterator[Repaired]:
    """Yield the ServicePorts that a repair affects, and its effect on each.

    Raises:
        InputError: it would change something else, so that it must not be applied.
    """
    then = {_name(each): each for each in after}
    for each in before:
        other = then.get(_name(each))
        routes = {} if other is None else {_key(f): f for f in _by_network(*other.routes)}
        dying = [route for route in each.routes if route.on_dead.upper]
        fates = [found for route in dying for found in _fates(route, routes)]
        affected = {route.route.frontend for route, _ in fates}
        for route in _by_network(*each.routes):
            if route.route.source is Source.HAIRPIN and route.route.frontend in affected:
                continue  # the living draw themselves more often
            if not route.on_dead.upper and not _is_same(route, routes.get(_key(route))):
                raise InputError(
                    f"{file}: a repair would change what happens to flows to "
                    f"{each.service.name.text} from {route.route.source.value} to "
                    f"{route.route.frontend}, which lose nothing to dead endpoints: these rules "
                    "are not repaired; narrow it with --service"
                )
        if fates:
            found = tuple(_found(route, routes) for route, _ in fates)
            yield Repaired(before=each, routes=tuple(fates), after=found)


def _name(loss: ServiceLoss) -> tuple[str, str, int | None]:
    return loss.service.name.text, loss.service.protocol, loss.service.version


def _key(loss: RouteLoss) -> _Key:
    return loss.route.frontend, loss.route.source, loss.route.network


def _by_network(*losses: RouteLoss) -> Iterator[RouteLoss]:
    """Yield the losses of routes of a single network each, or of none."""
    for loss in losses:
        for route in each_network([loss.route]):
            yield loss if route is loss.route else replace(loss, route=route)


def _fates(
    before: RouteLoss, after: Mapping[_Key, RouteLoss]
) -> list[tuple[RouteLoss, RepairedOutcome]]:
    """Return the outcome of a route, or of each of its networks if they differ."""
    found = [(each, _fate(each, after)) for each in _by_network(before)]
    return found if len({fate for _, fate in found}) > 1 else [(before, found[0][1])]


def _found(before: RouteLoss, after: Mapping[_Key, RouteLoss]) -> RouteLoss | None:
    frontend, source, network = _key(before)
    return after.get((frontend, source, network)) or after.get((frontend, source, None))


def _fate(before: RouteLoss, after: Mapping[_Key, RouteLoss]) -> RepairedOutcome:
    frontend, source, _ = _key(before)
    found = _found(before, after)
    if found is None:
        # Endpoints that are gone send nothing to themselves; a refused frontend has no routes.
        return (
            RepairedOutcome.REFUSED
            if not any(key[0] == frontend for key in after)
            else RepairedOutcome.COVERED
        )
    if found.on_dead.upper:
        return RepairedOutcome.LEFT
    if source is Source.HAIRPIN:  # its shares are of different senders
        return RepairedOutcome.COVERED
    return (
        RepairedOutcome.COVERED
        if found.nowhere.upper <= before.nowhere.upper
        else RepairedOutcome.REFUSED
    )


def _is_same(before: RouteLoss, after: RouteLoss | None) -> bool:
    """Return whether flows go where they went, with the source that they had."""
    return after is not None and _drawn(before) == _drawn(after)


def _drawn(loss: RouteLoss) -> Sequence[object]:
    route = loss.route
    endpoints, shares = route.draws()
    return sorted(zip(map(str, endpoints), shares, route.masquerades(), strict=True), key=str)
