"""``loss`` without any dead mark: what can be marked, and what can be evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from analyzer.failure.loss import LossState, losses
from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint, ServicePort
from analyzer.reports.affinity import affinity_note
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.loss_nowhere import nowhere
from analyzer.reports.loss_summary import totals
from analyzer.reports.loss_unresolved import unresolved
from analyzer.reports.loss_words import STYLES, WORDS, by_harm, services_named
from analyzer.reports.lost_now import sentences
from analyzer.reports.not_judged import lines
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import at_node, count, placing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ADDRESSES: Final = "endpoint addresses"
_COLUMNS: Final = (
    Column("OPTION"),
    Column("NAME", shortens=True),
    Column("ENDPOINTS"),
    Column("WORST LOSS", right=True),
    Column("OF", shortens=True),
)
#: Of these, those that say nothing of losses.
_PLAIN: Final = 3
#: Most nodes, and zones, that are listed unless all are requested.
_MOST: Final = 8
#: Addresses on them for which it is worked out what their death would cost.
_MOST_JUDGED: Final = 20_000


def overview(answer: LossAnswer) -> Document:
    """Return what can be marked dead, those with most endpoints first, and the cost."""
    blocks: list[Block] = [
        *sentences(each.service for each in answer.losses),
        Line((f"Nothing marked dead{at_node(answer.view)}.",)),
        totals(answer.losses, WORDS | {LossState.UNTOUCHED: "with endpoints"}, is_whole=True),
    ]
    without = [each for each in answer.losses if each.state is LossState.NO_ENDPOINTS]
    if without:
        named, more = services_named(without)
        every = " All: kubeodds services." if more else ""
        blocks.append(Line((f"Without endpoints, whatever is dead: {named}{more}.{every}",)))
    blocks += unresolved(answer.losses)
    blocks += [*nowhere(answer, ()), *lines(answer.view, answer.absent), Line()]
    endpoints = list(dict.fromkeys(e for loss in answer.losses for e in loss.service.endpoints))
    placed = {each.address: answer.cluster.placement(each.address) for each in endpoints}
    for kind, names in (
        ("node", [where.node for where in placed.values()]),
        ("zone", [where.zone for where in placed.values()]),
    ):
        counted = Counter(name for name in names if name is not None)
        if counted:
            blocks += [*_choices(kind, counted, answer), Line()]
    unplaced = sum(where.node is None for where in placed.values())
    if unplaced:
        number = count(unplaced, "endpoint address", _ADDRESSES)
        says = f"Node unknown for {number}. {placing(answer.cluster)}, or use --dead IP[:PORT]."
        blocks += [Line((Span(says, Style.FAINT),)), Line()]
    pinned = affinity_note((e.service for e in answer.losses), answer.view.mode, lost=True)
    says = "Say what is dead to see what is lost: --dead-node, --dead-zone or --dead IP[:PORT]."
    return Document([*blocks, *pinned, Line((says,))])


def _choices(kind: str, counted: Counter[str], answer: LossAnswer) -> Iterator[Block]:
    names = sorted(counted, key=lambda name: (-counted[name], name))
    shown = names if answer.every else names[:_MOST]
    # Judging what all of them would cost takes long if there are many.
    known = answer.every or sum(counted[name] for name in shown) <= _MOST_JUDGED
    costs = _Costs(kind, answer) if known else None
    rows = tuple(
        (
            f"--dead-{kind}",
            Span(name, Style.STRONG),
            count(counted[name], "address", "addresses"),
            *(costs.of(name) if costs is not None else ()),
        )
        for name in shown
    )
    yield TextTable(_COLUMNS if costs is not None else _COLUMNS[:_PLAIN], rows)
    if len(names) > len(shown):
        more = count(len(names) - len(shown), f"more {kind}")
        yield Line((Span(f"{more} with as many endpoints or fewer: --all", Style.FAINT),))
    if costs is None:
        says = f"What the death of each would cost: --dead-{kind} NAME, or --all"
        yield Line((Span(says, Style.FAINT),))


class _Costs:
    """The cost of losing each node, or zone."""

    def __init__(self, kind: str, answer: LossAnswer) -> None:
        self._kind = kind
        self._on: dict[str | None, set[Endpoint]] = {}
        self._services: dict[Endpoint, list[ServicePort]] = {}
        #: What any death may hit: the destination of some of their flows is unknown.
        self._open: list[ServicePort] = []
        for service in (each.service for each in answer.losses):
            for endpoint in service.endpoints:
                self._services.setdefault(endpoint, []).append(service)
            if service.unfilled or any(route.unresolved for route in service.routes):
                self._open.append(service)
        for endpoint in self._services:
            where = answer.cluster.placement(endpoint.address)
            self._on.setdefault(where.node if kind == "node" else where.zone, set()).add(endpoint)

    def of(self, name: str) -> tuple[Cell, ...]:
        """Return the worst loss if that fails, and the Service that has it."""
        uncertain = frozenset(self._on.get(None, ()))
        dying = frozenset(self._on[name])
        died = Dead(endpoints=dying, uncertain=uncertain, named=(name,))
        services = [each for end in (*dying, *uncertain) for each in self._services[end]]
        hit = {id(each): each for each in (*services, *self._open)}
        found = by_harm(losses(hit.values(), died))
        first = found[0]
        alike = sum((e.state, e.worst) == (first.state, first.worst) for e in found)
        more = f" and {alike - 1:,} more" if alike > 1 else ""
        share = Span(bounds_percent(first.worst), STYLES[first.state])
        return share, f"{first.service.name.text}{more}"
