"""``whatif`` as SVG, for documents: the heat map of ServicePorts by nodes."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.pictures.heat import heat
from analyzer.reports.whatif_order import services_in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: ServicePorts and nodes that are drawn; with --all each.
_MOST_SERVICES: Final = 40
_MOST_NODES: Final = 20


def render(answer: WhatIfAnswer) -> Iterator[str]:
    """Yield the picture in pieces."""
    yield from drawn(answer, alone=True)


def drawn(answer: WhatIfAnswer, *, alone: bool) -> Iterator[str]:
    """Yield the picture of the most fragile ServicePorts and the costliest nodes."""
    found = answer.found
    services = [at for at, _ in services_in_order(answer)]
    nodes = [each.groups[0] for each in found.of_nodes] or [*range(len(found.nodes.groups))]
    if not answer.every:
        services, nodes = services[:_MOST_SERVICES], nodes[:_MOST_NODES]
    yield from heat(found, services, nodes, alone=alone)
