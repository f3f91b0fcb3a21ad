"""Whether flows to plain Services of nft are lost after their DNAT, decided for many at once.

Most often no rule after nat loses any of them: a few traversals for the endpoints of all Services
find that, so that no endpoint is looked at. Where they do not, each Service is decided by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, partial

from analyzer.kubeproxy.fastpath.nft_hairpins import PlainHairpins
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.routes.leaving import Towards
from analyzer.kubeproxy.rows.plain_shares import Drawn, endpoint_of
from analyzer.kubeproxy.rows.shapes import number
from analyzer.kubeproxy.view import Frontend, Source
from analyzer.model.addresses import IPV6, Address
from analyzer.model.packet import Mark
from analyzer.model.region import Interval, Intervals, everything, joined
from analyzer.model.value import value


@value
class PlainFlows:
    """A plain Service, and its flows.

    Attributes:
        kind: equal for Services whose flows the rules before their chains treat alike.
        hosts: the addresses of its endpoints, as written.
        marks: by source, those that flows may have that do not return to their endpoint.
    """

    kind: tuple[object, ...]
    frontend: Frontend
    protocol: str
    drawn: Drawn
    hosts: Sequence[str]
    marks: Mapping[Source, frozenset[Mark]]


class QuietServices:
    """Decides of which Services no flow may be lost after its DNAT."""

    def __init__(self, walks: FlowWalks, hairpins: PlainHairpins) -> None:
        self._walks = walks
        self._hairpins = hairpins
        #: For each function of `FlowWalks.towards`: the endpoints with whether none of their flows
        #: is lost.
        self._passing: dict[Towards, dict[tuple[Address, int | None], bool]] = {}
        #: For how many of `_every` a few traversals found that no flow is lost; None: they do not
        #: decide. By what they were asked.
        self._spared: dict[Hashable, int | None] = {}
        self._every: list[PlainFlows] = []
        #: How many of them the following are of.
        self._done = 0
        #: By kind, each endpoint of this node as written, with a Service that has it.
        self._users: dict[Hashable, dict[str, PlainFlows]] = {}
        #: Their addresses as written, and those that may be of pods of this node.
        self._hosts: set[str] = set()
        self._here: set[str] = set()

    def add(self, asked: PlainFlows) -> Callable[[], bool]:
        """Return a function that returns whether no flow to a Service may be lost."""
        at = len(self._every)
        self._every.append(asked)
        return lambda: self._is_kind_quiet(asked, at) or self._is_quiet(asked, at)

    def _is_kind_quiet(self, asked: PlainFlows, at: int) -> bool:
        """Return whether a few traversals find no loss for all Services of a kind."""

        def are_quiet() -> bool:
            ways = self._ways(asked).items()
            return all(self._spares(*way, at) for way in ways) and self._are_hairpins_quiet(
                self._users.get(asked.kind, {}).items(), asked, at
            )

        return self._is_spared(asked.kind, are_quiet, at)

    def _is_quiet(self, asked: PlainFlows, at: int) -> bool:
        self._read()
        if not self._are_hairpins_quiet(self._here_of(asked), asked, at):
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
        for mark in frozenset[Mark]().union(*marks):
            if not self._spares_hairpins(like.protocol, mark, at):
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

    def _spares_hairpins(self, protocol: str, mark: Mark, at: int) -> bool:
        spares = partial(self._walks.spared.are_hairpins, protocol, mark)
        return self._is_spared((protocol, mark), lambda: spares(self._those_here), at)

    def _are_spared(self, spares: Callable[[Intervals], bool]) -> bool:
        """Return whether one traversal for the endpoints of all Services finds no loss."""
        # To make a number of each address would take most of the time.
        return spares(self._around) or spares(self._addresses)

    @cached_property
    def _around(self) -> Intervals:
        """Few intervals that contain all endpoints."""
        return joined(map(_around, {host.rpartition(".")[0] for host in self._hosts}))

    @cached_property
    def _addresses(self) -> Intervals:
        return _intervals(self._hosts)

    @cached_property
    def _those_here(self) -> Intervals:
        return _intervals(self._here)

    def _is_spared(self, key: Hashable, spares: Callable[[], bool], at: int) -> bool:
        """Return whether a few traversals for the endpoints of all Services find no loss.

        `spares` returns that; `key` is equal for flows that differ in nothing; `at` is the position
        of the Service that is asked about.
        """
        spared = self._spared.get(key, 0)
        if spared is not None and at >= spared:
            self._read()
            spared = self._spared[key] = len(self._every) if spares() else None
        return spared is not None

    def _here_of(self, asked: PlainFlows) -> list[tuple[str, PlainFlows]]:
        """Return the endpoints of a Service that may be of pods of this node."""
        if self._here.isdisjoint(asked.hosts):
            return []
        every = zip(asked.drawn.texts, asked.hosts, strict=True)
        return [(text, asked) for text, host in every if host in self._here]

    def _read(self) -> None:
        """Read the endpoints of all Services that are there by now."""
        if self._done == len(self._every):
            return
        new = self._every[self._done :]
        self._done = len(self._every)
        hosts = set[str]().union(*[asked.hosts for asked in new])
        self._here |= self._walks.hairpins.here(hosts - self._hosts)
        self._hosts |= hosts
        for asked in new:
            if here := self._here_of(asked):
                self._users.setdefault(asked.kind, {}).update(here)
        for made in ("_around", "_addresses", "_those_here"):
            vars(self).pop(made, None)


def _intervals(hosts: Iterable[str]) -> Intervals:
    return joined([(at, at) for at in map(number, hosts)])


def _around(head: str) -> Interval:
    """Return all addresses of IPv4 that begin like that; without a head, all of IPv6."""
    return (number(f"{head}.0"), number(f"{head}.255")) if head else everything(IPV6)
