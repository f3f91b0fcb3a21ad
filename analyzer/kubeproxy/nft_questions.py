"""What rules on the way of the flows to each frontend ask about their sources."""

from __future__ import annotations

from collections.abc import Callable

from analyzer.kubeproxy.nft_entrances import Entrances
from analyzer.kubeproxy.nft_marked import asked_behind
from analyzer.kubeproxy.nft_order import NftOrder
from analyzer.kubeproxy.route_walks import Told
from analyzer.kubeproxy.sources import Asked
from analyzer.kubeproxy.view import Frontend
from analyzer.model.nft import Table
from analyzer.model.nft_expressions import Goto, Jump


class Questions:
    """The questions that flows to `entrances` meet.

    `around` is what rules ask that flows to several frontends meet. `bits_before` gives the bits
    of marks that rules of nat match on before flows leave.

    Attributes:
        around: as given.
    """

    def __init__(self, entrances: Entrances, around: Asked, bits_before: Callable[[], int]) -> None:
        self.around = around
        self._entrances = entrances
        self._bits_before = bits_before
        # By the identity of the table.
        self._behind: dict[tuple[int, str, str], Asked] = {}
        self._order = NftOrder(entrances.tables)

    def asked(self, frontend: Frontend, protocol: str) -> Asked:
        """Return what rules ask on the way of a frontend's flows."""
        found = self.around
        for table, chain in self._entrances.led_to(protocol, frontend):
            found |= self._asked_behind(table, chain, protocol)
        for place in self._entrances.guards_of(protocol, frontend):
            match place.verdict:
                case Jump(chain) | Goto(chain):
                    for table in self._entrances.tables:
                        found |= self._asked_behind(table, chain, protocol).parted()
                case _:
                    pass
        found = found.settled()
        by_marks = any((each.bits or 0) & self._bits_before() for each in found.marked)
        return found.parted() if by_marks or found.otherwise else found

    def told(self, frontend: Frontend, protocol: str, asked: Asked) -> Told:
        """Return what tells the sources of a frontend's flows apart, of which all is `asked`."""
        if not asked.marked:
            return Told(networks=asked.networks)
        return Told(
            networks=asked.networks,
            marked={each.address: each for each in asked.marked},
            order=self._order.of(protocol, frontend),
        )

    def _asked_behind(self, table: Table, chain: str, protocol: str) -> Asked:
        """Return what the rules of a chain, and of those that it leads to, ask."""
        key = id(table), chain, protocol
        found = self._behind.get(key)
        if found is None:
            found = asked_behind(self._entrances.chains(table, chain), table, protocol)
            self._behind[key] = found
        return found
