"""Which rules of a long chain can a packet meet at all?

KUBE-SERVICES is a list of all Services, searched from its start by the kernel. To answer for one
packet we look only at rules for its destination address or port, and at those that name neither.
Their order is kept, and a rule that is left out is one that certainly does not match. Rules that
are understood when they are looked at tell their keys without being understood.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from analyzer.model.addresses import address_to_text
from analyzer.model.matches import MatchDestination, MatchSctp, MatchTcp, MatchUdp
from analyzer.model.options import Option, Range
from analyzer.model.packet import Packet
from analyzer.model.rules import LazyRules, Rule

#: Shorter chains are walked as they are.
WORTHWHILE = 32


class ChainIndex:
    """The rules of one chain by destination address and by destination port."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._count = len(rules)
        self._by_address: dict[str, list[int]] = {}
        self._by_port: dict[int, list[int]] = {}
        self._others: list[int] = []
        self._without_address: list[int] = []
        self._any_of_port: dict[int, list[int]] = {}
        self._any_without_port: list[int] = []
        if self._count < WORTHWHILE:
            return
        keys = rules.keys() if isinstance(rules, LazyRules) else map(_key, rules)
        for index, (address, port) in enumerate(keys):
            if port is None:
                self._any_without_port.append(index)
            else:
                self._any_of_port.setdefault(port, []).append(index)
            if address is None:
                self._without_address.append(index)
            if address is not None:
                self._by_address.setdefault(address, []).append(index)
            elif port is not None:
                self._by_port.setdefault(port, []).append(index)
            else:
                self._others.append(index)

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> ChainIndex:
        """Return the index of `rules`, made once where they can keep it."""
        if not isinstance(rules, LazyRules):
            return cls(rules)
        if rules.index is None:
            rules.index = cls(rules)
        found: ChainIndex = rules.index
        return found

    def candidates(self, packet: Packet, start: int) -> Iterator[int]:
        """Give, in order, the indexes from `start` on of rules that may match `packet`."""
        to, port = packet.destination, packet.destination_port
        if self._count < WORTHWHILE or (to is None and port is None):
            yield from range(start, self._count)
            return
        lists: tuple[Sequence[int], ...]
        if to is None:
            assert port is not None  # else nothing is known to look for
            lists = self._any_of_port.get(port, ()), self._any_without_port
        else:
            theirs = self._by_address.get(address_to_text(to), ())
            if port is None:  # not known, or of a protocol without
                lists = theirs, self._without_address
            else:
                lists = theirs, self._by_port.get(port, ()), self._others
        yield from heapq.merge(*(_since(start, each) for each in lists))


def _since(start: int, places: Sequence[int]) -> Iterator[int]:
    """Give the places from `start` on, without a look at those before."""
    return map(places.__getitem__, range(bisect_left(places, start), len(places)))


def _key(rule: Rule) -> tuple[str | None, int | None]:
    return _host(rule), _port(rule)


def _host(rule: Rule) -> str | None:
    for match in rule.matches:
        if isinstance(match, MatchDestination):
            network = match.network
            alone = network.num_addresses == 1
            return address_to_text(network.network_address) if alone else None
    return None


def _port(rule: Rule) -> int | None:
    for match in rule.matches:
        if isinstance(match, MatchTcp | MatchUdp | MatchSctp):
            match match.destination_port:
                case Option(Range(first, last), negated=False) if first == last:
                    return first
                case _:
                    return None
    return None
