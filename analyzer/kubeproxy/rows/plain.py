"""kube-proxy's plainest rules, read as text: a ClusterIP, and endpoints drawn at random.

Theory of operation
===================

In a large dump nearly all rows have one of five shapes. If a Service has just these, and nothing
before it on the way can match its flows, its shares follow from the rows without evaluating them
for each endpoint. Each shape is a regular expression for whole rows, down to the last character;
a Service with one row of any other shape is left to the general traversal, and so is a dump
whose first or last chains on the way are not the plain ones. So nothing is assumed here that the
traversal would not find: a test compares the two on every capture.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``, 1.14 to 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from ipaddress import IPv4Address

from analyzer.kubeproxy import names
from analyzer.kubeproxy.rows.endpoints import PROTOCOLS, ROWS_OF_ENDPOINT, EndpointRows
from analyzer.kubeproxy.rows.plain_shares import (
    Drawn,
    FrontendTexts,
    Marked,
    PlainService,
    Unmarked,
)
from analyzer.kubeproxy.rows.shapes import (
    NODE_PORTS,
    Shapes,
    are_hosts,
    host,
    is_network,
    is_port,
    mark_of,
    masquerades,
    uncommented,
)
from analyzer.model.iptables.rules import Table
from analyzer.model.probability import (
    ALWAYS,
    XT_STATISTIC_BITS,
    Bounds,
    Dyadic,
    threshold_from_text,
)
from analyzer.model.value import value
from analyzer.parsers.rows import RowBlock, RowChains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.intervals import Intervals

#: Rows for each draw: its own, and those of the endpoint.
_ROWS_A_DRAW: Final = 1 + ROWS_OF_ENDPOINT
#: Characters of a probability as iptables-save prints it; up to 1.16 kube-proxy wrote five digits.
_LENGTHS: Final = range(7, 14)
#: Most intervals of addresses that are looked up.
_MOST_INTERVALS: Final = 64


@value
class _Entries:
    """The rows of KUBE-SERVICES, by their positions from 0.

    Attributes:
        entries: rows for one address and port, whose flows no other row can match.
        marks: the rows before them that mark flows, and the network whose flows they do not mark.
        harmless: rows that cannot match such flows.
    """

    entries: dict[int, re.Match[str]]
    marks: dict[FrontendTexts, tuple[int, Unmarked]]
    harmless: set[int]


class PlainTable:
    """The nat table, as far as it has the plain shapes.

    Attributes:
        services: by the row of KUBE-SERVICES that leads to them, counted from 0.
        read_rows: the rows of KUBE-SERVICES that need not be parsed again.
        entries: those that lead to a chain of a Service, as matched by `Shapes.entry`.
        understood: names of chains of which every row was read here, except those of endpoints.
        endpoints: the plain KUBE-SEP chains.
    """

    def __init__(self, table: Table, advance: Callable[[int], None] | None = None) -> None:
        self._advance = advance
        self._table = table
        self._family = table.family
        self.services: dict[int, PlainService] = {}
        self.read_rows: set[int] = set()
        self.entries: dict[int, re.Match[str]] = {}
        self._has_node_ports = names.NODE_PORTS in table.chains
        self.understood: set[str] = set()
        self._draws: dict[tuple[str, ...], tuple[Bounds, ...] | None] = {}
        whole = isinstance(table.chains, RowChains) and names.MARK_MASQUERADE in table.chains
        self._block = table.chains.block if whole and isinstance(table.chains, RowChains) else None
        skimmed = None if self._block is None else self._block.skimmed
        self.endpoints = skimmed if isinstance(skimmed, EndpointRows) else EndpointRows()
        if self._block is not None:
            self._shapes = Shapes(
                table.family,
                counted=self._text(names.SERVICES).startswith("["),
                escapes=self.endpoints.escapes
                and self._block.text.find("\\", *self._block.span) >= 0,
            )
            self._read_endpoints(self._block)
            self._read_services(self._block)

    def within(self) -> Intervals | None:
        """Return few intervals that contain the addresses of all plain Services' endpoints.

        None: there are no such Services.
        """
        from analyzer.model.intervals import around

        texts = {text for each in self.services.values() for text in each.drawn.texts}
        if self._family == "ip":  # by the first three bytes: few even for many addresses
            networks = {text[: text.rindex(".")] for text in texts}
            firsts = [int(IPv4Address(f"{each}.0")) for each in networks]
            return around(((first, first + 255) for first in firsts), _MOST_INTERVALS) or None
        numbers = [int(host(text.rpartition(":")[0])) for text in texts]
        return around(((number, number) for number in numbers), _MOST_INTERVALS) or None

    def enters_plainly(self, hook: str) -> bool:
        """Return whether the first rule at `hook` jumps to KUBE-SERVICES, for all packets."""
        return self._rows(hook)[:1] == [f"-A {hook} -j {names.SERVICES}"]

    def masquerades_plainly(self) -> bool:
        """Return whether POSTROUTING masquerades what KUBE-MARK-MASQ marks, and nothing else.

        Also, INPUT must not change sources, and neither may have the policy DROP.
        """
        bases = (self._table.chains.get(hook) for hook in ("POSTROUTING", "INPUT"))
        return (
            self.mark is not None
            and all(chain is None or chain.policy != "DROP" for chain in bases)
            and masquerades(self._rows("KUBE-POSTROUTING"), self.mark)
            and self._rows("POSTROUTING") == ["-A POSTROUTING -j KUBE-POSTROUTING"]
            and not self._rows("INPUT")
        )

    @cached_property
    def mark(self) -> str | None:
        """The mark that KUBE-MARK-MASQ sets; None if the chain does anything else."""
        return mark_of(self._rows(names.MARK_MASQUERADE))

    def _text(self, chain: str) -> str:
        if self._block is None:
            return ""
        start, end = self._block.span_of(chain)
        return self._block.text[start:end]

    def _rows(self, chain: str) -> list[str]:
        return uncommented(self._text(chain))

    @cached_property
    def has_all_endpoints(self) -> bool:
        """Return whether every KUBE-SEP chain that has rows is plain."""
        if self._block is None:
            return False
        chains = len(self._block.groups) - len(self._other_chains)
        return chains + len(self.endpoints.chains) == len(self.endpoints)

    @cached_property
    def _other_chains(self) -> list[str]:
        """The chains with rows that are not an endpoint's."""
        prefix = names.ENDPOINT_PREFIX
        groups = self._block.groups if self._block is not None else ()
        return [name for name in groups if not name.startswith(prefix)]

    def unread(self) -> list[str] | None:
        """Return the chains with rows that were not all read here; None: almost all chains."""
        if not self.has_all_endpoints:
            return None
        read = {*self.understood, *self._read_of_frame()}
        return [name for name in self._other_chains if name not in read]

    def _read_of_frame(self) -> Iterator[str]:
        """Yield the chains around those of Services of which every row was read here."""
        if self.mark is not None:
            yield names.MARK_MASQUERADE
        if self.masquerades_plainly():
            yield from ("KUBE-POSTROUTING", "POSTROUTING")
        for hook in ("PREROUTING", "OUTPUT"):
            if self._rows(hook) == [f"-A {hook} -j {names.SERVICES}"]:
                yield hook

    def _read_endpoints(self, block: RowBlock) -> None:
        """Find the plain KUBE-SEP chains that were not skimmed."""
        if self._advance is not None:
            self._advance(ROWS_OF_ENDPOINT * len(self.endpoints))
        if len(self._other_chains) == len(block.groups):
            return  # all of them were skimmed
        for start, end in block.all_but():
            for chain, address, protocol, destination, port in self._shapes.endpoint.findall(
                block.text, max(start - 1, 0), end
            ):
                if (
                    chain in block.groups
                    # Two rows were found: there must not be a third one.
                    and block.text.count("\n", *block.groups[chain]) == ROWS_OF_ENDPOINT
                    and protocol in PROTOCOLS
                    # What iptables would not have printed is left to the parser, which reports it.
                    and are_hosts([address], self._family)
                    and is_port(port)
                ):
                    self.endpoints.add(chain, address, protocol, destination)
                    if self._advance is not None:
                        self._advance(ROWS_OF_ENDPOINT)

    def _read_services(self, block: RowBlock) -> None:
        start, end = block.groups.get(names.SERVICES, (0, 0))
        rows = block.text[start:end].split("\n")[:-1]
        found = self._entries(rows)
        self.entries = found.entries
        chains: dict[tuple[str, str], Drawn | None] = {}
        none = Marked.NONE
        for at, row in found.entries.items():
            _, address, protocol, comment, port, chain = row.groups()
            way = chain, protocol
            drawn = chains[way] if way in chains else self._drawn(block, chain, protocol)
            chains[way] = drawn
            if drawn is None:
                continue
            key = (address, protocol, port)
            mark_at, unmarked = found.marks.get(key, (at, none))
            if drawn.marks_for is not None:
                if drawn.marks_for != key or unmarked is not none:
                    continue
                unmarked = drawn.unmarked
            self.understood.add(chain)
            if self._advance is not None:
                self._advance(_ROWS_A_DRAW * len(drawn) + 1)
            self.read_rows.add(at)
            self.read_rows.add(mark_at)
            self.services[at] = PlainService(
                comment, address, protocol, int(port), chain, unmarked, drawn
            )
        self.read_rows |= found.harmless
        if len(self.read_rows) == len(rows) and (not found.harmless or self._has_node_ports):
            self.understood.add(names.SERVICES)

    def _entries(self, rows: list[str]) -> _Entries:
        """Return the rows that are certain to send on all flows to their address and port."""
        entry, other = self._shapes.entry, self._shapes.other_host
        found = _Entries({}, {}, set())
        seen: set[FrontendTexts] = set()
        strange: set[str] = set()
        hosts: set[str] = set()
        for at, row in enumerate(rows):
            read = entry.fullmatch(row)
            if read is None:
                if at == len(rows) - 1 and uncommented(f"{row}\n")[0] in NODE_PORTS:
                    found.harmless.add(at)
                    continue
                one = re.match(other, row)
                if one is None:
                    return _Entries({}, {}, set())  # it may match flows of any later Service
                hosts.add(one[1])
                strange.add(one[1])
                continue
            unmarked, address, protocol, _, port, chain = read.groups()
            key = (address, protocol, port)
            hosts.add(address)
            known = protocol in PROTOCOLS and is_port(port) and is_network(unmarked)
            if key in seen or not known:
                strange.add(address)
            elif chain == names.MARK_MASQUERADE and key not in found.marks:
                found.marks[key] = at, unmarked or Marked.ALL
            elif chain.startswith(names.SERVICE_PREFIXES) and unmarked is None:
                seen.add(key)
                found.entries[at] = read
            else:
                strange.add(address)
        if not are_hosts(hosts, self._family):
            return _Entries({}, {}, set())
        plain = {at: row for at, row in found.entries.items() if row[2] not in strange}
        return _Entries(plain, found.marks, found.harmless)

    def _drawn(self, block: RowBlock, chain: str, protocol: str) -> Drawn | None:
        start, end = block.groups.get(chain, (0, 0))
        text, shapes = block.text, self._shapes
        marks = shapes.mark_outside.match(text, start - 1, end)
        drawn = shapes.draw.findall(text, start - 1, end)
        if not drawn or text.count("\n", start, end) != len(drawn) + (marks is not None):
            return None
        (*probabilities, rest), endpoints = zip(*drawn, strict=True)
        if rest:
            return None  # no row takes the remaining flows
        texts = self.endpoints.destinations(endpoints, protocol)
        draws = self._shares((*probabilities,))
        if draws is None or texts is None or len(set(texts)) < len(texts):
            return None
        if marks is None:
            return Drawn(None, Marked.NONE, texts, draws)
        network, address, marked_protocol, port = marks.groups()
        if not is_network(network):
            return None
        return Drawn((address, marked_protocol, port), network or Marked.ALL, texts, draws)

    def _shares(self, texts: tuple[str, ...]) -> tuple[Bounds, ...] | None:
        """Return the exact shares of these draws; one more takes the remaining flows.

        Equal texts give equal shares, and a cluster has few different ones.
        """
        if texts not in self._draws:
            self._draws[texts] = shares_of(texts)
        return self._draws[texts]


def shares_of(texts: tuple[str, ...]) -> tuple[Bounds, ...] | None:
    """Return the exact shares of draws, given as iptables-save prints their probabilities.

    One more takes the remaining flows. None: a text is not as kube-proxy writes it, or an endpoint
    is never drawn.
    """
    if not all(text[1:2] == "." and len(text) in _LENGTHS for text in texts):
        return None
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
