"""Counters of the rules of one nft table, read by netlink.

libnftables decodes every expression of every rule, which takes 0.1 s for 1,000; here a rule is
looked into once, for where its counter stands, and from then on only that is read.

Source: include/uapi/linux/netfilter/nf_tables.h; net/netfilter/nf_tables_api.c,
``nf_tables_dump_rules``: all rules, chain by chain, in their order.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator, Sequence
from typing import Final

from netns_lab.counted import CountedRules
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink, attribute, attribute_places

_NETFILTER: Final = 12
_GET_RULE, _GET_CHAIN = 10 << 8 | 7, 10 << 8 | 4
_FAMILIES: Final = {"ip": 2, "ip6": 10}
_HEAD: Final = 4
_TABLE, _CHAIN, _EXPRESSIONS = 1, 2, 4
_CHAIN_NAME, _CHAIN_COUNTERS = 3, 8
_NAME, _DATA = 1, 2
_PACKETS: Final = 2
_COUNT: Final = struct.Struct(">Q").unpack_from
#: In the place of a rule's number and its counter's: a policy, which is counted by its chain.
_POLICY: Final = (-1, -1)


class RuleCounters(CountedRules[tuple[int, int]]):
    """The rules of one table in one namespace; they stay as they are.

    Args:
        rules: read only these, by chain and number there from 0; None: read all. A policy has the
            number behind that of its chain's last rule.
    """

    def __init__(
        self,
        namespace: Namespace,
        family: str,
        table: str,
        rules: Container[tuple[str, int]] | None = None,
    ) -> None:
        self._netlink = Netlink(namespace, _NETFILTER)
        self._table = table
        self._rules_of: dict[str, int] = {}
        self._asked = struct.pack(">BBH", _FAMILIES[family], 0, 0) + attribute(
            _TABLE, table.encode() + b"\0"
        )
        counted = ((rule, at) for rule, at in self._walk() if rules is None or rule in rules)
        found = dict(counted)
        ends = {(chain, self._rules_of.get(chain, 0)): chain for chain, _ in self._of_policies()}
        if rules is not None:
            ends = {rule: chain for rule, chain in ends.items() if rule in rules}
        #: Base chains whose policies are read, each as a rule behind the last one.
        self._policies = tuple(ends.values())
        super().__init__(found | dict.fromkeys(ends, _POLICY))

    def _walk(self) -> Iterator[tuple[tuple[str, int], tuple[int, int]]]:
        """Give of each rule with a counter which of all it is, and where its packets stand."""
        position = self._rules_of
        for number, rule in enumerate(self._netlink.dump(_GET_RULE, self._asked)):
            places = {kind: place for kind, *place in attribute_places(rule, _HEAD, len(rule))}
            chain = _text(rule, places[_CHAIN])
            at = position.get(chain, 0)
            position[chain] = at + 1
            if _EXPRESSIONS not in places:
                continue
            for _, *expression in attribute_places(rule, *places[_EXPRESSIONS]):
                of = {kind: place for kind, *place in attribute_places(rule, *expression)}
                if _text(rule, of[_NAME]) == "counter":
                    values = {kind: begin for kind, begin, _ in attribute_places(rule, *of[_DATA])}
                    yield (chain, at), (number, values[_PACKETS])

    def _values(self) -> Sequence[int]:
        told = list(self._netlink.dump(_GET_RULE, self._asked))
        places = self._where.values()
        found = [_COUNT(told[place[0]], place[1])[0] for place in places if place is not _POLICY]
        if self._policies:
            counted = dict(self._of_policies())
            found += [counted[chain] for chain in self._policies]
        return found

    def _of_policies(self) -> Iterator[tuple[str, int]]:
        """Yield the packets that the policy of each base chain with a counter has counted."""
        for chain in self._netlink.dump(_GET_CHAIN, self._asked[:_HEAD]):
            places = {kind: place for kind, *place in attribute_places(chain, _HEAD, len(chain))}
            if _CHAIN_COUNTERS in places and _text(chain, places[_TABLE]) == self._table:
                of = {
                    kind: first
                    for kind, first, _ in attribute_places(chain, *places[_CHAIN_COUNTERS])
                }
                yield _text(chain, places[_CHAIN_NAME]), _COUNT(chain, of[_PACKETS])[0]


def _text(message: bytes, place: list[int]) -> str:
    first, last = place
    return message[first:last].rstrip(b"\0").decode("utf-8", "surrogateescape")
