"""``loss`` for people: the worst first, and a verdict in one line at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from analyzer.failure.loss import ServiceLoss, State, in_order
from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.reports.answers import LossAnswer
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, Table
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.phrases import assumed, at_node, count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_IPV4: Final = 4
_COLUMNS = (
    Column("SERVICE PORT", foldable=True),
    Column("PROTO", spare=2),
    Column("ENDPOINT", begins=True),
    Column("NODE"),
    Column("SHARE", right=True, spare=1),
    Column("OF NEW FLOWS", right=True),
    Column(""),
)

_STYLES: Final = {
    State.UNTOUCHED: Style.GOOD,
    State.DEGRADED: Style.WARNING,
    State.SILENCED: Style.BAD,
    State.UNKNOWN: Style.WARNING,
    State.NO_ENDPOINTS: Style.FAINT,
}
#: What states are called in text; JSON has them by their values.
_WORDS: Final = {
    State.UNTOUCHED: "untouched",
    State.DEGRADED: "partial loss",
    State.SILENCED: "total loss",
    State.UNKNOWN: "unknown",
    State.NO_ENDPOINTS: "without endpoints",
}


def render(answer: LossAnswer) -> Document:
    """Return a table of what is hit, each dead endpoint marked, and the verdict."""
    if not answer.dead.is_anything:
        return overview(answer)
    losses = answer.losses if answer.in_order else in_order(answer.losses, "loss")
    hit = [loss for loss in losses if loss.worst.upper]
    rows = [row for loss in hit for row in _rows(loss, answer)]
    head = f"Dead{at_node(answer.view)}: {_dead(answer.dead)}"
    blocks: list[Block] = [Line((head,)), Line()]
    doubts = list(_doubts(answer.dead))
    if doubts:
        blocks += [*doubts, Line()]
    if rows:
        blocks += [Table(_COLUMNS, tuple(rows)), Line()]
    return Document([*blocks, *verdict(answer, hit), *assumed(answer.diagnostics)])


def _doubts(dead: Dead) -> Iterator[Line]:
    """Give what the losses rest on, as far as where endpoints are is not certain."""
    if dead.uncertain:
        number = count(len(dead.uncertain), "endpoint")
        says = f"Node unknown for {number}: losses are ranges. Pass --objects or --node-of."
        yield Line((Span(says, Style.WARNING),))
    if dead.assumed:
        addresses = len({each.address for each in dead.assumed})
        number = count(addresses, "endpoint address", "endpoint addresses")
        yield Line((Span(f"Node of {number} taken from podCIDRs.", Style.FAINT),))


def overview(answer: LossAnswer) -> Document:
    """Return what could be marked dead, and what could be judged: nothing is dead yet."""
    endpoints = list(dict.fromkeys(e for loss in answer.losses for e in loss.service.endpoints))
    placed = {each.address: answer.cluster.placement(each.address) for each in endpoints}
    blocks: list[Block] = [Line((f"Nothing marked dead{at_node(answer.view)}.",)), Line()]
    unplaced = sum(where.node is None for where in placed.values())
    for option, names in (
        ("--dead-node", [where.node for where in placed.values()]),
        ("--dead-zone", [where.zone for where in placed.values()]),
    ):
        counted = Counter(name for name in names if name is not None)
        choices = tuple(
            (option, Span(name, Style.STRONG), count(number, "endpoint address", _ADDRESSES))
            for name, number in sorted(counted.items())
        )
        if choices:
            blocks += [Table(_CHOICES, choices), Line()]
    if unplaced:
        number = count(unplaced, "endpoint address", _ADDRESSES)
        says = f"Node unknown for {number}: pass --objects or --node-of, or use --dead IP[:PORT]."
        blocks += [Line((Span(says, Style.FAINT),)), Line()]
    words = _WORDS | {State.UNTOUCHED: "with endpoints"}
    blocks.append(_totals(answer.losses, words))
    blocks += [*_nowhere(answer, ()), *_without(answer), *_not_judged(answer)]
    says = "Say what is dead to see what is lost: --dead-node, --dead-zone or --dead IP[:PORT]."
    return Document([*blocks, Line((says,))])


_ADDRESSES: Final = "endpoint addresses"
_CHOICES: Final = (Column("OPTION"), Column("NAME"), Column("DIES WITH IT"))


def _dead(dead: Dead) -> str:
    named = [f"node {n}" for n in dead.nodes] + [f"zone {z}" for z in dead.zones]
    named += [f"endpoint {e}" for e in dead.named]
    addresses = len({e.address for e in dead.endpoints})
    listed = ", ".join(named) or "nothing"
    return f"{listed} ({count(addresses, 'endpoint address', 'endpoint addresses')})"


def _rows(loss: ServiceLoss, answer: LossAnswer) -> Iterator[tuple[Cell, ...]]:
    service = loss.service
    style = _STYLES[loss.state]
    shown = loss.loss if loss.loss is not None else loss.worst
    endpoints = len(service.endpoints)
    yield (
        Span(service.name.text, Style.STRONG),
        service.protocol,
        f"{len(loss.dead)} of {endpoints} dead" if endpoints else "endpoints unknown",
        "",
        Span(bounds_fraction(shown), style),
        Span(bounds_percent(shown), style),
        Span(_WORDS[loss.state], style),
    )
    yield from _endpoints(loss, answer)
    for each in loss.routes:
        if each.loss != shown and each.route.shares:
            route = each.route
            yield (
                "",
                "",
                f"{route.frontend.kind.value} {route.frontend}",
                f"from {route.source.value if route.network is None else route.network}",
                bounds_fraction(each.loss),
                bounds_percent(each.loss),
                Span("lost", Style.WARNING if each.loss.upper else Style.GOOD),
            )


#: A Service with more endpoints than this shows its dead ones only.
_MOST_ENDPOINTS = 10


def _perhaps(endpoint: Endpoint, answer: LossAnswer) -> Cell:
    return Span("dead?", Style.WARNING) if endpoint in answer.dead.uncertain else ""


def _endpoints(loss: ServiceLoss, answer: LossAnswer) -> Iterator[tuple[Cell, ...]]:
    route = loss.service.cluster_route or next(iter(loss.service.routes), None)
    shares = route.shares if route is not None else ()
    dead = set(loss.dead)
    if len(shares) > _MOST_ENDPOINTS:
        shares = tuple(s for s in shares if s.endpoint in dead)
    for share in shares[:_MOST_ENDPOINTS]:
        is_dead = share.endpoint in dead
        style = Style.BAD if is_dead else Style.PLAIN
        yield (
            "",
            "",
            Span(str(share.endpoint), style),
            answer.cluster.placement(share.endpoint.address).node or Span("?", Style.FAINT),
            bounds_fraction(share.share),
            bounds_percent(share.share),
            Span("DEAD", style) if is_dead else _perhaps(share.endpoint, answer),
        )
    if len(shares) > _MOST_ENDPOINTS:
        yield ("", "", Span(f"... and {len(shares) - _MOST_ENDPOINTS} more dead", Style.FAINT))
    nowhere = loss.cluster.nowhere if loss.cluster is not None else loss.nowhere
    if shares and nowhere.upper:
        name = Span("no endpoint", Style.WARNING)
        lost = "lost anyway" if nowhere.lower else "perhaps lost anyway"
        yield ("", "", name, "", bounds_fraction(nowhere), bounds_percent(nowhere), lost)


#: Distinct losses that get a sentence, the highest first.
_MOST_SENTENCES = 3


def verdict(answer: LossAnswer, hit: Sequence[ServiceLoss]) -> Iterator[Line]:
    """Give the totals, the worst losses as sentences, and what is not judged."""
    yield _totals(answer.losses, _WORDS)
    yield from _without(answer)
    yield from _not_judged(answer)
    if not hit:
        to = "" if answer.is_whole else " to a ServicePort that is judged"
        style = Style.GOOD if answer.is_whole else Style.PLAIN
        yield Line((Span(f"No new flow{to} lands on a dead endpoint.", style),))
    groups: dict[tuple[Bounds, bool, Bounds], list[ServiceLoss]] = {}
    for loss in hit:
        nowhere = loss.nowhere
        groups.setdefault((loss.worst, loss.loss == loss.worst, nowhere), []).append(loss)
    for (share, everywhere, nowhere), lost in list(groups.items())[:_MOST_SENTENCES]:
        route = "" if everywhere else ", on the worst route,"
        style = Style.BAD if share.upper == ALWAYS else Style.WARNING
        to = f"new flows to {_and_more(lost)}"
        sentence = f"{bounds_percent(share)} of {to}{route} land on dead endpoints"
        if nowhere.lower:
            sentence += f", and {bounds_percent(nowhere)} reach no endpoint anyway"
        yield Line((Span(sentence, style),))
    yield from _nowhere(answer, hit)


def _totals(losses: Sequence[ServiceLoss], words: Mapping[State, str]) -> Line:
    counts = Counter(loss.state for loss in losses)
    totals = [f"{counts[state]} {words[state]}" for state in State if counts[state]]
    return Line((f"{count(len(losses), 'ServicePort')}: {', '.join(totals)}.",))


def _and_more(lost: Sequence[ServiceLoss]) -> str:
    return lost[0].service.name.text + (f" and {len(lost) - 1} more" if lost[1:] else "")


def _nowhere(answer: LossAnswer, hit: Sequence[ServiceLoss]) -> Iterator[Line]:
    """Name ServicePorts that lose flows though nothing of theirs is dead."""
    told = set(map(id, hit))
    groups: dict[Bounds, list[ServiceLoss]] = {}
    for loss in answer.losses:
        if loss.nowhere.lower and id(loss) not in told:
            groups.setdefault(loss.nowhere, []).append(loss)
    for share, lost in groups.items():
        says = f"{bounds_percent(share)} of new flows to {_and_more(lost)} reach no endpoint anyway"
        yield Line((Span(says, Style.WARNING),))


def _without(answer: LossAnswer) -> Iterator[Line]:
    """Name the ServicePorts without endpoints."""
    names = [e.service.name.text for e in answer.losses if e.state is State.NO_ENDPOINTS]
    if names:
        yield Line((f"Without endpoints, whatever is dead: {listed(names)}.",))


def _not_judged(answer: LossAnswer) -> Iterator[Line]:
    """Name what is not judged, each with the reason."""
    lacking, beyond = answer.absent.lacking, answer.absent.beyond
    if answer.view.cut:
        says = "The dump ends before all ServicePorts are told: what others lose is not known."
        yield Line((Span(says, Style.WARNING),))
    if lacking:
        what = count(len(lacking), "ServicePort of the objects", "ServicePorts of the objects")
        says = f"Not judged: {what} without a rule in the dump ({listed(answer.names(lacking))})."
        yield Line((Span(says, Style.WARNING),))
    if beyond:
        version = beyond[0].version
        program = "iptables-save" if version == _IPV4 else "ip6tables-save"
        what = count(len(beyond), f"ServicePort of IPv{version}", f"ServicePorts of IPv{version}")
        names = listed([each.name.text for each in beyond])
        says = f"Not judged: {what} ({names}); `{program}` prints their rules."
        yield Line((Span(says, Style.WARNING),))
    if unled := answer.absent.unled:
        what = count(len(unled), "ServicePort", "ServicePorts")
        names = listed([each.name.text for each in unled])
        says = f"Not judged: {what} with chains that no rule leads to ({names})."
        yield Line((Span(says, Style.WARNING),))
    if answer.view.left_out:
        names = listed(answer.view.left_out)
        says = f"Not judged in whole, since not all rules are understood: {names}."
        yield Line((Span(says, Style.WARNING),))
