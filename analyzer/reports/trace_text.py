"""``trace`` for people: where a packet can end, and its journey there, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.reports.answers import TraceAnswer
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.phrases import count
from analyzer.reports.tree_lines import ALL, Pieces, lines
from analyzer.semantics.fate import Fate, PacketEnd, fate_of
from analyzer.semantics.tree import Delivered, Leaf, Unresolved

_COLUMNS: Final = (
    Column("OF NEW FLOWS", right=True),
    Column("EXACT", right=True, spare=2),
    Column("END", foldable=True),
    Column("NODE", shortens=True),
    Column("SOURCE", spare=1),
)
_DEAD: Final = Column("")
_POD: Final = Column("POD", shortens=True, spare=1)
#: Rows of the table, and branches of the journey, that a person reads; JSON has all.
_MOST_ROWS: Final = 20
_MOST_BRANCHES: Final = 3

_STYLES: Final = {
    "endpoint": Style.GOOD,
    "local": Style.GOOD,
    "no-service": Style.PLAIN,
    "drop": Style.BAD,
    "reject": Style.BAD,
    "unanswered": Style.BAD,
    "unresolved": Style.WARNING,
}


def render(answer: TraceAnswer) -> Document:
    """Return the ends as a table, then the path, then what both are based on."""
    at = f", at node {answer.node}" if answer.node else ""
    blocks: list[Block] = [Line((Span(asked_of(answer.packet), Style.STRONG), at)), Line()]
    rows = [_row(end, answer) for end in answer.ends]
    shown = rows if answer.every or len(rows) <= 2 * _MOST_ROWS else rows[:_MOST_ROWS]
    columns: tuple[Column, ...] = (
        _COLUMNS if answer.state == "NEW" else (Column("OF PACKETS", right=True), *_COLUMNS[1:])
    )
    if answer.dead is not None:
        columns = (*columns, _DEAD)
    pods = [_pod(end.fate, answer) for end in answer.ends[: len(shown)]]
    if any(pods):
        columns = (*columns, _POD)
        shown = [(*row, pod) for row, pod in zip(shown, pods, strict=True)]
    blocks += [TextTable(columns, tuple(shown)), Line()]
    if len(shown) < len(rows):
        more = count(len(rows) - len(shown), "more end")
        blocks += [Line((Span(f"{more}; -v shows all", Style.FAINT),)), Line()]
    most = ALL if answer.every else _MOST_BRANCHES
    journey = lines(answer.tree, partial(end_of, answer), tables=True, most=most)
    blocks += [Line(pieces) for pieces in journey]
    blocks += [Line(), *_assumed(answer)]
    return Document(blocks)


def asked_of(packet: Packet) -> str:
    """Return the description of a packet, as a phrase."""
    source = "the node" if packet.in_interface == NO_DEVICE else "any source"
    if packet.source is not None:
        source = str(Endpoint(packet.source, packet.source_port))
    destination = "any destination"
    if packet.destination is not None:
        destination = str(Endpoint(packet.destination, packet.destination_port))
    device = f", in by {packet.in_interface}" if packet.in_interface else ""
    return f"{packet.protocol} from {source} to {destination}{device}"


def _row(end: PacketEnd, answer: TraceAnswer) -> tuple[Cell, ...]:
    fate, probability = end.fate, end.probability
    node = None if fate.address is None else answer.cluster.placement(fate.address).node
    source = {True: "masqueraded", False: "kept", None: ""}[end.masquerade]
    is_dead = answer.is_dead(fate)
    style = Style.BAD if is_dead else _STYLES[fate.kind]
    dead = (
        Span("dead?", Style.WARNING) if is_dead is None else Span("DEAD" if is_dead else "", style)
    )
    told_end = Span(told(fate), style)
    of = bounds_percent(probability), bounds_fraction(probability)
    return (*of, told_end, node or "", source, *((dead,) if answer.dead is not None else ()))


def _pod(fate: Fate, answer: TraceAnswer) -> str:
    """Return the pod at which a flow ends; nothing where that is not known."""
    if fate.kind not in {"endpoint", "unanswered"} or fate.address is None:
        return ""
    return answer.cluster.pods.of(fate.address, fate.port) or ""


def told(fate: Fate) -> str:
    """Return a fate as a phrase."""
    address = None if fate.address is None else str(Endpoint(fate.address, fate.port))
    match fate.kind:
        case "endpoint":
            return str(address)
        case "unanswered":
            return f"{address}, and {fate.how}"
        case "local":
            return f"the node itself{f', {address}' if address else ''}"
        case "no-service":
            return f"forwarded unchanged to {address}"
        case "drop":
            return f"dropped by the {fate.how}" if fate.how else "dropped"
        case "reject":
            return f"rejected with {fate.how or 'icmp-port-unreachable'}"
        case _:
            return "not known"


def end_of(answer: TraceAnswer, leaf: Leaf) -> Pieces:
    """Return how a path ends; the style shows whether the packet is lost."""
    if isinstance(leaf.outcome, Unresolved):
        return (Span(f"=> unknown: {leaf.outcome.text}", Style.WARNING),)
    fate = fate_of(leaf)
    masked = ", masqueraded" if leaf.packet.masqueraded else ""
    here = ", on this node" if leaf.outcome == Delivered(here=True) else ""
    masked = f"{here if fate.kind == 'endpoint' else ''}{masked}"
    pod = _pod(fate, answer)
    masked = f"{f' ({pod})' if pod else ''}{masked}"
    is_dead = answer.is_dead(fate)
    masked += " DEAD" if is_dead else " dead?" if is_dead is None else ""
    style = Style.BAD if is_dead else _STYLES[fate.kind]
    return (Span(f"=> {told(fate)}{masked}", style),)


def _assumed(answer: TraceAnswer) -> Iterator[Line]:
    yield Line((Span("Assumed:", Style.FAINT),))
    for each in answer.assumptions:
        yield Line((Span(f"  {each}", Style.FAINT),))
    if any("affinity list" in each for each in answer.assumptions):
        says = (
            "Session affinity: a client that an endpoint remembers goes there with every flow, and "
            "loses everything or nothing; --affinity IP:PORT traces one."
        )
        yield Line((Span(says, Style.WARNING if answer.dead else Style.FAINT),))
