"""``pinned`` for people: flows pinned to endpoints that do not answer."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.pinned import Pinned, Why
from analyzer.model.cluster import Cluster
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style
from analyzer.reports.flow_answers import PinnedAnswer
from analyzer.reports.phrases import count, proto
from analyzer.reports.pod_column import with_pods

_COLUMNS = (
    Column("SERVICE PORT", shortens=True),
    Column("PROTO", spare=2),
    Column("FRONTEND", begins=True),
    Column("ENDPOINT"),
    Column("NODE", spare=1),
    Column("FLOWS", right=True),
    Column("UNANSWERED", right=True, spare=3),
    Column("FOR", right=True),
    Column("WHY", foldable=True, begins=True),
)
#: Codes of the notes that some flows are not judged.
_OPEN = frozenset({"open-endpoints", "unplaced-endpoints"})
_WORDS = {
    Why.DEAD: "dead",
    Why.STALE: "no longer one of its endpoints",
    Why.FOREIGN: "the address is another pod's",
}


def render(answer: PinnedAnswer) -> Document:
    """Return the flows by endpoint, and the commands that delete them."""
    return Document([*_blocks(answer)])


def _blocks(answer: PinnedAnswer) -> Iterator[Block]:
    stays = sum(each.flows for each in answer.pinned)
    is_open = any(each.code in _OPEN for each in answer.diagnostics)
    style = Style.BAD if stays else Style.WARNING if is_open else Style.GOOD
    yield Line(
        (
            Span(f"{count(stays, 'flow')} {'known to be ' if is_open else ''}pinned", style),
            f", of {answer.owned:,} to Services ({answer.flows:,} that conntrack has).",
        )
    )
    if not answer.dead.is_anything:
        says = (
            "Nothing marked dead: only stale endpoints, and addresses that now belong to other "
            "pods, are listed."
        )
        yield Line((Span(says, Style.FAINT),))
    for endpoint, owner in answer.foreign.items():
        says = (
            f"Wrong pod: {endpoint} now belongs to {owner} in the objects; new flows go there too."
        )
        yield Line((Span(says, Style.BAD),))
    if not answer.pinned:
        return
    yield Line()
    yield with_pods(_COLUMNS, [tuple(_row(each, answer.cluster)) for each in answer.pinned])
    yield Line()
    yield Line(("To have them drawn again, run on this node; DNS and UDP first:",))
    for each in answer.pinned:
        yield Line((Span(each.command, Style.STRONG),), whole=True)


def _row(each: Pinned, cluster: Cluster) -> Iterator[Cell]:
    yield each.service.name.text
    yield proto(each.service.protocol, each.service.version)
    yield str(each.destination)
    yield Span(str(each.endpoint), Style.BAD)
    yield cluster.placement(each.endpoint.address).node or "?"
    yield f"{each.flows:,}"
    yield f"{each.unanswered:,}"
    yield "?" if each.seconds is None else f"{each.seconds:,} s"
    yield f"{_WORDS[each.why]}: {each.owner}" if each.owner is not None else _WORDS[each.why]
    pod = cluster.pods.of(each.endpoint.address, each.endpoint.port)
    yield pod if pod is not None and each.owner is None else ""
