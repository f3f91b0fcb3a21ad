"""The plan of a connection: its attempts, its pauses, and its destinations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from analyzer.clients.connectors import DATA, SYNS, Connector
from analyzer.clients.look_up import Finish
from analyzer.clients.plan import (
    AT_ONCE,
    ZERO,
    EitherPlan,
    OperationResult,
    Plan,
    Time,
    after,
    draw,
    exactly,
)
from analyzer.clients.responses import RESPONSES, FlowResponse, Lot
from analyzer.clients.target import ClientTarget, Pins, new_flow
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.depth import deep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeAlias

    #: What follows a try that failed so.
    _Behind: TypeAlias = Callable[[OperationResult], Plan]

#: Most endpoints of which every number that may fail is evaluated by itself.
_FEW: Final = 16
#: How many endpoints have each fate.
ResponseCounts = Mapping[FlowResponse, int]


def connect(connector: Connector, target: ClientTarget, pins: Pins, finish: Finish) -> Plan:
    """Return the plan of a connection to a frontend."""
    if connector.pinned:
        target = replace(target, affine=Ternary.TRUE)
    return _Connect(connector, target, finish).begin(pins)


@deep
def connect_to_pods(
    connector: Connector, sure: ResponseCounts, perhaps: ResponseCounts, pins: Pins, finish: Finish
) -> Plan:
    """Return the plan of connecting to endpoints one by one, in an order drawn once.

    Of endpoints it is known how many certainly have each fate (`sure`), and how many may have it
    and else live (`perhaps`).
    """
    if sum(perhaps.values()) > _FEW:
        return _Pick(connector, sure, perhaps, pins, finish).begin()
    plans = tuple(
        _Pick(connector, counts, {}, pins, finish).begin() for counts in _every(sure, perhaps)
    )
    return plans[0] if len(plans) == 1 else EitherPlan(plans)


def _every(sure: ResponseCounts, perhaps: ResponseCounts) -> Iterator[dict[FlowResponse, int]]:
    """Yield all that the numbers of endpoints may be."""
    found = [dict(sure)]
    for fate, number in perhaps.items():
        found = [
            {
                **each,
                fate: each.get(fate, 0) + dead,
                FlowResponse.ANSWERED: each.get(FlowResponse.ANSWERED, 0) + number - dead,
            }
            for each in found
            for dead in range(number + 1)
        ]
    yield from found


class _Tries:
    """What a try costs that is not answered, and what follows."""

    def __init__(self, connector: Connector) -> None:
        self.connector = connector

    def timeout(self, number: int) -> Time:
        """Return how long an attempt waits for an answer."""
        every = self.connector.timeout
        return exactly(every[min(number, len(every) - 1)]) if every else SYNS

    def failed(self, fate: FlowResponse, number: int, again: _Behind, ends: _Behind) -> Plan:
        """Return the plan after an attempt that ended in `fate`: a retry, or the end."""
        stays = again if self.connector.goes_on else ends
        timeout = self.timeout(number)
        waits = after(timeout, again(OperationResult.TIMED_OUT))
        match fate:
            case FlowResponse.REFUSED:
                return stays(OperationResult.REFUSED)
            case FlowResponse.UNREACHABLE:
                # Hosts limit how much ICMP they send. Measured, for nc beside 15 others: 0 to 11 s.
                told = after(Time(ZERO, timeout.most), stays(OperationResult.UNREACHABLE))
                return EitherPlan((told, waits))
            case _:
                return waits


class _Connect:
    def __init__(self, connector: Connector, target: ClientTarget, finish: Finish) -> None:
        self._connector = connector
        self._target = target
        self._finish = finish
        self._tries = _Tries(connector)
        self._known: dict[tuple[int, Pins], Plan] = {}

    def begin(self, pins: Pins) -> Plan:
        """Return the whole plan."""
        if not self._connector.is_open:
            return self._try(0, pins)
        lot = self._target.lot

        def goes_on(fate: FlowResponse) -> Plan:
            match fate:
                case FlowResponse.ANSWERED:
                    return self._finish(OperationResult.ANSWERED, pins)
                case FlowResponse.REFUSED:
                    return self._try(0, pins)
                case _:
                    # On a connection that is established ICMP ends nothing.
                    return after(DATA, self._try(0, pins))

        return draw(lot, goes_on)

    def _try(self, number: int, pins: Pins) -> Plan:
        key = number, pins
        if key not in self._known:
            self._known[key] = new_flow(
                self._target, pins, lambda fate, held: self._met(fate, number, held)
            )
        return self._known[key]

    def _met(self, fate: FlowResponse, number: int, pins: Pins) -> Plan:
        if fate is FlowResponse.ANSWERED:
            return self._finish(OperationResult.ANSWERED, pins)

        def again(result: OperationResult) -> Plan:
            if number + 1 == self._connector.tries:
                return self._finish(result, pins)
            pauses = self._connector.pauses
            pause = exactly(pauses[min(number, len(pauses) - 1)]) if pauses else AT_ONCE
            return after(pause, self._try(number + 1, pins))

        return self._tries.failed(fate, number, again, lambda r: self._finish(r, pins))


class _Pick:
    """Endpoints one after the other, none twice before all were tried.

    Some certainly have a fate (`sure`), and some have it or else live (`perhaps`). How many of the
    latter do may be another number at each draw: that contains what any fixed number gives.
    """

    def __init__(
        self,
        connector: Connector,
        sure: ResponseCounts,
        perhaps: ResponseCounts,
        pins: Pins,
        finish: Finish,
    ) -> None:
        self._connector = connector
        self._sure = sure
        self._perhaps = perhaps
        self._pins = pins
        self._finish = finish
        self._tries = _Tries(connector)
        self._number = sum(sure.values()) + sum(perhaps.values())
        self._known: dict[tuple[Any, ...], Plan] = {}
        #: Whether endpoints are tried again in the same order.
        self._repeats = connector.around and (connector.tries or 0) > self._number

    def begin(self) -> Plan:
        """Return the whole plan."""
        if not self._number:
            return self._finish(OperationResult.REFUSED, self._pins)
        return self._try(())

    def _try(self, seen: tuple[FlowResponse, ...]) -> Plan:
        if not self._repeats:  # then it does not matter in which order they were tried
            seen = tuple(sorted(seen, key=RESPONSES.index))
        if seen not in self._known:
            self._known[seen] = self._make(seen)
        return self._known[seen]

    def _make(self, seen: tuple[FlowResponse, ...]) -> Plan:
        if len(seen) >= self._number:  # the same order again
            return self._met(seen, seen[len(seen) - self._number])
        total = self._number - len(seen)
        left = [self._left(fate, seen) for fate in RESPONSES]
        shares = tuple([(Fraction(least, total), Fraction(most, total)) for least, most in left])
        return draw(Lot(shares), lambda fate: self._met(seen, fate))

    def _left(self, fate: FlowResponse, seen: tuple[FlowResponse, ...]) -> tuple[int, int]:
        """Return how many endpoints with a fate are left, at least and at most."""
        sure = self._sure.get(fate, 0) - seen.count(fate)
        if fate is not FlowResponse.ANSWERED:
            return max(sure, 0), sure + self._perhaps.get(fate, 0)
        used = (max(seen.count(f) - self._sure.get(f, 0), 0) for f in self._perhaps)
        return sure, sure + sum(self._perhaps.values()) - sum(used)

    def _met(self, seen: tuple[FlowResponse, ...], fate: FlowResponse) -> Plan:
        if fate is FlowResponse.ANSWERED:
            return self._finish(OperationResult.ANSWERED, self._pins)
        connector, tried = self._connector, (*seen, fate)
        most = connector.tries or self._number
        if not connector.around:
            most = min(most, self._number)

        def again(result: OperationResult) -> Plan:
            if len(tried) < most:
                return self._try(tried)
            # A proxy in between has taken the connection, and closes it.
            return self._finish(OperationResult.CLOSED if connector.around else result, self._pins)

        return self._tries.failed(fate, len(seen), again, lambda r: self._finish(r, self._pins))
