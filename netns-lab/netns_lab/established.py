"""Flows that conntrack knows, sent again to see whether they still reach the same endpoint."""

from __future__ import annotations

from collections.abc import Mapping

from netns_lab.columns import RawSocketAddress
from netns_lab.measure import RouteRun


class Established(RouteRun):
    """Flows of one route that are sent repeatedly, each from the same port as before."""

    def _prepared(self, clients: int) -> int:
        return min(self._room, -(-self._count_of_flows // clients) * clients)

    def send(self) -> Mapping[int, RawSocketAddress]:
        """Send a packet of each flow, and return where each arrived, by the flow's tag."""
        with self._lab.muted():
            count = min(self._count_of_flows, self._flows.room)
            self._send(0, count)
            self._wait_for_the_rest(count)
            found = dict(self._landed)
            self._landed.clear()
            self._answered.clear()
        return found
