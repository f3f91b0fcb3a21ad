"""``services`` for people."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy.view import FrontendState, ServicePort
from analyzer.model.cluster import Cluster
from analyzer.reports.answers import ServicesAnswer
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, Table
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.phrases import SOURCES, at_node, count, state_of_frontend

_COLUMNS = (
    Column("SERVICE PORT", foldable=True),
    Column("PROTO", spare=2),
    Column("FRONTEND"),
    Column("ENDPOINT"),
    Column("NODE", spare=1),
    Column("SHARE", right=True, spare=3),
    Column("OF NEW FLOWS", right=True),
)


def render(answer: ServicesAnswer) -> Document:
    """Return a table: a line an endpoint, with the share of new flows from a pod."""
    ruleset, view = answer.ruleset, answer.view
    services = count(len(answer.services), "ServicePort")
    rules = count(ruleset.rules, "rule")
    head = f"{services} in {rules} of {ruleset.file}{at_node(view)}, {view.mode} mode"
    rows = [row for service in answer.services for row in _rows(service, answer.cluster)]
    blocks: list[Block] = [Line((head,)), Line()]
    if rows:
        blocks += [Table(_COLUMNS, tuple(rows)), Line()]
    blocks.append(Line((Span(_legend(answer), Style.FAINT),)))
    if answer.findings is not None:
        said = count(answer.findings, "finding") if answer.findings else "no finding"
        style = Style.WARNING if answer.findings else Style.GOOD
        blocks.append(Line((Span(f"check: {said}", style),)))
    return Document(blocks)


def _rows(service: ServicePort, cluster: Cluster) -> Iterator[tuple[Cell, ...]]:
    head: tuple[Cell, ...] = (Span(service.name.text, Style.STRONG), service.protocol)
    route = service.cluster_route or next(iter(service.routes), None)
    shares = route.shares if route is not None else ()
    frontends = [(f"{f.kind.value} {f}", *state_of_frontend(service, f)) for f in service.frontends]
    passes: Cell = ""
    if route is not None and not shares and any(r.shares for r in service.routes):
        passes = Span(f"none for a flow from {SOURCES[route.source]}", Style.WARNING)
    for at in range(max(len(frontends), len(shares))):
        frontend: Cell = frontends[at] if at < len(frontends) else ""
        endpoint: tuple[Cell, ...] = (passes,) if at == 0 else ()
        if at < len(shares):
            share = shares[at]
            placement = cluster.placement(share.endpoint.address)
            endpoint = (
                str(share.endpoint),
                placement.node or Span("?", Style.FAINT),
                bounds_fraction(share.share),
                bounds_percent(share.share),
            )
        yield (*(head if at == 0 else ("", "")), frontend, *endpoint)


def _legend(answer: ServicesAnswer) -> str:
    unknown = sum(
        service.state(f) is FrontendState.UNKNOWN
        for service in answer.services
        for f in service.frontends
    )
    legend = (
        "Shares are of new flows from a pod to the first frontend, as the nat table draws them."
    )
    if unknown:
        legend += f" {count(unknown, 'frontend')} with shares known only within bounds."
    return legend
