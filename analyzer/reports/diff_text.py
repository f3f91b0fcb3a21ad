"""``diff`` for people: what changes from A to B, and last whether it matters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from analyzer.kubeproxy.diff.changes import (
    MASQUERADE,
    OTHERWISE,
    SHARES,
    Change,
    EndpointChange,
    ServiceChange,
)
from analyzer.kubeproxy.diff.difference import Conclusion
from analyzer.kubeproxy.diff.dumps import Dump
from analyzer.kubeproxy.diff.pairs import version_of
from analyzer.kubeproxy.view import Endpoint, ServicePort
from analyzer.model.probability import Bounds, capped_sum
from analyzer.reports.affinity import affinity_note
from analyzer.reports.diff_answer import DiffAnswer
from analyzer.reports.diff_beside import beside_blocks, lost
from analyzer.reports.diff_words import affinity, ends, flows, source_address
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.numbers import bounds_percent, percent
from analyzer.reports.phrases import assumed, count, mode_words, proto

_COLUMNS: Final = (
    Column("SERVICE PORT", shortens=True),
    Column("PROTO", spare=2),
    Column("FLOWS", foldable=True, begins=True),
    Column("CHANGE", begins=True),
    Column("NODE", spare=1, shortens=True),
    Column("A -> B"),
)
#: Endpoints of one change that are listed one by one, and ServicePorts.
_MOST_ENDPOINTS: Final = 8
_MOST_SERVICES: Final = 60
_NOTHING: Final = "none"
#: What changes, the node, and how it is in A and in B.
_Change: TypeAlias = tuple[Span, str, str, str]


def render(answer: DiffAnswer) -> Document:
    """Return the differences as a table, then non-Service traffic, then the verdict."""
    found = answer.difference
    blocks: list[Block] = [
        _head("A", answer.a, answer),
        _head("B", answer.b, answer),
        Line(),
    ]
    changes = found.changes
    shown = changes if answer.every or len(changes) <= _MOST_SERVICES else changes[:_MOST_SERVICES]
    rows = [row for change in shown for row in _rows(change, answer)]
    if rows:
        blocks += [TextTable(_COLUMNS, tuple(rows)), Line()]
    if len(shown) < len(changes):
        more = count(len(changes) - len(shown), "more ServicePort")
        blocks += [Line((Span(f"{more} that differ; --all shows each", Style.FAINT),)), Line()]
    blocks += _by_node(changes, answer)
    differing = [each.b or each.a for each in changes if each.routes or each.affinity]
    pinned = [each for each in differing if each is not None and each.affinity is not None]
    blocks += affinity_note(pinned, answer.b.view.mode, lost=False)
    blocks += beside_blocks(found.beside)
    return Document([*blocks, *_verdict(answer), *assumed(answer.diagnostics)])


def _head(letter: str, dump: Dump, answer: DiffAnswer) -> Line:
    services = count(len(dump.view.services), "ServicePort")
    node = f" at node {dump.view.node}" if dump.view.node else ""
    said = f"{letter}  {dump.file}{node}: {mode_words(dump.view.mode)}, {services}"
    others = [version_of(service) for service in dump.view.services]
    left_out = [version for version in dump.versions if version not in answer.versions]
    for version in left_out:
        if version in others:
            number = f"{others.count(version):,} of IPv{version}"
            said += f", {number} left out, since the other dump has no rules for them"
    return Line((said,))


# --- Services -------------------------------------------------------------------


def _rows(change: ServiceChange, answer: DiffAnswer) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of a ServicePort, its name in the first."""
    head: tuple[Cell, Cell] = (
        Span(change.name.text, Style.STRONG),
        proto(change.protocol, change.version),
    )
    for flows_told, changes in changes_of(change, answer):
        first = flows_told
        for what, node, a, b in changes:
            yield (*head, first, what, node, f"{a} -> {b}")
            head, first = ("", ""), ""


def changes_of(
    change: ServiceChange, answer: DiffAnswer
) -> Iterator[tuple[str, Iterable[_Change]]]:
    """Yield the changes of a ServicePort, with the flows that are affected."""
    for frontend in change.gone:
        said, style = ("perhaps gone", Style.WARNING) if change.cut else ("gone", Style.BAD)
        gone = Span(f"{frontend.kind.value} {frontend} {said}", style)
        yield "all", [(gone, "", _number(change.a), "?" if change.cut else _NOTHING)]
    for frontend in change.added:
        said = "perhaps added" if change.cut else "added"
        added = Span(f"{frontend.kind.value} {frontend} {said}", Style.WARNING)
        yield "all", [(added, "", "?" if change.cut else _NOTHING, _number(change.b))]
    if change.affinity is not None:
        a, b = map(affinity, change.affinity)
        yield "all", [(Span("session affinity", Style.WARNING), "", a, b)]
    for each in change.routes:
        yield flows(each.ways, change), _change(each.change, answer)


def _number(service: ServicePort | None) -> str:
    number = 0 if service is None else len(service.endpoints)
    return count(number, "endpoint") if number else "no endpoints"


def _change(change: Change, answer: DiffAnswer) -> Iterator[_Change]:
    gone = [each for each in change.endpoints if each.b is None]
    added = [each for each in change.endpoints if each.a is None]
    moved = [each for each in change.endpoints if each.a is not None and each.b is not None]
    yield from _endpoints(gone, "gone", Style.BAD, answer)
    yield from _endpoints(added, "added", Style.WARNING, answer)
    if change.each is not None:
        a, b = (f"1/{number}" if number > 1 else "1" for number in change.each)
        yield Span("each endpoint's share", Style.WARNING), "", a, b
    yield from _endpoints(moved, "moved", Style.WARNING, answer)
    if change.otherwise is not None:
        here, there = map(ends, change.otherwise)
        yield Span("new flows are", Style.BAD), "", here, there
    for masks in dict.fromkeys((each.a, each.b) for each in change.masquerade):
        theirs = [each.endpoint for each in change.masquerade if (each.a, each.b) == masks]
        at = count(len(theirs), "endpoint") if theirs[1:] else str(theirs[0])
        here, there = map(source_address, masks)
        yield Span(f"source address at {at}", Style.BAD), "", here, there
    if change.unknown:
        told = ", ".join(_UNKNOWN[each] for each in change.unknown)
        yield Span(f"cannot tell: {told}", Style.WARNING), "", "?", "?"


_UNKNOWN: Final = {SHARES: "shares", MASQUERADE: "source address", OTHERWISE: "other ends"}


def _endpoints(
    changes: Sequence[EndpointChange], what: str, style: Style, answer: DiffAnswer
) -> Iterator[_Change]:
    """Yield each endpoint, or of many those of each node together."""
    if len(changes) <= _MOST_ENDPOINTS or answer.every:
        for each in changes:
            node = answer.cluster.placement(each.endpoint.address).node
            pod = answer.cluster.pods.of(each.endpoint.address, each.endpoint.port)
            who = f"{each.endpoint} ({pod})" if pod else str(each.endpoint)
            yield Span(f"{who} {what}", style), node or "", *_shares(each)
        return
    by_node: dict[str, list[EndpointChange]] = {}
    for each in changes:
        node = answer.cluster.placement(each.endpoint.address).node
        by_node.setdefault(node or "", []).append(each)
    for name, theirs in sorted(by_node.items(), key=lambda node: (-len(node[1]), node[0])):
        told = Span(f"{count(len(theirs), 'endpoint')} {what}", style)
        yield told, name, _sum(each.a for each in theirs), _sum(each.b for each in theirs)


def _shares(each: EndpointChange) -> tuple[str, str]:
    a, b = (_NOTHING if s is None else bounds_percent(s) for s in (each.a, each.b))
    if a == b and each.a is not None and each.b is not None:
        # They differ by more than 2**-30, which ten digits show.
        return percent(each.a.lower, 8), percent(each.b.lower, 8)
    return a, b


def _sum(shares: Iterable[Bounds | None]) -> str:
    known = [share for share in shares if share is not None]
    if not known:
        return _NOTHING
    lower, upper = (capped_sum(getattr(s, end) for s in known) for end in ("lower", "upper"))
    return bounds_percent(Bounds(lower, upper))


# --- all together -----------------------------------------------------------------


def _by_node(changes: Sequence[ServiceChange], answer: DiffAnswer) -> Iterator[Line]:
    """Yield the endpoints that are gone and added by node, where it is known where they are."""
    for what, is_one in (("gone", _is_gone), ("added", _is_added)):
        found = dict.fromkeys(
            (each.endpoint.address, change.name.text)
            for change in changes
            for kept in [_endpoints_of(change.b if what == "gone" else change.a)]
            for route in change.routes
            for each in route.change.endpoints
            if is_one(each) and each.endpoint not in kept  # some flows may still go there
        )
        by_node: dict[str, set[object]] = {}
        for address, _ in found:
            node = answer.cluster.placement(address).node
            if node is not None:
                by_node.setdefault(node, set()).add(address)
        if by_node:
            nodes = sorted(by_node.items(), key=lambda each: (-len(each[1]), each[0]))
            listed = ", ".join(f"{len(theirs):,} on {node}" for node, theirs in nodes)
            yield Line((f"Addresses of endpoints {what}: {listed}.",))


def _endpoints_of(service: ServicePort | None) -> Collection[Endpoint]:
    return frozenset() if service is None else frozenset(service.endpoints)


def _is_gone(each: EndpointChange) -> bool:
    return each.b is None


def _is_added(each: EndpointChange) -> bool:
    return each.a is None


def _verdict(answer: DiffAnswer) -> Iterator[Line]:
    found = answer.difference
    versions = " and ".join(f"IPv{version}" for version in answer.versions)
    yield Line((f"{count(found.both, 'ServicePort')} of {versions} in both.",))
    if found.alike:
        how, options = "in the same way in both dumps", "--node-ip or --node-of"
        if found.is_open:
            how = "and perhaps not the same, since rules of other programs differ"
            options = "--node-ip, --node-of or --ipsets"
        says = (
            f"{count(found.alike, 'ServicePort')} partly unknown, {how}; --objects with --node "
            f"(and --node-b), {options} may help."
        )
        yield Line((Span(says, Style.WARNING if found.is_open else Style.FAINT),))
    if found.cut:
        yield from (Line((Span(says, Style.WARNING),)) for says in _why_cut(answer))
    yield verdict(answer)


def _why_cut(answer: DiffAnswer) -> Iterator[str]:
    """Yield what rules one dump lacks, or both, or has others, that were not evaluated."""
    a, b = answer.a.view, answer.b.view
    if a.cut or b.cut:
        yield "A dump is truncated: what it lacks may be in the rest."
        return
    lacking = dict.fromkeys(each.name for each in (*a.untold, *b.untold) if not each.rules)
    if lacking:
        where = "In neither dump" if a.untold == b.untold else "Not in both dumps"
        yield f"{where}: {', '.join(lacking)}. What its rules drop may differ."
    unlike = [
        each for each in (*a.untold, *b.untold) if each not in a.untold or each not in b.untold
    ]
    names = dict.fromkeys(each.name for each in unlike if each.rules)
    if names:
        yield f"Not evaluated, and not the same in both: {', '.join(names)}."


def verdict(answer: DiffAnswer) -> Line:
    """Return in a sentence whether the differences matter."""
    return Line((_SENTENCES[answer.difference.verdict](answer),))


def _same(answer: DiffAnswer) -> Span:
    return Span(f"No Service changes{_as_known(answer)}.", Style.GOOD)


def _as_known(answer: DiffAnswer) -> str:
    return ", as far as is known" if answer.difference.alike else ""


def _intended(answer: DiffAnswer) -> Span:
    missed = lost(answer.difference.beside)
    unless = f", unless you rely on {_either(missed)}" if missed else ""
    return Span(
        f"No Service changes{_as_known(answer)}{unless}: all differences are by design.",
        Style.WARNING if missed else Style.GOOD,
    )


def _either(several: Sequence[str]) -> str:
    *others, last = several
    return f"{', '.join(others)} or {last}" if others else last


def _unknown(answer: DiffAnswer) -> Span:
    a, b = answer.a.view.untold, answer.b.view.untold
    lacking = f"not all rules are in {'the' if a == b != () else 'both'} dumps"
    if all(each.rules for each in (*a, *b)) and (a or b):
        lacking = "not all rules are evaluated"
    if answer.difference.is_open:
        lacking = f"{count(answer.difference.alike, 'ServicePort')} partly unknown"
    but = _counted(answer) or lacking
    return Span(f"No definite change. Undetermined: {but}.", Style.WARNING)


def _different(answer: DiffAnswer) -> Span:
    return Span(f"Behaviour changes: {_counted(answer)}.", Style.BAD)


def _counted(answer: DiffAnswer) -> str:
    """Return how many ServicePorts and other answers are not the same: ``1 gone, 2 changed``."""
    found = answer.difference
    changes = found.changes
    certain = [each for each in changes if each.is_certain]
    both = [each for each in certain if each.a is not None and each.b is not None]
    counted = [
        (sum(each.b is None for each in certain), "ServicePort", "gone"),
        (sum(each.a is None for each in certain), "ServicePort", "added"),
        (len(both), "ServicePort", "changed"),
        (len(changes) - len(certain), "ServicePort", "not known"),
        (sum(not e.is_intended for e in found.beside), "kind", "of non-Service traffic"),
    ]
    return ", ".join(f"{count(number, noun)} {what}" for number, noun, what in counted if number)


_SENTENCES: Final[dict[Conclusion, Callable[[DiffAnswer], Span]]] = {
    Conclusion.SAME: _same,
    Conclusion.INTENDED: _intended,
    Conclusion.UNKNOWN: _unknown,
    Conclusion.DIFFERENT: _different,
}
