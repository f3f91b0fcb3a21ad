"""Whether flows to plain Services of nft are lost after their DNAT, decided for many at once.

Most often no rule after nat loses any of them: a few traversals for the endpoints of all Services
find that, so that no endpoint is looked at. Where they do not, each Service is decided by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial
from typing import Final

from analyzer.kubeproxy.fastpath.nft_hairpins import PlainHairpins
from analyzer.kubeproxy.fastpath.nft_hosts import PlainFlows, PlainHosts
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.routes.leaving import Towards
from analyzer.kubeproxy.rows.plain_shares import endpoint_of
from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address
from analyzer.model.intervals import Intervals
from analyzer.model.packet import Mark

#: Most ports of endpoints whose hairpin flows are evaluated all at once.
_MOST_PORTS: Final = 32


class QuietServices:
    """Decides of which Services no flow may be lost after its DNAT."""

    def __init__(self, walks: FlowWalks, hairpins: PlainHairpins, hosts: PlainHosts) -> None:
        self._walks = walks
        self._hairpins = hairpins
        self._hosts = hosts
        #: For each function of `FlowWalks.towards`: the endpoints with whether none of their flows
        #: is lost.
        self._passing: dict[Towards, dict[tuple[Address, int | None], bool]] = {}
        #: For how many of `_every` a few traversals found that no flow is lost; None: they do not
        #: decide. By what they were asked.
        self._spared: dict[Hashable, int | None] = {}

    def add(self, asked: PlainFlows) -> Callable[[], bool]:
        """Return a function that returns whether no flow to a Service may be lost."""
        at = len(self._hosts)
        self._hosts.add(asked)
        return lambda: self._is_kind_quiet(asked, at) or self._is_quiet(asked, at)

    def is_kind_quiet(self, asked: PlainFlows) -> bool:
        """Return whether that is known for all Services so far of the kind of one of them."""
        return self._is_kind_quiet(asked, len(self._hosts) - 1)

    def _is_kind_quiet(self, asked: PlainFlows, at: int) -> bool:
        """Return whether a few traversals find no loss for all Services of a kind."""

        def are_quiet() -> bool:
            ways = self._ways(asked).items()
            return all(self._spares(*way, at) for way in ways) and self._are_hairpins_quiet(
                self._hosts.users.get(asked.kind, {}).items(), asked, at
            )

        return self._is_spared(asked.kind, are_quiet, at)

    def _is_quiet(self, asked: PlainFlows, at: int) -> bool:
        self._hosts.read()
        if not self._are_hairpins_quiet(self._hosts.here_of(asked), asked, at):
            return False
        for towards, way in self._ways(asked).items():
            if self._spares(towards, way, at):
                continue
            known = self._passing.setdefault(towards, {})
            for endpoint in asked.drawn.endpoints:
                to = endpoint.address, endpoint.port
                if to not in known:
                    parts, _ = towards(int(endpoint.address), endpoint.port)
                    known[to] = not any(onward.lost for _, onward in parts)
                if not known[to]:
                    return False
        return True

    def _are_hairpins_quiet(
        self, every: Iterable[tuple[str, PlainFlows]], like: PlainFlows, at: int
    ) -> bool:
        """Return whether no flow of some endpoints of this node to themselves may be lost.

        Each is of a Service of the kind of `like`, which is the one at `at`.
        """
        hairpins = self._hairpins
        ways = [
            (like.kind, asked.frontend, like.protocol, endpoint_of(text)) for text, asked in every
        ]
        marks = {hairpins.marks(*way) for way in ways}
        ports = {endpoint.port for *_, endpoint in ways}
        for mark in frozenset[Mark]().union(*marks):
            if not self._spares_hairpins(like.protocol, mark, ports, at):
                return not any(hairpins.after_dnat(*way).lost for way in ways)
        return True

    def _ways(self, asked: PlainFlows) -> dict[Towards, tuple[Source, str, Mark]]:
        """Return what flows may be after DNAT; one function for flows that differ in nothing."""
        towards = self._walks.after_dnat.towards
        ways = [(s, asked.protocol, mark) for s, marks in asked.marks.items() for mark in marks]
        return {towards(*way): way for way in ways}

    def _spares(self, towards: Towards, way: tuple[Source, str, Mark], at: int) -> bool:
        spares = partial(self._walks.spared.are, *way)
        return self._is_spared(towards, partial(self._are_spared, spares), at)

    def _spares_hairpins(
        self, protocol: str, mark: Mark, ports: Collection[int | None], at: int
    ) -> bool:
        """Return whether no such flow is lost, whatever its port, or to none of a few ports."""
        spared = self._walks.spared

        def spares(port: int | None) -> bool:
            return spared.are_hairpins(protocol, mark, port, self._hosts.at_port(protocol, port))

        def are_spared(port: int | None) -> bool:
            return self._is_spared((protocol, mark, port), partial(spares, port), at)

        return are_spared(None) or (len(ports) <= _MOST_PORTS and all(map(are_spared, ports)))

    def _are_spared(self, spares: Callable[[Intervals], bool]) -> bool:
        """Return whether one traversal for the endpoints of all Services finds no loss."""
        return spares(self._hosts.around) or spares(self._hosts.addresses)

    def _is_spared(self, key: Hashable, spares: Callable[[], bool], at: int) -> bool:
        """Return whether a few traversals for the endpoints of all Services find no loss.

        `spares` returns that; `key` is equal for flows that differ in nothing; `at` is the position
        of the Service that is asked about.
        """
        spared = self._spared.get(key, 0)
        if spared is not None and at >= spared:
            self._hosts.read()
            spared = self._spared[key] = self._hosts.number if spares() else None
        return spared is not None
