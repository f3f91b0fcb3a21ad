"""What should happen to a connection that is open while its endpoint dies, or rules change.

conntrack keeps a connection at its endpoint whatever the rules are by then. While that is dead, the
kernel sends again what was not acknowledged, each time after twice as long as before: so a
connection that hung for a while may take as long again to continue. ICMP errors do not end it. A
process that is gone does: its kernel answers with a reset.

Source: RFC 1122, 4.2.3.9; Linux, net/ipv4/tcp_ipv4.c, ``tcp_v4_err``; tcp_timer.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.lab_phases import EndpointOutage, Hang, OpenConnection, RunEvent
from analyzer.model.value import replace
from netns_lab.connections import HANGS, KeptConnection, hangs
from netns_lab.schedule import Planned

#: Seconds by which what is seen may be late: a byte's turn, the first time that it is sent again.
_SLACK: Final = 0.5


#: Digits behind the second to which times are rounded before they are judged, as in a document.
_HANGS_TO: Final = 3
_EVENTS_TO: Final = 4


def connection_of(
    kept: KeptConnection,
    happened: Sequence[tuple[Planned, RunEvent]],
    end: float,
    pauses: Sequence[tuple[float, float]],
    *,
    is_told: bool,
    slowest: float = 0.0,
) -> OpenConnection:
    """Return how a connection fared, and whether it should have.

    Of rules that may drop flows that continue nothing is predicted: `is_told` says that none do.
    """
    found = (
        Hang(round(begins, _HANGS_TO), None if ends is None else round(ends, _HANGS_TO))
        for begins, ends in hangs(kept, end, pauses, slowest)
    )
    outages = None
    if is_told and kept.endpoint is not None:
        outages = tuple(_outages(kept.endpoint, happened))
    ended = kept.ended if kept.endpoint is not None else None
    connection = OpenConnection(
        number=kept.number,
        route=kept.route,
        endpoint=None if kept.endpoint is None else str(kept.endpoint),
        answered=max(0, len(kept.answers) - 1),
        hangs=tuple(found),
        ended=None if ended is None else round(ended, _HANGS_TO),
        outages=outages,
    )
    return judged(connection, end)


def judged(each: OpenConnection, end: float) -> OpenConnection:
    """Return a connection with what was expected of it until the `end`, and whether that holds."""
    if each.outages is None:
        return replace(each, expected=None, agrees=None)
    end = round(end, _EVENTS_TO)
    return replace(
        each,
        expected=_expected(each.outages, end),
        agrees=_agrees(each.hangs, each.ended, each.outages, end),
    )


def _outages(
    endpoint: Endpoint, happened: Sequence[tuple[Planned, RunEvent]]
) -> Iterator[EndpointOutage]:
    dead: tuple[Planned, RunEvent] | None = None
    for planned, event in happened:
        if planned.death is None or endpoint not in planned.death.endpoints:
            continue
        if planned.verb == "kill" and planned.death.kind.is_dead:
            dead = planned, event
        elif dead is not None:
            yield _outage(dead, (event.begun, event.ended))
            dead = None
    if dead is not None:
        yield _outage(dead, None)


def _outage(dead: tuple[Planned, RunEvent], ends: tuple[float, float] | None) -> EndpointOutage:
    planned, event = dead
    assert planned.death is not None
    return EndpointOutage(
        begun=round(event.begun, _EVENTS_TO),
        by=round(event.ended, _EVENTS_TO),
        ends=None if ends is None else (round(ends[0], _EVENTS_TO), round(ends[1], _EVENTS_TO)),
        is_reset=planned.death.kind.name == "process",
    )


def _expected(outages: Sequence[EndpointOutage], end: float) -> str:
    """Return in words what should happen to a connection."""
    for each in outages:
        if each.is_reset:
            return f"reset at {each.begun:.1f}s"
    said = [
        f"hangs from {each.begun:.1f}s"
        if each.ends is None
        else f"hangs from {each.begun:.1f}s to {each.ends[0]:.1f}s, "
        f"or until {min(end, _latest(each.begun, each.ends[1])):.1f}s"
        for each in outages
    ]
    return "; ".join(said) or "survives"


def _latest(begun: float, revived: float) -> float:
    """Return until when what hung may hang, which is sent again after twice as long each time."""
    return revived + (revived - begun) + _SLACK


def _agrees(
    found: Sequence[Hang], ended: float | None, outages: Sequence[EndpointOutage], end: float
) -> bool:
    reset = next((each for each in outages if each.is_reset), None)
    if (ended is None) != (reset is None):
        return False
    if reset is not None and ended is not None:
        return reset.begun <= ended <= reset.by + 2 * _SLACK
    return all(_is_explained(each, outages, end) for each in found) and all(
        _is_seen(each, found, end) for each in outages
    )


def _is_explained(hang: Hang, outages: Sequence[EndpointOutage], end: float) -> bool:
    """Return whether a hang began when the endpoint died, and ended when it should."""
    if not any(o.begun - _SLACK <= hang.begins <= o.by + _SLACK for o in outages):
        return False
    over = hang.ends if hang.ends is not None else end
    last = [o for o in outages if o.begun <= over][-1]
    if last.ends is None:
        return hang.ends is None
    return over <= max(_latest(hang.begins, last.ends[1]), 0)


def _is_seen(outage: EndpointOutage, found: Sequence[Hang], end: float) -> bool:
    """Return whether nothing arrived while the endpoint was dead, if that was long enough."""
    revived = end if outage.ends is None else outage.ends[0]
    if revived - outage.by <= 2 * HANGS:
        return True
    return any(
        hang.begins <= outage.by + _SLACK and (hang.ends is None or hang.ends >= revived - 0.1)
        for hang in found
    )
