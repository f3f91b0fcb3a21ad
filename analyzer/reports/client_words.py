"""Sentences that explain a client's outcome."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.clients.connectors import To
from analyzer.clients.look_up import with_options
from analyzer.clients.operations import Connection, Journey, LookUp, PredictedOperation
from analyzer.clients.resolvers import Port, Search
from analyzer.model.ternary import Ternary
from analyzer.reports.phrases import count
from analyzer.reports.times import share


def why(predicted: PredictedOperation) -> tuple[str, ...]:
    """Return what makes a client fail that often; nothing if it never does."""
    if not predicted.outcome.fails[1] and not predicted.outcome.delay[1]:
        return ()
    match predicted.operation:
        case LookUp() as operation:
            return tuple(_look_up(operation, predicted))
        case Connection() as operation:
            return tuple(_connection(operation, predicted))
        case Journey():
            return tuple(
                f"{step} alone fails {share(*fails)}"
                for step, fails in predicted.alternatives.items()
            )


def _look_up(operation: LookUp, predicted: PredictedOperation) -> Iterator[str]:
    resolver = with_options(operation.resolver, operation.conf)
    asked = operation.asked
    before = next((at for at, each in enumerate(asked) if each.exists), None)
    if before is None:
        yield "none of the names that it queries exists, whatever is dead"
    elif before:
        follows = {
            Search.STOP: "an unanswered name ends the look-up",
            Search.AS_IS: "after an unanswered name only the name as given is tried",
            Search.NEXT: "an unanswered name only costs time, unless it is the right one",
        }[resolver.silence]
        yield f"the search queries {count(before + 1, 'name')}, each a new draw; {follows}"
    if resolver.attempts > 1:
        yield from _attempts(operation, predicted)
    if not resolver.hears_refusal:
        yield "its socket is not connected, so a refusal looks like silence"
    yield from _affine(predicted)


def _attempts(operation: LookUp, predicted: PredictedOperation) -> Iterator[str]:
    resolver = with_options(operation.resolver, operation.conf)
    number = count(resolver.attempts, "attempt")
    others = predicted.alternatives
    match resolver.port:
        case Port.SAME:
            new = others["new-ports"]
            if new != predicted.outcome.fails:
                yield (
                    f"after silence its {number} come from one port, and conntrack keeps them at "
                    f"one endpoint; from new ports {share(*new)} would fail"
                )
        case Port.NEW:
            one = others["one-attempt"]
            yield (
                f"each of {number} comes from a new port and is drawn anew; with only one "
                f"{share(*one)} would fail"
            )
        case Port.EITHER:
            yield f"it is not known which of its {number} are drawn anew"


def _connection(operation: Connection, predicted: PredictedOperation) -> Iterator[str]:
    connector = operation.connector
    pinned = connector.pinned or predicted.affine is Ternary.TRUE
    if connector.to is To.PODS:
        most = (
            f"up to {count(connector.tries, 'endpoint')}" if connector.tries else "every endpoint"
        )
        yield f"it draws among endpoints itself, and may try {most}"
        return
    if connector.is_open:
        yield "a connection stays with its endpoint, and only a time-out reveals that it is dead"
    if pinned:
        yield "session affinity is all or nothing for a client: each try goes to the same endpoint"
    elif predicted.affine is Ternary.UNKNOWN:
        yield from _affine(predicted)
    elif connector.tries > 1:
        one = predicted.alternatives["one-attempt"]
        tries = count(connector.tries, "try", "tries")
        yield (
            f"each of {tries} is drawn anew, except after a refusal; with only one {share(*one)} "
            "would fail"
        )
    elif not connector.is_open and predicted.outcome.delay[1]:
        yield "its SYNs are sent again to the same endpoint: conntrack keeps it"


def _affine(predicted: PredictedOperation) -> Iterator[str]:
    if predicted.affine is Ternary.TRUE:
        yield "session affinity is all or nothing for a client: each draw is the same"
    elif predicted.affine is Ternary.UNKNOWN:
        yield (
            "session affinity pins a client to one endpoint, unless the rules forget it (100 "
            "clients a node)"
        )
