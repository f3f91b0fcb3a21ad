"""``loss`` of several nodes for people: the worst node of each ServicePort, then node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from analyzer.failure.loss import HARM, LossState, ServiceLoss
from analyzer.failure.loss import losses as losses_of
from analyzer.failure.loss_at_nodes import by_service_port, together
from analyzer.kubeproxy.absent import Absent
from analyzer.model.value import replace, value
from analyzer.reports.affinity import affinity_note
from analyzer.reports.answers import LossAnswer, LossNodesAnswer
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.loss_nowhere import nowhere
from analyzer.reports.loss_overview import overview
from analyzer.reports.loss_rows import brief, whole
from analyzer.reports.loss_steps import steps
from analyzer.reports.loss_summary import doubts, harm, threshold
from analyzer.reports.loss_text import table
from analyzer.reports.loss_words import STYLES, by_harm, dead_words
from analyzer.reports.not_judged import lines
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import assumed, count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_COLUMNS: Final = (
    Column("NODE", shortens=True),
    Column("TOTAL LOSS", right=True),
    Column("PARTIAL", right=True),
    Column("UNKNOWN", right=True),
    Column("UNTOUCHED", right=True, spare=1),
    Column("WORST", right=True),
    Column("OF", shortens=True),
)
_COUNTED: Final = (LossState.SILENCED, LossState.DEGRADED, LossState.UNKNOWN, LossState.UNTOUCHED)
#: Kinds of nodes, and ServicePorts, that leave room for the rest on a screen of 24 lines.
_MOST_KINDS: Final = 4
_MOST: Final = 6
#: Nodes that are named one by one.
_MOST_NAMED: Final = 3
_FEWER: Final = 4


@value
class _Alike:
    """Nodes at which all ServicePorts lose the same."""

    nodes: tuple[str, ...]
    losses: tuple[ServiceLoss, ...]
    answer: LossAnswer


def render(answer: LossNodesAnswer) -> Document:
    """Return the summary over all nodes, the worst ServicePorts, and how nodes differ."""
    losses = [each.loss for each in answer.worst]
    if not answer.dead.is_anything:
        return _overview(answer)
    kinds = _kinds(answer)
    is_alike = len(kinds) == 1
    at = None
    everywhere = {id(each.loss) for each in answer.worst if each.is_silenced_everywhere}
    if not is_alike:
        at = {id(each.loss): _nodes(each.nodes, len(answer.answers)) for each in answer.worst}
    blocks: list[Block] = [
        Line(("Dead: ", Span(dead_words(answer.dead), Style.STRONG))),
        *doubts(answer.dead, answer.cluster),
        *_seen(answer, alike=is_alike),
        *harm(by_harm(losses), is_whole=answer.is_whole, at=at, everywhere=everywhere),
        *threshold(answer.threshold),
    ]
    if at is None:
        hit = [each for each in losses if each.worst.upper]
        worst = table(kinds[0].answer, losses, hit)
    else:
        blocks += _by_node(kinds, answer)
        worst = _worst(answer, losses, at)
    for part in (worst, dict.fromkeys(_notes(answer))):
        told = [*part]
        blocks += [Line(), *told] if told else []
    if not is_alike and (answer.every or answer.narrowed):
        for kind in kinds:
            blocks += _section(kind, answer)
    elif not answer.quiet:
        told = [*steps(kinds[0].answer)]
        blocks += [Line(), *told] if told else []
    pinned = [*dict.fromkeys(_pinned(answer, losses))]
    return Document([*blocks, *([Line(), *pinned] if pinned else [])])


def _pinned(answer: LossNodesAnswer, losses: Sequence[ServiceLoss]) -> Iterator[Line]:
    hit = [each.service for each in losses if each.worst.upper]
    modes = {each.view.mode for each in answer.answers.values()}
    for mode in sorted(modes, key=attrgetter("value")):
        yield from affinity_note(hit, mode, lost=True)


def _overview(answer: LossNodesAnswer) -> Document:
    """Return what could be marked dead, and what it would cost at the worst node."""
    found = by_service_port({name: each.losses for name, each in answer.answers.items()})
    services = tuple(map(together, found))
    first = next(iter(answer.answers.values()))
    # Of what is not judged is said at which node that is.
    view = replace(
        first.view, node=None, services=services, cut=(), left_out=(), unled=(), in_part=()
    )
    everywhere = replace(first, view=view, losses=losses_of(services, answer.dead), absent=Absent())
    head, *rest = overview(everywhere).blocks
    return Document([head, *_seen(answer, alike=False), *_notes(answer), *rest])


def _nodes(names: Sequence[str], number: int = 0) -> str:
    """Return which nodes these are; `number` is of all nodes, where that is worth saying."""
    if len(names) == number:
        return "every node"
    more = f" and {len(names) - 1:,} more" if names[1:] else ""
    return f"{names[0]}{more}"


def _seen(answer: LossNodesAnswer, *, alike: bool) -> Iterator[Line]:
    """Say at which nodes losses are judged, and why not at others."""
    judged = [*answer.answers]
    of = f" of {len(answer.nodes):,}" if len(judged) < len(answer.nodes) else ""
    same = ", the same at each" if alike and judged[1:] else ""
    more = f" and {len(judged) - _MOST_NAMED:,} more" if len(judged) > _MOST_NAMED else ""
    names = ", ".join(judged[:_MOST_NAMED])
    yield Line((f"Judged at {len(judged):,}{of} nodes{same}: {names}{more}.",))
    dead = [each.name for each in answer.nodes if each.is_dead]
    if dead:
        verb = "is dead and sends" if len(dead) == 1 else "are dead and send"
        yield Line((Span(f"Left out: {listed(dead)}, which {verb} no flows.", Style.FAINT),))
    for each in answer.unjudged:
        yield Line((Span(f"Not judged: {each.name}: {each.why}", Style.WARNING),))


def _kinds(answer: LossNodesAnswer) -> list[_Alike]:
    """Return the nodes by what is lost there, those with the greatest harm first."""
    found: dict[object, list[str]] = {}
    for name, each in answer.answers.items():
        found.setdefault(frozenset(map(_told, each.losses)), []).append(name)
    kinds = [
        _Alike(
            tuple(names),
            tuple(by_harm(answer.answers[names[0]].losses)),
            answer.answers[names[0]],
        )
        for names in found.values()
    ]
    return sorted(kinds, key=_rank)


def _told(loss: ServiceLoss) -> object:
    """Return what makes two nodes unlike: a state, a loss of a route, or dead endpoints."""
    service = loss.service
    routes = frozenset((e.route.frontend, e.route.source, e.loss, e.nowhere) for e in loss.routes)
    return service.name.text, service.protocol, service.version, loss.state, routes, loss.dead


def _rank(kind: _Alike) -> tuple[object, ...]:
    counts = Counter(each.state for each in kind.losses)
    first = kind.losses[0] if kind.losses else None
    worst = (0.0, 0.0) if first is None else (-float(first.worst.upper), -float(first.worst.lower))
    return (
        *(-counts[state] for state in HARM if state is not LossState.UNTOUCHED),
        worst,
        kind.nodes,
    )


def _by_node(kinds: Sequence[_Alike], answer: LossNodesAnswer) -> Iterator[Block]:
    shown = kinds if answer.every else kinds[:_MOST_KINDS]
    yield Line()
    yield TextTable(_COLUMNS, tuple(map(_row, shown)))
    more = sum(len(each.nodes) for each in kinds[len(shown) :])
    if more:
        says = f"{count(more, 'more node')}, none worse: --all"
        yield Line((Span(says, Style.FAINT),))


def _row(kind: _Alike) -> tuple[Cell, ...]:
    counts = Counter(each.state for each in kind.losses)
    first = kind.losses[0]
    alike = sum((e.state, e.worst) == (first.state, first.worst) for e in kind.losses)
    more = f" and {alike - 1:,} more" if alike > 1 else ""
    return (
        Span(_nodes(kind.nodes), Style.STRONG),
        *[_number(counts[state], state) for state in _COUNTED],
        Span(bounds_percent(first.worst), STYLES[first.state]),
        f"{first.service.name.text}{more}" if first.worst.upper else "",
    )


def _number(counted: int, state: LossState) -> Span:
    return Span(f"{counted:,}", STYLES[state] if counted else Style.FAINT)


def _worst(
    answer: LossNodesAnswer, losses: Sequence[ServiceLoss], at: Mapping[int, str]
) -> Iterator[Block]:
    """Yield a line for each ServicePort that is hit, or for all, at its worst node."""
    each_node = answer.every or answer.narrowed
    rows = losses if answer.brief else [each for each in losses if each.worst.upper]
    is_all = answer.brief or each_node or len(rows) <= _MOST
    shown = rows if is_all else rows[:_FEWER]
    if shown:
        yield brief(shown, at)
    rest = ""
    if len(shown) < len(rows):
        which = " hit" if answer.in_order else ", none worse"
        rest = f"{count(len(rows) - len(shown), 'more ServicePort')}{which}: --summary. "
    if shown and not each_node:
        says = f"{rest}Node by node: --all, --service, -n"
        yield Line((Span(says, Style.FAINT),))


def _notes(answer: LossNodesAnswer) -> Iterator[Line]:
    """Yield what is not judged, where, and what reaches no endpoint anyway."""
    missing: dict[tuple[str, ...], list[str]] = {}
    for each in answer.worst:
        name = each.loss.service.name.text
        # Services of the objects are reported with the reason.
        nodes = tuple(at for at in each.missing if name not in answer.answers[at].not_judged)
        if nodes:
            missing.setdefault(nodes, []).append(name)
    for nodes, names in missing.items():
        says = f"Not judged at {listed(nodes)}, since the dump does not show it: {listed(names)}"
        yield Line((Span(f"{says}.", Style.WARNING),))
    said: dict[Line, list[str]] = {}
    for name, of_node in answer.answers.items():
        told = [loss for loss in of_node.losses if loss.worst.upper]
        for line in (*lines(of_node.view, of_node.absent), *nowhere(of_node, told)):
            said.setdefault(line, []).append(name)
    for line, places in said.items():
        yield Line((Span(f"At {listed(places)}: ", Style.WARNING), *line.pieces))
    yield from assumed(answer.diagnostics)


def _section(kind: _Alike, answer: LossNodesAnswer) -> Iterator[Block]:
    """Yield what is lost at nodes that are alike, each ServicePort with its endpoints."""
    files = [str(file) for each in answer.nodes if each.name in kind.nodes for file in each.files]
    yield Line()
    told = Span(f"  ({listed(files)})", Style.FAINT)
    yield Line((Span(f"At {listed(kind.nodes)}", Style.STRONG), told))
    losses = kind.answer.losses if answer.in_order else kind.losses
    hit = [each for each in losses if each.worst.upper]
    if hit:
        yield whole(hit, kind.answer)
    else:
        yield Line((Span("No new flow goes to a dead endpoint.", Style.GOOD),))
    helps = () if answer.quiet else tuple(steps(kind.answer))
    yield from (Line(), *helps) if helps else ()
