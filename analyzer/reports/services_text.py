"""``services`` for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from analyzer.kubeproxy.view import FrontendState, Route, ServicePort, Share
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.probability import ALWAYS, Bounds, capped_sum
from analyzer.reports.answers import ServicesAnswer
from analyzer.reports.distributions import Group, groups
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, Table
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.phrases import assumed, at_node, count, state_of_frontend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

_COLUMNS: Final = (
    Column("SERVICE PORT", foldable=True),
    Column("PROTO", spare=2),
    Column("FRONTEND", begins=True),
    Column("FROM", foldable=True),
    Column("ENDPOINT", begins=True),
    Column("NODE", spare=1),
    Column("SHARE", right=True, spare=3),
    Column("OF NEW FLOWS", right=True),
)
_FROM: Final = 3
_Places: TypeAlias = Collection[tuple[Address, int | None]]
#: Endpoints of one distribution that are listed one by one.
_MOST: Final = 12
#: What stands for the rest of a long list has a line of its own.
_FIRST: Final = _MOST - 1
_NOWHERE: Final = Span("?", Style.FAINT)


def render(answer: ServicesAnswer) -> Document:
    """Return a table: a line an endpoint, with the share of new flows."""
    ruleset, view = answer.ruleset, answer.view
    services = count(len(answer.services), "ServicePort")
    rules = count(ruleset.rules, "rule")
    mode = "no kube-proxy rules found" if view.mode == "none" else f"{view.mode} mode"
    head = f"{services} in {rules} of {ruleset.file}{at_node(view)}, {mode}"
    told = [(service, groups(service)) for service in answer.services]
    differ = any(len(d.distributions) > 1 for _, parts in told for d in parts)
    rows = [row for service, parts in told for row in _rows(service, parts, answer)]
    blocks: list[Block] = [Line((head,)), Line()]
    if rows:
        columns: tuple[Column, ...] = _COLUMNS
        if not differ:
            columns = (*_COLUMNS[:_FROM], *_COLUMNS[_FROM + 1 :])
            rows = [(*row[:_FROM], *row[_FROM + 1 :]) for row in rows]
        blocks += [Table(columns, tuple(rows)), Line()]
    blocks.append(Line((Span(_legend(answer, differ=differ), Style.FAINT),)))
    if answer.services and not answer.cluster.places:
        says = "Where endpoints are nobody said: --objects FILE does, or --node-of CIDR=NODE."
        blocks.append(Line((Span(says, Style.FAINT),)))
    blocks += assumed(answer.diagnostics)
    if answer.findings is not None:
        said = count(answer.findings, "finding") if answer.findings else "no finding"
        style = Style.WARNING if answer.findings else Style.GOOD
        blocks.append(Line((Span(f"check: {said}", style),)))
    return Document(blocks)


def _rows(
    service: ServicePort, parts: list[Group], answer: ServicesAnswer
) -> Iterator[tuple[Cell, ...]]:
    head: tuple[Cell, ...] = (Span(service.name.text, Style.STRONG), service.protocol)
    for part in parts:
        left: list[Cell] = [
            (f"{f.kind.value} {f}", *state_of_frontend(service, f)) for f in part.frontends
        ]
        told = part.distributions
        if not any(len(each.route.shares) for each in told):
            told = ()
        spec = answer.specs.get((service.name.text, service.protocol))
        unready = {
            (each.address, each.port)
            for each in (spec.endpoints if spec is not None else ())
            if not each.is_ready
        }
        right = [
            row for each in told for row in _distribution(each.route, each.sources, answer, unready)
        ]
        # What they have in common begins beside the last of them.
        for frontend in left[:-1]:
            yield (*head, frontend)
            head = ("", "")
        for row in right or [()]:
            yield (*head, left[-1], *row)
            head, left = ("", ""), [""]


def _distribution(
    route: Route, sources: tuple[str, ...], answer: ServicesAnswer, unready: _Places
) -> Iterator[tuple[Cell, ...]]:
    source: Cell = ", ".join(sources)
    for row in _endpoints(route, answer, unready):
        yield source, *row
        source = ""


def _endpoints(
    route: Route, answer: ServicesAnswer, unready: _Places
) -> Iterator[tuple[Cell, ...]]:
    shares = route.shares
    if not len(shares):
        yield (Span("unknown" if route.unresolved else "none", Style.WARNING),)
    elif len(shares) <= _MOST or answer.every:
        for share in shares:
            endpoint = share.endpoint
            node = answer.cluster.placement(endpoint.address).node
            is_unready = (endpoint.address, endpoint.port) in unready
            shown: Cell = str(endpoint)
            if is_unready:
                shown = (str(endpoint), Span(" not ready", Style.WARNING))
            yield _row(shown, node, share.share)
    elif any(answer.cluster.placement(s.endpoint.address).node for s in shares):
        yield from _by_node(shares, answer.cluster)
    else:
        for share in shares[:_FIRST]:
            yield _row(str(share.endpoint), None, share.share)
        rest = shares[_FIRST:]
        yield _row(f"{len(rest):,} more", None, _sum(rest))


def _by_node(shares: Sequence[Share], cluster: Cluster) -> Iterator[tuple[Cell, ...]]:
    """Give a row a node, those with most endpoints first."""
    by_node: dict[str | None, list[Share]] = {}
    for share in shares:
        by_node.setdefault(cluster.placement(share.endpoint.address).node, []).append(share)
    nodes = sorted(by_node, key=lambda n: (-len(by_node[n]), n or ""))
    listed = nodes if len(nodes) <= _MOST else nodes[:_FIRST]
    for node in listed:
        yield _row(count(len(by_node[node]), "endpoint"), node, _sum(by_node[node]))
    others = nodes[len(listed) :]
    if others:
        rest = [share for node in others for share in by_node[node]]
        on = count(len(others), "more node")
        yield _row(count(len(rest), "endpoint"), on, _sum(rest))


def _row(endpoint: Cell, node: str | None, share: Bounds) -> tuple[Cell, ...]:
    return endpoint, node or _NOWHERE, bounds_fraction(share), bounds_percent(share)


def _sum(shares: Sequence[Share]) -> Bounds:
    lower = capped_sum(s.share.lower for s in shares)
    return Bounds(lower, min(capped_sum(s.share.upper for s in shares), ALWAYS))


def _legend(answer: ServicesAnswer, *, differ: bool) -> str:
    unknown = sum(
        service.state(f) is FrontendState.UNKNOWN
        for service in answer.services
        for f in service.frontends
    )
    alike = "" if differ else ", wherever they come from"
    legend = f"Shares are of new flows to each frontend{alike}, as the nat table draws them."
    if unknown:
        legend += f" {count(unknown, 'frontend')} with shares known only within bounds."
    return legend
