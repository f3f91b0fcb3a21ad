"""An nft table under construction: its sets, maps and chains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.kubeproxy.generate.config import IPV4
from analyzer.model.addresses import Address, address_to_text

#: A part of an element: an address, a protocol's name, a port.
ElementPart: TypeAlias = Address | str | int

_PROTOCOLS: Final = {"tcp": 6, "udp": 17, "sctp": 132}


class NftSet:
    """A set, or a map: the lines of its declaration, and the elements by their keys."""

    __slots__ = ("_name", "elements", "kind", "lines")

    def __init__(self, kind: str, name: str, lines: Sequence[str]) -> None:
        self.kind = kind
        self._name = name
        self.lines = lines
        #: The text after the key, if any.
        self.elements: dict[tuple[ElementPart, ...], str] = {}

    def add(self, *key: ElementPart, value: str = "") -> None:
        """Add an element; an existing one does not change."""
        self.elements.setdefault(key, value)

    def sorted_keys(self) -> list[tuple[ElementPart, ...]]:
        """Return the keys in the order of nft. Source: src/mergesort.c, ``expr_msort_cmp``."""
        return sorted(self.elements, key=_rank)

    def text(self) -> Iterator[str]:
        """Yield the lines that list it. Source: nft, src/expression.c, ``calculate_delim``."""
        yield f"\t{self.kind} {self._name} {{\n"
        for line in self.lines:
            yield f"\t\t{line}\n"
        if self.elements:
            listed = [
                " . ".join(map(_part_to_text, key)) + self.elements[key]
                for key in self.sorted_keys()
            ]
            pairs = self.kind == "set" and all(
                isinstance(part, IPv4Address) and len(key) == 1
                for key in self.elements
                for part in key
            )
            if pairs:
                listed = [", ".join(listed[at : at + 2]) for at in range(0, len(listed), 2)]
            yield "\t\telements = { " + ",\n\t\t\t     ".join(listed) + " }\n"
        yield "\t}\n"


class NftTable:
    """kube-proxy's table of one family, sets and chains in the order in which they were made."""

    def __init__(self, family: int) -> None:
        """Take 4 or 6."""
        #: The name of the family in rules and types.
        self.ip = "ip" if family == IPV4 else "ip6"
        self.address_type = "ipv4_addr" if family == IPV4 else "ipv6_addr"
        self.sets: dict[str, NftSet] = {}
        self.chains: dict[str, list[str]] = {}

    def add_set(self, kind: str, name: str, *lines: str) -> None:
        """Add an empty set or map, with the `lines` of its declaration."""
        self.sets[name] = NftSet(kind, name, lines)

    def add(self, chain: str, *rules: str) -> None:
        """Append rules to a chain, which is created if needed."""
        self.chains.setdefault(chain, []).extend(rules)

    def text(self) -> Iterator[str]:
        """Yield its lines as ``nft list ruleset`` prints them."""
        yield f"table {self.ip} kube-proxy {{\n"
        yield '\tcomment "rules for kube-proxy"\n'
        parted = ""
        for held in self.sets.values():
            yield parted
            yield from held.text()
            parted = "\n"
        for name, rules in self.chains.items():
            yield f"{parted}\tchain {name} {{\n"
            for rule in rules:
                yield f"\t\t{rule}\n"
            yield "\t}\n"
        yield "}\n"


def _part_to_text(part: ElementPart) -> str:
    return address_to_text(part) if isinstance(part, IPv4Address | IPv6Address) else str(part)


def _rank(key: tuple[ElementPart, ...]) -> bytes:
    """Return the sort key of nft: all parts together count as a number in host byte order.

    That of the captures, and of most nodes, is little-endian.
    """
    if len(key) == 1:
        return _part_to_bytes(key[0])
    return b"".join(map(_part_to_bytes, key))[::-1]


def _part_to_bytes(part: ElementPart) -> bytes:
    match part:
        case int():
            return part.to_bytes(2)
        case str():
            return bytes([_PROTOCOLS[part]])
        case _:
            return part.packed
