"""kube-proxy's plainest rules, read as text: a ClusterIP, and endpoints drawn by chance.

Theory of operation
===================

In a large dump nearly all rows have one of five shapes. Where a Service has just these, and
nothing before it on the way can touch its flows, its shares follow from the rows without a walk
for each endpoint. Each shape is a regular expression for whole rows, down to the last character;
a Service with one row that is anything else is left to the general traversal, and so is a dump
whose first or last chains on the way are not the plain ones. So nothing is assumed here that the
traversal would not find: a test compares the two on every capture.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``, 1.14 to 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from ipaddress import ip_address
from typing import Final, overload

from analyzer.kubeproxy import names
from analyzer.kubeproxy.shapes import Shapes
from analyzer.kubeproxy.view import Endpoint, Share
from analyzer.model.packet import Address, address_from_text
from analyzer.model.probability import (
    ALWAYS,
    XT_STATISTIC_BITS,
    Bounds,
    Dyadic,
    threshold_from_text,
)
from analyzer.model.rules import Table
from analyzer.model.value import value
from analyzer.parsers.rows import Block, Chains

#: Endpoints between two reports of progress.
_EVERY: Final = 4_096

#: ``-s`` of the rule that marks flows from outside; an empty text: it marks all.
Unmarked = str


#: Address, protocol and port of a frontend, as written.
_Key = tuple[str, str, str]


@value
class _Entries:
    """What the rows of KUBE-SERVICES say, by their places from 0.

    Attributes:
        entries: rows for one address and port, which no other row can take flows from.
        marks: the rows before them that mark flows from outside, with the network of the others.
        harmless: rows that cannot touch such flows.
    """

    entries: dict[int, re.Match[str]]
    marks: dict[_Key, tuple[int, str]]
    harmless: set[int]


@value
class PlainService:
    """What the rows say of one ClusterIP frontend.

    Attributes:
        comment: of its row in KUBE-SERVICES.
        unmarked: the network from which flows are not marked for masquerade; None: no flow is
            marked, an empty text: all are.
    """

    comment: str
    address: str
    protocol: str
    port: int
    chain: str
    unmarked: Unmarked | None
    drawn: Drawn


class Drawn:
    """What the rows of a Service's chain say.

    Attributes:
        marks_for: the frontend whose flows it marks, unless they are from `unmarked`.
        draws: the probability of each endpoint, in the order in which they are drawn.
    """

    __slots__ = ("_addresses", "_endpoints", "_texts", "draws", "marks_for", "unmarked")

    def __init__(
        self,
        marks_for: _Key | None,
        unmarked: str,
        texts: list[tuple[str, str, str]],
        draws: tuple[Bounds, ...],
        addresses: dict[str, Address],
    ) -> None:
        self.marks_for = marks_for
        self.unmarked = unmarked
        self.draws = draws
        self._texts = texts
        self._addresses = addresses
        self._endpoints: tuple[Endpoint, ...] | None = None

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints, made when they are first asked for."""
        if self._endpoints is None:
            known = self._addresses
            made = []
            for _, text, port in self._texts:
                address = known.get(text)
                if address is None:
                    address = known[text] = ip_address(text)
                made.append(Endpoint(address, int(port)))
            self._endpoints = tuple(made)
        return self._endpoints

    def texts(self) -> list[str]:
        """Return the endpoints as an `Endpoint` is printed."""
        if ":" in self._texts[0][1]:
            return [str(endpoint) for endpoint in self.endpoints]
        return [f"{address}:{port}" for _, address, port in self._texts]


#: Whether flows are masqueraded: one answer for all endpoints of a route, or what tells it of
#: a protocol and an endpoint. None: not known.
Judge = bool | None | Callable[[str, Endpoint], bool | None]


class PlainShares(Sequence[Share]):
    """Shares of one route, each made when it is looked at."""

    __slots__ = ("_judge", "_service")

    def __init__(self, service: PlainService, judge: Judge) -> None:
        self._service = service
        self._judge = judge

    def _share(self, endpoint: Endpoint, draw: Bounds) -> Share:
        judge = self._judge
        if judge is None or isinstance(judge, bool):
            return Share(endpoint, draw, judge)
        return Share(endpoint, draw, judge(self._service.protocol, endpoint))

    @overload
    def __getitem__(self, index: int) -> Share: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Share]: ...
    def __getitem__(self, index: int | slice) -> Share | Sequence[Share]:
        return tuple(self)[index]

    def __len__(self) -> int:
        return len(self._service.drawn)

    def __iter__(self) -> Iterator[Share]:
        return map(self._share, self._service.drawn.endpoints, self._service.drawn.draws)

    def texts(self) -> Iterator[tuple[str, Bounds]]:
        """Give each endpoint as it is printed, and its share, without making a `Share`."""
        return zip(self._service.drawn.texts(), self._service.drawn.draws, strict=True)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PlainShares) and self._service is other._service:
            constant = self._judge is None or isinstance(self._judge, bool)
            if constant or self._judge is other._judge:
                return self._judge is other._judge
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class PlainTable:
    """The nat table, as far as it has the plain shapes.

    Attributes:
        services: by the row of KUBE-SERVICES that leads to them, counted from 0.
        read_rows: the rows of KUBE-SERVICES that need no second look.
        understood: names of chains of Services of which every row was read here.
        endpoint_chains: names of the plain KUBE-SEP chains.
    """

    def __init__(self, table: Table, advance: Callable[[int], None] = lambda _: None) -> None:
        self._advance = advance
        self.services: dict[int, PlainService] = {}
        self.read_rows: set[int] = set()
        self.understood: set[str] = set()
        self._addresses: dict[str, Address] = {}
        self._draws: dict[tuple[str, ...], tuple[Bounds, ...] | None] = {}
        whole = isinstance(table.chains, Chains) and names.MARK_MASQUERADE in table.chains
        self._block = table.chains.block if whole and isinstance(table.chains, Chains) else None
        counted = self._block is not None and self._text(names.SERVICES).startswith("[")
        self._shapes = Shapes(table.family, counted=counted)
        self._endpoints: dict[str, tuple[str, str, str]] = {}
        self.endpoint_chains = self._endpoints.keys()
        if self._block is not None:
            self._read_endpoints(self._block)
            self._read_services(self._block)

    def enters_plainly(self, hook: str) -> bool:
        """Tell whether the first thing that a packet meets at `hook` is KUBE-SERVICES."""
        return self._shapes.entrance.match(self._text(hook)) is not None

    def masquerades_plainly(self) -> bool:
        """Tell whether POSTROUTING masquerades what KUBE-MARK-MASQ marks, and nothing else."""
        rules = self._shapes.masquerade.fullmatch(self._text("KUBE-POSTROUTING"))
        if rules is None or (rules[1] or rules[2]) != self.mark:
            return False
        return self._shapes.exit.fullmatch(self._text("POSTROUTING")) is not None

    @cached_property
    def mark(self) -> str | None:
        """The mark that KUBE-MARK-MASQ sets, where that is all that it does."""
        found = self._shapes.mark.fullmatch(self._text(names.MARK_MASQUERADE))
        return None if found is None else found[1]

    def _text(self, chain: str) -> str:
        if self._block is None:
            return ""
        start, end = self._block.groups.get(chain, (0, 0))
        return self._block.text[start:end]

    def is_understood(self, chain: str) -> bool:
        """Tell whether every row of `chain` was read here."""
        return chain in self._endpoints or chain in self.understood

    @cached_property
    def has_all_endpoints(self) -> bool:
        """Tell whether every KUBE-SEP chain that has rows is plain."""
        if self._block is None:
            return False
        prefix = names.ENDPOINT_PREFIX
        chains = [name for name in self._block.groups if name.startswith(prefix)]
        return len(chains) == len(self._endpoints)

    @cached_property
    def endpoint_texts(self) -> set[str]:
        """The addresses of the endpoints of plain KUBE-SEP chains, as written."""
        return {address for _, address, _ in self._endpoints.values()}

    def _read_endpoints(self, block: Block) -> None:
        """Find protocol, address and port of each plain KUBE-SEP chain."""
        spans = block.groups
        endpoints = self._endpoints
        for found in self._shapes.endpoint.finditer(block.text, *block.span):
            chain, address, protocol, port = found.groups()
            if not len(endpoints) % _EVERY:
                self._advance(2 * _EVERY)
            if found.span() == spans.get(chain):  # no other row before or behind the two
                endpoints[chain] = protocol, address, port

    def _read_services(self, block: Block) -> None:
        start, end = block.groups.get(names.SERVICES, (0, 0))
        rows = block.text[start:end].split("\n")[:-1]
        found = self._entries(rows)
        chains: dict[tuple[str, str], Drawn | None] = {}
        for at, row in found.entries.items():
            _, address, protocol, comment, port, chain = row.groups()
            if (chain, protocol) not in chains:
                chains[chain, protocol] = self._drawn(block, chain, protocol)
            drawn = chains[chain, protocol]
            if drawn is None:
                continue
            key = (address, protocol, port)
            mark_at, unmarked = found.marks.get(key, (at, None))
            if drawn.marks_for is not None:
                if drawn.marks_for != key or unmarked is not None:
                    continue
                unmarked = drawn.unmarked
            self.understood.add(chain)
            self._advance(len(drawn) + 1)
            self.read_rows |= {at, mark_at}
            self.services[at] = PlainService(
                comment, address, protocol, int(port), chain, unmarked, drawn
            )
        self.read_rows |= found.harmless

    def _entries(self, rows: list[str]) -> _Entries:
        """Return the rows that a flow to their address and port is sure to be sent on by."""
        entry, other = self._shapes.entry, self._shapes.other_host
        found = _Entries({}, {}, set())
        seen: set[_Key] = set()
        strange: set[str] = set()
        for at, row in enumerate(rows):
            read = entry.fullmatch(row)
            if read is None:
                host = other.match(row)
                if host is not None:
                    strange.add(host[1])
                elif at == len(rows) - 1 and self._shapes.node_ports.fullmatch(row):
                    found.harmless.add(at)
                else:
                    return _Entries({}, {}, set())  # it may take flows of any Service behind it
                continue
            key = (read[2], read[3], read[5])
            if key in seen:
                strange.add(read[2])
            elif read[6] == names.MARK_MASQUERADE and key not in found.marks:
                found.marks[key] = at, read[1] or ""
            elif read[6].startswith(names.SERVICE_PREFIXES) and read[1] is None:
                seen.add(key)
                found.entries[at] = read
            else:
                strange.add(read[2])
        plain = {at: row for at, row in found.entries.items() if row[2] not in strange}
        return _Entries(plain, found.marks, found.harmless)

    def _drawn(self, block: Block, chain: str, protocol: str) -> Drawn | None:
        start, end = block.groups.get(chain, (0, 0))
        head = self._shapes.service.fullmatch(block.text, start, end)
        if head is None:
            return None
        network, address, marked_protocol, port, _, last = head.groups()
        drawn = self._shapes.draw.findall(block.text, *head.span(5))
        chains = [*(sep for _, sep in drawn), last]
        found = [self._endpoints.get(sep) for sep in chains]
        draws = self._shares(tuple([text for text, _ in drawn]))
        if draws is None or len(set(found)) < len(found):
            return None
        texts = [each for each in found if each is not None]
        if len(texts) < len(found) or {own for own, _, _ in texts} != {protocol}:
            return None
        if ":" in texts[0][1] and None in {address_from_text(text) for _, text, _ in texts}:
            return None  # of IPv6 the shape does not tell
        marks_for = None if address is None else (address, marked_protocol, port)
        return Drawn(marks_for, network or "", texts, draws, self._addresses)

    def _shares(self, texts: tuple[str, ...]) -> tuple[Bounds, ...] | None:
        """Return the exact shares of so many draws; one more takes what is left.

        Equal texts give equal shares, and a cluster has few different ones.
        """
        if texts not in self._draws:
            self._draws[texts] = _shares(texts)
        return self._draws[texts]


def _shares(texts: tuple[str, ...]) -> tuple[Bounds, ...] | None:
    try:
        thresholds = [threshold_from_text(text) for text in texts]
    except ValueError:
        return None
    shares: list[Dyadic] = []
    left = ALWAYS
    for threshold in thresholds:
        chance = Dyadic.of(threshold, XT_STATISTIC_BITS)
        shares.append(left * chance)
        left = left * ~chance
    shares.append(left)
    if not all(shares):
        return None  # an endpoint that is never drawn
    return tuple(Bounds(share, share) for share in shares)
