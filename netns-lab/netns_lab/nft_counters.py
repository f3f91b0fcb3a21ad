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
_GET_RULE: Final = 10 << 8 | 7
_FAMILIES: Final = {"ip": 2, "ip6": 10}
_HEAD: Final = 4
_TABLE, _CHAIN, _EXPRESSIONS = 1, 2, 4
_NAME, _DATA = 1, 2
_PACKETS: Final = 2
_COUNT: Final = struct.Struct(">Q").unpack_from


class RuleCounters(CountedRules[tuple[int, int]]):
    """The rules of one table in one namespace; they stay as they are.

    Args:
        rules: read only these, by chain and number there from 0; None: read all.
    """

    def __init__(
        self,
        namespace: Namespace,
        family: str,
        table: str,
        rules: Container[tuple[str, int]] | None = None,
    ) -> None:
        self._netlink = Netlink(namespace, _NETFILTER)
        self._asked = struct.pack(">BBH", _FAMILIES[family], 0, 0) + attribute(
            _TABLE, table.encode() + b"\0"
        )
        found = ((rule, at) for rule, at in self._walk() if rules is None or rule in rules)
        super().__init__(dict(found))

    def _walk(self) -> Iterator[tuple[tuple[str, int], tuple[int, int]]]:
        """Give of each rule with a counter which of all it is, and where its packets stand."""
        position: dict[str, int] = {}
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
        return [_COUNT(told[number], at)[0] for number, at in self._where.values()]


def _text(message: bytes, place: list[int]) -> str:
    first, last = place
    return message[first:last].rstrip(b"\0").decode("utf-8", "surrogateescape")
