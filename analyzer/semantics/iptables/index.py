"""An index of a long chain: which of its rules a packet can match at all.

KUBE-SERVICES is a list of all Services, which the kernel searches from its start. To answer for one
packet we evaluate only rules for its destination address or port, and those that name neither.
Their order is kept, and a rule that is left out certainly does not match. Rules that are parsed on
access give their keys without being parsed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from weakref import ref

from analyzer.model.addresses import address_from_text, address_to_text
from analyzer.model.intervals import Intervals, one_each
from analyzer.model.iptables.matches import MatchDestination, MatchSctp, MatchTcp, MatchUdp
from analyzer.model.iptables.options import Option, Range
from analyzer.model.iptables.rules import LazyRules, Rule
from analyzer.model.packet import Packet
from analyzer.model.region import AnyOf, Parted

#: Shorter chains are evaluated as they are.
WORTHWHILE = 32


class ChainIndex:
    """The rules of one chain by destination address and by destination port."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._count = len(rules)
        #: Those of a short chain; a long one is kept no longer than its dump.
        self._few = rules if self._count < WORTHWHILE else ()
        self._named: dict[int, Intervals] = {}
        self._by_address: dict[str, list[int]] = {}
        self._by_port: dict[int, list[int]] = {}
        self._others: list[int] = []
        self._without_address: list[int] = []
        self._any_of_port: dict[int, list[int]] = {}
        self._any_without_port: list[int] = []
        if self._count < WORTHWHILE:
            return
        for index, (address, port) in enumerate(keys_of(rules)):
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
        """Return the index of `rules`; that of a long chain is kept for the next traversal."""
        if not isinstance(rules, LazyRules) or len(rules) < WORTHWHILE:
            return cls(rules)
        key = id(rules)
        known = _KEPT.get(key)
        if known is None:
            known = _KEPT[key] = ref(rules, lambda _: _KEPT.pop(key, None)), cls(rules)
        return known[1]

    def tell_apart(self, packet: Packet) -> None:
        """Separate destinations that rules name one by one from all others, in one split.

        Raises:
            Parted: some of the packet's destinations are named like that, and some are not.
        """
        region = packet.destinations
        if region is None or isinstance(region, AnyOf) or packet.destination is not None:
            return
        named = self._hosts(region.version)
        inside = region.common(named) if named else ()
        if inside and inside != region.intervals:
            raise Parted(region, named, inside)

    def _hosts(self, version: int) -> Intervals:
        """Return the single addresses of an IP version that rules match on."""
        if version not in self._named:
            keys = keys_of(self._few) if _may_name_hosts(self._few) else ()
            texts = self._by_address or dict.fromkeys(host for host, _ in keys if host is not None)
            found = [each for each in map(address_from_text, texts) if each is not None]
            numbers = [int(each) for each in found if each.version == version]
            self._named[version] = one_each(numbers)
        return self._named[version]

    def candidates(self, packet: Packet, start: int) -> Iterable[int]:
        """Return, in order, the indexes from `start` on of rules that may match `packet`."""
        if self._count < WORTHWHILE:
            return range(start, self._count)
        to, port = packet.destination, packet.destination_port
        region = packet.destinations
        unnamed = (
            to is None and region is not None and not region.common(self._hosts(region.version))
        )
        if to is None and port is None and not unnamed:
            return range(start, self._count)
        lists: tuple[Sequence[int], ...]
        if unnamed and port is None:
            lists = (self._without_address,)
        elif unnamed:
            assert port is not None
            lists = self._by_port.get(port, ()), self._others
        elif to is None:
            assert port is not None  # else nothing is known to look for
            lists = self._any_of_port.get(port, ()), self._any_without_port
        else:
            theirs = self._by_address.get(address_to_text(to), ())
            if port is None:  # not known, or of a protocol without
                lists = theirs, self._without_address
            else:
                lists = theirs, self._by_port.get(port, ()), self._others
        from heapq import merge  # not needed for short chains

        return merge(*(_since(start, each) for each in lists))


#: The indexes of long chains, by the identity of their rules, as long as these exist.
_KEPT: Final[dict[int, tuple[ref[LazyRules], ChainIndex]]] = {}


def keys_of(rules: Sequence[Rule]) -> Iterable[tuple[str | None, int | None]]:
    """Return the destination and the port that each rule matches at least; None: any."""
    return rules.keys() if isinstance(rules, LazyRules) else map(_key, rules)


def _may_name_hosts(rules: Sequence[Rule]) -> bool:
    texts = rules.texts() if isinstance(rules, LazyRules) else None
    return texts is None or any("/32 " in each or "/128 " in each for each in texts)


def _since(start: int, places: Sequence[int]) -> Iterator[int]:
    """Yield the places from `start` on, without visiting those before."""
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
