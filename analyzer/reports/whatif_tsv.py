"""``whatif`` as TSV: one line for each failure.

Columns: kind of the failure; the nodes, or the zone, that fail, with commas between; lower and
upper bound of the worst loss, the ServicePort and its protocol, frontend and source that it is of;
lower and upper bound of the mean loss; how many ServicePorts are in total loss, how many lose a
part, and of how many it is not known; the nodes where the worst loss is, with commas between, or
nothing where that is every live node; what is left of the API (up, read-only, down, unknown),
whether dead endpoints leave the rules then, and whether pods are replaced (yes, no, unknown), or
nothing where no control plane is known. Losses are decimal, the nearest numbers with 53 bits; the
means are right to 12 digits.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.incidence import RouteRow
from analyzer.failure.whatif import Failure
from analyzer.model.ternary import Ternary
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.route_networks import networks
from analyzer.reports.tsv import cell
from analyzer.reports.whatif_order import mean_loss
from analyzer.reports.whatif_vantages import dead_nodes, names_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_HEADINGS: Final = (
    "kind",
    "names",
    "lower",
    "upper",
    "service",
    "protocol",
    "frontend",
    "from",
    "mean_lower",
    "mean_upper",
    "silenced",
    "degraded",
    "unknown",
    "at",
    "api",
    "heals",
    "replaces",
)
_TERNARY: Final = {Ternary.TRUE: "yes", Ternary.FALSE: "no", Ternary.UNKNOWN: "unknown"}


def render(answer: WhatIfAnswer) -> Iterator[str]:
    """Yield the lines, header first."""
    yield "\t".join(_HEADINGS) + "\n"
    for failure in answer.found.failures():
        yield "\t".join(_columns(answer, failure)) + "\n"


def _columns(answer: WhatIfAnswer, failure: Failure) -> Iterator[str]:
    cost, worst = failure.cost, failure.worst
    yield failure.kind.value
    yield cell(",".join(failure.names))
    if worst is None or cost.row is None or not worst.upper:
        yield from ("0.0", "0.0", "", "", "", "")
    else:
        yield from (repr(float(worst.lower)), repr(float(worst.upper)))
        yield from _where(answer, cost.row)
    yield from map(repr, mean_loss(answer, cost))
    yield from map(str, (len(cost.silenced), cost.degraded, cost.unknown))
    yield cell(",".join(names_at(answer, cost.row, dead_nodes(answer, failure)) or ()))
    plane = answer.control_plane_after(failure)
    if plane is None:
        yield from ("", "", "")
    else:
        yield plane.state.value
        yield from (_TERNARY[plane.heals], _TERNARY[plane.replaces])


def _where(answer: WhatIfAnswer, row: RouteRow) -> Iterator[str]:
    service, route = answer.found.service(row), row.route
    yield cell(service.name.text)
    yield service.protocol
    yield f"{route.frontend.kind.value} {route.frontend}"
    source = route.source.value
    yield source if route.network is None else f"{source} in {networks(route)}"
