"""The endpoints of all plain Services of nft, for questions that are asked about all at once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter

from analyzer.kubeproxy.routes.hairpins import Hairpins
from analyzer.kubeproxy.rows.plain_shares import Drawn
from analyzer.kubeproxy.rows.shapes import number
from analyzer.kubeproxy.view import Frontend, Source
from analyzer.model.addresses import IPV6, Address
from analyzer.model.intervals import Interval, Intervals, everything, joined, one_each, without
from analyzer.model.packet import Mark
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


class PlainHosts:
    """The endpoints of all Services so far; `own` are the node's addresses, if known.

    `of_all` are the endpoints, as written, of all Services there may be, and how many these are.

    Attributes:
        users: by kind of Service, each endpoint that may be of a pod of this node, as written, with
            a Service that has it.
        number: of the Services whose endpoints were read.
    """

    def __init__(
        self, hairpins: Hairpins, own: Collection[Address], of_all: tuple[set[str], int]
    ) -> None:
        self._hairpins = hairpins
        self._own = one_each(map(int, own))
        self._of_all = of_all
        self._every: list[PlainFlows] = []
        self._hosts: set[str] = set()
        self._here: set[str] = set()
        self.users: dict[Hashable, dict[str, PlainFlows]] = {}
        self.number = 0

    def __len__(self) -> int:
        return len(self._every)

    def add(self, asked: PlainFlows) -> None:
        """Take the next Service; its endpoints are read when they are needed."""
        self._every.append(asked)

    def read(self) -> None:
        """Read the endpoints of all Services that are there by now."""
        if self.number == len(self._every):
            return
        new = self._every[self.number :]
        self.number = len(self._every)
        of_all, number = self._of_all
        # Most often these are all, and the union need not be found again.
        hosts = of_all if len(new) == number else set().union(*[asked.hosts for asked in new])
        self._here |= self._hairpins.here(hosts - self._hosts if self._hosts else hosts)
        self._hosts = self._hosts | hosts if self._hosts else hosts
        for asked in new:
            if here := self.here_of(asked):
                self.users.setdefault(asked.kind, {}).update(here)
        for made in ("around", "addresses", "those_here", "numbers_here", "_by_port"):
            vars(self).pop(made, None)

    def here_of(self, asked: PlainFlows) -> list[tuple[str, PlainFlows]]:
        """Return the endpoints of a Service that may be of pods of this node."""
        if self._here.isdisjoint(asked.hosts):
            return []
        every = zip(asked.drawn.texts, asked.hosts, strict=True)
        return [(text, asked) for text, host in every if host in self._here]

    @cached_property
    def around(self) -> Intervals:
        """Few intervals that contain all endpoints."""
        # To make a number of each address would take most of the time, and so would cutting each
        # at its last dot: without its last character it still has that, and few differ.
        most = set(map(itemgetter(slice(-1)), self._hosts))
        return joined(map(_around, {each.rpartition(".")[0] for each in most}))

    @cached_property
    def addresses(self) -> Intervals:
        """All endpoints."""
        return _intervals(self._hosts)

    @cached_property
    def those_here(self) -> Intervals:
        """Those that may be of pods of this node."""
        return _intervals(self._here)

    @cached_property
    def numbers_here(self) -> frozenset[int]:
        """The same, one by one."""
        return frozenset(map(number, self._here))

    def at_port(self, protocol: str, port: int | None) -> Intervals:
        """Return those of this node that a Service sends flows of a protocol to at a port.

        Without a port, at any.
        """
        if port is None:
            return self.those_here
        return self._by_port.get((protocol, port), ())

    @cached_property
    def _by_port(self) -> Mapping[tuple[str, int], Intervals]:
        found: dict[tuple[str, int], set[int]] = {}
        for used in self.users.values():
            for text, asked in used.items():
                host, _, port = text.rpartition(":")
                found.setdefault((asked.protocol, int(port)), set()).add(number(host))
        return {key: one_each(numbers) for key, numbers in found.items()}

    def not_own(self) -> Iterable[Intervals]:
        """Yield intervals that contain all endpoints, and none of the node's own addresses."""
        yield without(self.around, self._own)
        yield without(self.addresses, self._own)

    def elsewhere(self) -> Iterable[Intervals]:
        """Yield intervals with those that are neither of this node's pods nor its own."""
        for each in self.not_own():
            yield without(each, self.those_here)


def _intervals(hosts: Iterable[str]) -> Intervals:
    return one_each(map(number, hosts))


def _around(head: str) -> Interval:
    """Return all addresses of IPv4 that begin like that; without a head, all of IPv6."""
    return (number(f"{head}.0"), number(f"{head}.255")) if head else everything(IPV6)
