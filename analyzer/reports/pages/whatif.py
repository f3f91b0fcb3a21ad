"""``whatif`` as a page: what each node, or any set of them, costs each ServicePort."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.route_loss import Count
from analyzer.model.value import replace
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.pages.explorer import explorer
from analyzer.reports.pages.frame import Page, rendered, until_table
from analyzer.reports.pages.incidence import LossInput, Variant, incidence
from analyzer.reports.phrases import at_node
from analyzer.reports.whatif_svg import drawn
from analyzer.reports.whatif_text import render as as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Failures of each kind, which the page shows in a table.
_TOP: Final = 20


def render(answer: WhatIfAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    blocks = as_text(replace(answer, top=_TOP)).blocks
    head, rest = until_table(blocks)
    where = at_node(answer.view)
    if answer.found.vantages:
        where = " at every node"
    asked = LossInput(
        services=_variants(answer),
        cluster=answer.cluster,
        count=Count.DEAD,
        is_together=True,
        is_whole=answer.is_whole,
        own=answer.view.node if not answer.every_node else None,
    )
    yield from rendered(
        Page(
            title=f"What failures would cost{where}",
            head=head,
            figures=explorer(drawn(answer, alone=False)),
            rest=rest,
            diagnostics=answer.diagnostics,
            data={"incidence": incidence(asked)},
        )
    )


def _variants(answer: WhatIfAnswer) -> list[list[Variant]]:
    """Return the variants of each ServicePort on the judged nodes."""
    if answer.every_node:
        return [[(at.service, at.nodes) for at in each.at] for each in answer.every_node]
    return [[(service, None)] for service in answer.found.services]
