"""``services`` for people: ServicePorts, their endpoints and shares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from analyzer.kubeproxy.view import Frontend, FrontendState, Route, ServicePort, Share
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.probability import ALWAYS, Bounds, capped_sum
from analyzer.model.value import value
from analyzer.reports.affinity import affinity_note, duration
from analyzer.reports.answers import ServicesAnswer
from analyzer.reports.distributions import FrontendGroup, groups
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style
from analyzer.reports.freshness import freshness_line
from analyzer.reports.lost_now import sentences
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.phrases import assumed, at_node, count, mode_words, proto, state_of_frontend
from analyzer.reports.pod_column import with_pods

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

_COLUMNS: Final = (
    Column("SERVICE PORT", shortens=True),
    Column("PROTO", spare=1),
    Column("FRONTEND", begins=True),
    Column("FROM", foldable=True),
    Column("ENDPOINT", begins=True),
    Column("NODE", shortens=True),
    Column("EXACT", right=True, spare=2),
    Column("SHARE", right=True),
)
_FROM: Final = 3
_Places: TypeAlias = Collection[tuple[Address, int | None]]
_Row: TypeAlias = tuple[Cell, ...]
#: Endpoints of one distribution that are listed one by one.
_MOST: Final = 12
#: The note in place of the rest of a long list has a line of its own.
_FIRST: Final = _MOST - 1
_NOWHERE: Final = Span("?", Style.FAINT)
#: By the code of a diagnostic, what `--check` did not compare.
_NOT_COMPARED: Final = {
    "no-services": "the rules were not compared with the objects",
    "no-endpointslices": "the rules were not compared with the objects",
    "other-ip-version": "not all objects were compared with the rules",
}
#: Of a frontend that has the same shares as the next one.
_AS_BELOW: Final = Span("as below", Style.FAINT)


def render(answer: ServicesAnswer) -> Document:
    """Return a table: one line for each endpoint, with its share of new flows."""
    view = answer.view
    services = count(len(answer.services), "ServicePort")
    rules = count(answer.rules, "rule")
    files = " and ".join(each.file for each in (answer.ruleset, *answer.others))
    head = f"{services} in {rules} of {files}{at_node(view)}, {mode_words(view.mode)}"
    told = [(service, groups(service)) for service in answer.services]
    differ = any(len(d.distributions) > 1 for _, parts in told for d in parts)
    rows, unknown = _Rows(answer, differ=differ).of(told)
    fresh = freshness_line(answer.freshness)
    blocks: list[Block] = [*fresh, *sentences(answer.services), Line((head,)), Line()]
    if rows:
        columns = _COLUMNS if differ else (*_COLUMNS[:_FROM], *_COLUMNS[_FROM + 1 :])
        blocks += [with_pods(columns, rows), Line()]
    blocks.append(Line((Span(_legend(unknown, differ=differ), Style.FAINT),)))
    blocks += affinity_note(answer.services, view.mode, lost=False)
    if answer.services and not answer.cluster.places:
        says = "Nodes of endpoints are unknown: pass --objects FILE or --node-of CIDR=NODE."
        blocks.append(Line((Span(says, Style.FAINT),)))
    blocks += assumed(answer.diagnostics)
    if answer.findings is not None:
        said = count(answer.findings, "finding") if answer.findings else "no finding"
        codes = {each.code for each in answer.diagnostics}
        missed = next((says for code, says in _NOT_COMPARED.items() if code in codes), "")
        if missed:
            said += f"; {missed}, see the warnings"
        style = Style.WARNING if answer.findings or missed else Style.GOOD
        blocks.append(Line((Span(f"check: {said}", style),)))
    return Document(blocks)


class _Rows:
    """Makes the rows of ServicePorts; what is shown of a list of shares is worked out once.

    Rows have a cell for sources only if these `differ` in any of them.
    """

    def __init__(self, answer: ServicesAnswer, *, differ: bool) -> None:
        self._answer = answer
        self._differ = differ
        self._places = answer.cluster.places
        # By identity, as most Services have one of the same few; the lists are kept, so that no
        # others get theirs.
        self._numbers: dict[int, tuple[Sequence[Bounds], _Numbers]] = {}

    def of(self, told: Iterable[tuple[ServicePort, list[FrontendGroup]]]) -> tuple[list[_Row], int]:
        """Return all rows, and how many frontends have shares known only within bounds."""
        rows: list[_Row] = []
        unknown = 0
        for service, parts in told:
            states = {f: service.state(f) for f in service.frontends}
            unknown += sum(state is FrontendState.UNKNOWN for state in states.values())
            rows += self._service(service, parts, states)
        return rows, unknown

    def _service(
        self,
        service: ServicePort,
        parts: list[FrontendGroup],
        states: Mapping[Frontend, FrontendState],
    ) -> Iterator[_Row]:
        head: _Row = (
            Span(service.name.text, Style.STRONG),
            proto(service.protocol, service.version),
        )
        pinned: tuple[Span, ...] = ()
        if service.affinity is not None:
            pinned = (Span(f" affinity {duration(service.affinity)}", Style.WARNING),)
        for part in parts:
            left: list[Cell] = [
                (f"{f.kind.value} {f}", *pinned, *state_of_frontend(service, f, states[f]))
                for f in part.frontends
            ]
            told = part.distributions
            if not any(len(each.route.shares) for each in told):
                told = ()
            spec = self._answer.specs.get((service.name.text, service.protocol, service.version))
            unready = {
                (each.address, each.port)
                for each in (spec.endpoints if spec is not None else ())
                if not each.is_ready
            }
            right = [
                row
                for each in told
                for row in self._distribution(each.route, each.sources, unready)
            ]
            # What they have in common begins next to the last of them.
            for frontend in left[:-1]:
                below = ("", _AS_BELOW) if self._differ else (_AS_BELOW,)
                yield (*head, frontend, *below) if right else (*head, frontend)
                head = ("", "")
            for row in right or [()]:
                yield (*head, left[-1], *row)
                head, left = ("", ""), [""]

    def _distribution(
        self, route: Route, sources: tuple[str, ...], unready: _Places
    ) -> Iterator[_Row]:
        source: Cell = ", ".join(sources)
        for row in self._endpoints(route, unready):
            yield (source, *row) if self._differ else row
            source = ""

    def _endpoints(self, route: Route, unready: _Places) -> Iterator[_Row]:
        printed, shares = route.columns()
        if not len(printed):
            yield (Span("unknown" if route.unresolved else "none", Style.WARNING),)
        elif len(printed) <= _MOST or self._answer.every:
            if self._places or unready:
                yield from self._placed(route, unready)
                return
            for endpoint, numbers in zip(printed, self._numbers_of(shares).each, strict=True):
                yield endpoint, _NOWHERE, *numbers
        elif self._places and any(
            self._answer.cluster.placement(s.endpoint.address).node for s in route.shares
        ):
            yield from _by_node(route.shares, self._answer.cluster)
        else:
            told = self._numbers_of(shares)
            for endpoint, numbers in zip(printed[:_FIRST], told.each, strict=True):
                yield endpoint, _NOWHERE, *numbers
            yield f"{len(printed) - _FIRST:,} more", _NOWHERE, *told.rest

    def _placed(self, route: Route, unready: _Places) -> Iterator[_Row]:
        for endpoint, share in zip(*route.draws(), strict=True):
            node = self._answer.cluster.placement(endpoint.address).node
            shown: Cell = str(endpoint)
            if (endpoint.address, endpoint.port) in unready:
                shown = (str(endpoint), Span(" not ready", Style.WARNING))
            pod = self._answer.cluster.pods.of(endpoint.address, endpoint.port)
            yield *_row(shown, node, share), pod or ""

    def _numbers_of(self, shares: Sequence[Bounds]) -> _Numbers:
        found = self._numbers.get(id(shares))
        if found is None:
            every = len(shares) <= _MOST or self._answer.every
            listed = shares if every else shares[:_FIRST]
            rest = () if every else _number(_sum(shares[_FIRST:]))
            numbers = _Numbers([_number(share) for share in listed], rest)
            found = self._numbers[id(shares)] = shares, numbers
        return found[1]


@value
class _Numbers:
    """What is shown of the shares that are listed, and of all others together."""

    each: Sequence[_Row]
    rest: _Row


def _by_node(shares: Sequence[Share], cluster: Cluster) -> Iterator[_Row]:
    """Yield a row a node, those with most endpoints first."""
    by_node: dict[str | None, list[Share]] = {}
    for share in shares:
        by_node.setdefault(cluster.placement(share.endpoint.address).node, []).append(share)
    nodes = sorted(by_node, key=lambda n: (-len(by_node[n]), n or ""))
    listed = nodes if len(nodes) <= _MOST else nodes[:_FIRST]
    for node in listed:
        yield _row(
            count(len(by_node[node]), "endpoint"), node, _sum([s.share for s in by_node[node]])
        )
    others = nodes[len(listed) :]
    if others:
        rest = [share for node in others for share in by_node[node]]
        on = count(len(others), "more node")
        yield _row(count(len(rest), "endpoint"), on, _sum([s.share for s in rest]))


def _row(endpoint: Cell, node: str | None, share: Bounds) -> _Row:
    return endpoint, node or _NOWHERE, *_number(share)


def _number(share: Bounds) -> _Row:
    return bounds_fraction(share), bounds_percent(share)


def _sum(shares: Sequence[Bounds]) -> Bounds:
    lower = capped_sum(share.lower for share in shares)
    return Bounds(lower, min(capped_sum(share.upper for share in shares), ALWAYS))


def _legend(unknown: int, *, differ: bool) -> str:
    alike = "" if differ else ", wherever they come from"
    legend = f"Shares are of new flows to each frontend{alike}, as the nat table draws them."
    if unknown:
        legend += f" {count(unknown, 'frontend')} with shares known only within bounds."
    return legend
