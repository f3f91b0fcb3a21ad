"""An index of a long nft chain: which of its rules a packet can match at all.

Rulesets of iptables-nft have a list of all Services, as in `index`. For one packet we evaluate only
rules for its destination address and port, as far as these are known, and those that name neither.
Block lists have a rule for each source: of many such rules we evaluate only those for some of the
packet's sources. A rule that is left out does nothing before a comparison that certainly fails.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.intervals import Intervals, meet
from analyzer.model.nft.expressions import Payload, Prefix
from analyzer.model.nft.ruleset import Rule
from analyzer.model.nft.statements import Counter, Match, Xt
from analyzer.model.packet import Packet
from analyzer.model.region import Region
from analyzer.semantics.nft.covering import interval_of

#: Shorter chains are evaluated as they are.
WORTHWHILE: Final = 16
#: Protocols whose ports are indexed; for others the field may contain anything.
_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})

#: Destination address and port that a rule is for; None: any.
_Key: TypeAlias = tuple[Address | None, int | None]


class NftChainIndex:
    """The rules of one chain by destination address and port, and by source."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._count = len(rules)
        self._places: dict[_Key, list[int]] = {}
        #: By what is known of a packet's destination and sources.
        self._found: dict[object, Sequence[int]] = {}
        if self._count >= WORTHWHILE:
            for at, rule in enumerate(rules):
                self._places.setdefault(_key(rule), []).append(at)

    def following(self, packet: Packet, start: int) -> int:
        """Return the index, `start` or later, of the next rule that may match `packet`.

        If there is none, the index is past the last rule.
        """
        if self._count < WORTHWHILE:
            return start
        to = packet.destination
        port = packet.destination_port if packet.protocol in _PROTOCOLS else None
        sources = (packet.source or packet.sources) if self._by_source else None
        if to is None and port is None and sources is None:
            return start
        key = to, port, sources
        found = self._found.get(key)
        if found is None:
            fitting = self._fitting(to, port)
            if sources is not None:
                others = self._of_others(sources)
                fitting = (at for at in fitting if at not in others)
            found = self._found[key] = sorted(fitting)
        place = bisect_left(found, start)
        return found[place] if place < len(found) else self._count

    def _fitting(self, to: Address | None, port: int | None) -> Iterator[int]:
        """Yield the indexes of rules for an address and a port; None: for any."""
        if to is not None and port is not None:
            for key in ((to, port), (to, None), (None, port), (None, None)):
                yield from self._places.get(key, ())
            return
        for (address, number), places in self._places.items():
            if (to is None or address in {None, to}) and (port is None or number in {None, port}):
                yield from places

    @cached_property
    def _by_source(self) -> Sequence[tuple[int, int, Intervals]]:
        """The index, IP version and source of rules for one network each; none if they are few."""
        each = ((at, source_of(rule, "saddr")) for at, rule in enumerate(self._rules))
        found = [(at, *source) for at, source in each if source is not None]
        return found if len(found) >= WORTHWHILE else ()

    def _of_others(self, sources: Address | Region) -> frozenset[int]:
        """Return the indexes of rules for one network each that has none of these addresses."""
        has = _intervals(sources)
        return frozenset(
            at
            for at, version, asked in self._by_source
            if version != sources.version or not meet(asked, has)
        )


def _intervals(addresses: Address | Region) -> Intervals:
    if isinstance(addresses, Region):
        return addresses.intervals
    return ((int(addresses), int(addresses)),)


def source_of(rule: Rule, field: str) -> tuple[int, Intervals] | None:
    """Return the IP version and the network of a rule for one network of an address field.

    None: it is not for one, or does something before it compares the address.
    """
    for statement in rule.statements:
        match statement:
            case Match("==", Payload("ip" | "ip6", name), to) if name == field:
                pass
            case Match() | Counter() | Xt("match"):
                continue
            case _:
                return None
        match to:
            case IPv4Address() | IPv6Address():
                return to.version, ((int(to), int(to)),)
            case Prefix(address) if (network := interval_of(to, {})) is not None:
                return address.version, (network,)
            case _:
                return None
    return None


def _key(rule: Rule) -> _Key:
    address: Address | None = None
    port: int | None = None
    for statement in rule.statements:
        match statement:
            case Match("==", Payload("ip" | "ip6", "daddr"), IPv4Address() | IPv6Address() as to):
                address = to
            case Match("==", Payload("th" | "tcp" | "udp" | "sctp", "dport"), int(number)):
                port = number
            case Match() | Counter() | Xt("match"):
                pass
            case _:
                break
    return address, port
