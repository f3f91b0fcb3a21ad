"""``client`` for people: how often each operation fails, how long it waits, and why."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from analyzer.clients.operations import Connection, Journey, LookUp, PredictedOperation
from analyzer.clients.plan import OperationResult, Time
from analyzer.clients.walk import FractionRange
from analyzer.reports.client_answer import ClientAnswer
from analyzer.reports.client_words import why
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.loss_words import named_words
from analyzer.reports.not_judged import lines
from analyzer.reports.numbers import limit_percent
from analyzer.reports.phrases import SOURCES, assumed, count, listed
from analyzer.reports.route_networks import first_networks
from analyzer.reports.times import length, share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.addresses import Network

#: Times are shown as multiples of this many seconds.
_LEAST: Final = Fraction(1, 10)
_COLUMNS: Final = (
    Column("CLIENT"),
    Column("OPERATION", foldable=True),
    Column("FAILS", right=True),
    Column("MEAN DELAY", right=True),
    Column("9 OF 10 WITHIN", right=True, spare=2),
    Column("A FAILURE TAKES", right=True, spare=1),
    Column("KNOWN FROM", spare=3),
)
_RESULTS: Final = {
    OperationResult.ANSWERED: "answered",
    OperationResult.TIMED_OUT: "fails: timed out",
    OperationResult.REFUSED: "fails: refused",
    OperationResult.UNREACHABLE: "fails: no route to host",
    OperationResult.NO_NAME: "fails: no such name",
    OperationResult.CLOSED: "fails: closed by the proxy",
}


def render(answer: ClientAnswer) -> Document:
    """Return a line for each client, the reasons, and what they are based on."""
    blocks: list[Block] = [*_head(answer), *lines(answer.view, answer.absent), Line()]
    blocks += [TextTable(_COLUMNS, tuple(map(_row, answer.found))), Line()]
    blocks += _why(answer)
    if answer.every:
        for each in answer.found:
            blocks += _endings(each)
    if answer.callers is not None:
        blocks += _callers(answer)
    for says in answer.assumed:
        blocks.append(Line((Span(f"Assumed: {says}.", Style.FAINT),)))
    return Document([*blocks, *assumed(answer.diagnostics)])


def _head(answer: ClientAnswer) -> Iterator[Line]:
    fates = dict(answer.fates)
    dead = answer.dead
    named = [
        *(f"node {each}{_fate(fates, each)}" for each in dead.nodes),
        *(f"zone {each}{_fate(fates, each)}" for each in dead.zones),
        *(f"{named_words(each)}{_fate(fates, each)}" for each in dead.named),
    ]
    said = ", ".join(named) or "nothing"
    where = f" at node {answer.view.node}" if answer.view.node and not answer.balanced else ""
    who = SOURCES[answer.source] if answer.client is None else _named(answer)
    yield Line((Span(f"Clients: {who}{where}. Dead: {said}.", Style.STRONG),))
    if answer.balanced:
        nodes = ", ".join(f"{name} {share(each, each)}" for name, each in answer.balanced)
        yield Line((f"The load balancer draws {nodes}.",))
    yield from _singled_out(answer)
    yield _worst(answer)
    if answer.is_broken:
        assert answer.max_failure is not None
        most = limit_percent(answer.max_failure)
        beyond = sum(each.outcome.fails[1] > answer.max_failure for each in answer.found)
        hint = (
            "; --service names what counts" if answer.is_open else "; --from IP judges one client"
        )
        if answer.view.untold or (answer.is_open and answer.is_named):
            hint = ""  # neither helps, and what is missing is named below
        says = f"Not everything was judged: that breaks --max-failure{hint}."
        if beyond:
            says = f"--max-failure {most}: {count(beyond, 'operation')} may fail more often."
        yield Line((Span(says, Style.BAD),))


def _named(answer: ClientAnswer) -> str:
    return f"{answer.client}, {SOURCES[answer.source]}"


def _singled_out(answer: ClientAnswer) -> Iterator[Line]:
    """Yield whose flows end differently, so that the answer is not theirs."""
    services: dict[tuple[Network, ...], list[str]] = {}
    for name, networks in answer.singled_out:
        services.setdefault(networks, []).append(name)
    for networks, names in services.items():
        named = first_networks([*map(_host_or_network, networks)], len(networks))
        says = f"Not judged: clients in {named}, whose flows to {listed(names)} end differently."
        yield Line((Span(f"{says} --from IP judges one.", Style.WARNING),))


def _host_or_network(network: Network) -> str:
    """Return an address as ``--from`` takes it, or a network of several."""
    return str(network.network_address if network.num_addresses == 1 else network)


def _worst(answer: ClientAnswer) -> Line:
    """Return the worst result, which a reader wants to know first."""
    found = max(answer.found, key=lambda each: (each.outcome.fails[1], each.outcome.fails[0]))
    fails, operation = found.outcome.fails, found.operation
    if not fails[1]:
        return Line(("Nothing fails for the others." if answer.singled_out else "Nothing fails.",))
    may = sum(1 for each in answer.found if each.outcome.fails[1])
    told = f"Worst: {operation.client}, which cannot {operation.says} in {share(*fails)} of cases"
    return Line((f"{told}; {may:,} of {count(len(answer.found), 'operation')} may fail.",))


def _fate(fates: dict[str, str], name: str) -> str:
    return f" ({fates[name]})" if name in fates else ""


def _row(predicted: PredictedOperation) -> tuple[Cell, ...]:
    operation, outcome = predicted.operation, predicted.outcome
    return (
        Span(operation.client, Style.STRONG),
        operation.says,
        Span(share(*outcome.fails), _style(outcome.fails)),
        _length(*outcome.delay),
        _length(*outcome.quantiles[1]),
        _time(outcome.failing()),
        known_from(predicted),
    )


def known_from(predicted: PredictedOperation) -> str:
    """Return whether a client's plan was measured, or read from its source."""
    match predicted.operation:
        case LookUp(resolver=resolver):
            return "measured" if resolver.measured else "source"
        case Connection(connector=connector):
            return "measured" if connector.measured else "source"
        case Journey(steps=steps):
            measured = all(
                step.resolver.measured if isinstance(step, LookUp) else step.connector.measured
                for step in steps
            )
            return "measured" if measured else "source"


def _time(time: Time | None) -> str:
    return "-" if time is None else _length(time.least, time.most)


def _length(lower: Fraction, upper: Fraction) -> str:
    """Return how long something lasts; what is not zero is never shown as zero."""
    return "<0.1s" if 0 < upper < _LEAST else length(lower, upper)


def _style(fails: FractionRange) -> Style:
    if not fails[1]:
        return Style.GOOD
    return Style.BAD if fails[0] == 1 else Style.WARNING


def _why(answer: ClientAnswer) -> Iterator[Line]:
    told = {(each.operation.client, why(each)) for each in answer.found}
    for each in answer.found:
        reasons = why(each)
        key = each.operation.client, reasons
        if reasons and key in told:
            told.discard(key)
            says = f": {'; '.join(reasons)}."
            yield Line((Span(each.operation.client, Style.STRONG), says))


def _endings(predicted: PredictedOperation) -> Iterator[Block]:
    columns = (Column("RESULT"), Column("CHANCE", right=True), Column("AFTER", right=True))
    operation = predicted.operation
    rows = tuple(
        (_RESULTS[each.result], share(*each.chance), _length(each.time.least, each.time.most))
        for each in predicted.outcome.endings
        if each.chance[1]
    )
    yield Line()
    yield Line((Span(operation.client, Style.STRONG), f": {operation.says}"))
    yield TextTable(columns, rows)


def _callers(answer: ClientAnswer) -> Iterator[Line]:
    found = answer.callers
    assert found is not None
    yield Line()
    nodes = ", ".join(sorted({node for node in found.dead.values() if node is not None}))
    dead = f"{len(found.dead)} dead with {nodes}" if found.dead else "none dead with its node"
    unknown = f", {len(found.unplaced)} on unknown nodes" if found.unplaced else ""
    yield Line((f"{count(found.number, 'caller')}: {dead}{unknown}, {len(found.living)} alive.",))
    for each in answer.found:
        operation = each.operation
        whole = found.without_answer(each.outcome.fails)
        says = f"{operation.client}: of all callers {share(*whole)} cannot {operation.says}."
        yield Line((says,))
