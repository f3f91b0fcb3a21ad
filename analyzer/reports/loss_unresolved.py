"""``loss`` with nothing dead: flows of which the rules leave open where they end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.failure.loss import LossState, ServiceLoss
from analyzer.model.probability import ALWAYS, Dyadic
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.numbers import percent
from analyzer.reports.phrases import listed, named


def unresolved(losses: Iterable[ServiceLoss]) -> Iterator[Line]:
    """Yield the ServicePorts with such flows, and the greatest share of them.

    With nothing dead they are not counted as lost, nor are they known to be answered.
    """
    shares = {named(each.service): share for each in losses if (share := _share(each))}
    if shares:
        most = max(shares.values())
        upto = percent(most, up=None if most == ALWAYS else True)
        says = f"Not known where up to {upto} of new flows end, with nothing dead: "
        says += f"{listed([*shares])}. They may be lost; see kubeodds services."
        yield Line((Span(says, Style.WARNING),))


def _share(loss: ServiceLoss) -> Dyadic | None:
    """Return the greatest share of a route that is open; None: no flow is."""
    if loss.service.unfilled or (loss.state is LossState.UNKNOWN and not loss.routes):
        return ALWAYS
    open_ = [route.unresolved for route in loss.service.routes if route.unresolved]
    return max(open_, default=None)
