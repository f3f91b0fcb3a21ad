"""An index of a long nft chain: which of its rules a packet can match at all.

Rulesets of iptables-nft have a list of all Services, as in `index`. For one packet we evaluate only
rules for its destination address and port, as far as these are known, and those that name neither.
A rule that is left out does nothing before a comparison that certainly fails.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.nft.expressions import Payload
from analyzer.model.nft.ruleset import Rule
from analyzer.model.nft.statements import Counter, Match, Xt
from analyzer.model.packet import Packet

#: Shorter chains are evaluated as they are.
WORTHWHILE: Final = 16
#: Protocols whose ports are indexed; for others the field may contain anything.
_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})

#: Destination address and port that a rule is for; None: any.
_Key: TypeAlias = tuple[Address | None, int | None]


class NftChainIndex:
    """The rules of one chain by destination address and port."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._count = len(rules)
        self._places: dict[_Key, list[int]] = {}
        #: By what is known of a packet's destination.
        self._found: dict[_Key, Sequence[int]] = {}
        if self._count >= WORTHWHILE:
            for at, rule in enumerate(rules):
                self._places.setdefault(_key(rule), []).append(at)

    def following(self, packet: Packet, start: int) -> int:
        """Return the index, `start` or later, of the next rule that may match `packet`.

        If there is none, the index is past the last rule.
        """
        to = packet.destination
        port = packet.destination_port if packet.protocol in _PROTOCOLS else None
        if (to is None and port is None) or self._count < WORTHWHILE:
            return start
        key = to, port
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = sorted(self._fitting(to, port))
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
