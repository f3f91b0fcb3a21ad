"""The addresses, networks and ports named in rules, and which of them an address or port is in."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Final

from analyzer.model.addresses import (
    Address,
    Network,
    address_and_port_from_text,
    address_to_text,
    network_from_text,
)
from analyzer.model.intervals import span
from analyzer.model.value import value

#: Addresses, networks and ranges as options of rules have them.
LITERALS: Final = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-f]*:[\da-f:.]+)(?:/[\d.:a-f]+|-[\d.:a-f]+)?(?!\w)"
)
#: Options that match on ports, with their values; the single port of a ``--dport`` is a token of
#: its own.
PORTS: Final = re.compile(r"--\S*ports? (\S+)")


@value
class Around:
    """Networks and ports named in rules.

    Attributes:
        spans: the IP version of each network, and its first and last address.
    """

    hosts: frozenset[str]
    networks: tuple[Network, ...]
    ranges: tuple[tuple[Address, Address], ...]
    others: frozenset[str]
    ports: frozenset[str]
    spans: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, literals: Iterable[str], ports: Iterable[str]) -> Around:
        """Return the addresses, networks and ranges in `literals`, and `ports`, as in rules."""
        hosts, others = set(), set()
        networks: list[Network] = []
        ranges: list[tuple[Address, Address]] = []
        for each in literals:
            network = network_from_text(each)
            ends = [address_and_port_from_text(end) for end in each.split("-")]
            if network is not None:
                if network.num_addresses == 1:
                    hosts.add(as_host(network.network_address))
                else:
                    networks.append(network)
            elif len(ends) > 1 and ends[0] is not None and ends[-1] is not None:
                ranges.append((ends[0][0], ends[-1][0]))
            elif "." in each or "/" in each:  # others, for example times of day, are not addresses
                others.add(each)
        spans = [(n.version, *span(n)) for n in networks]
        return cls(
            frozenset(hosts),
            tuple(networks),
            tuple(ranges),
            frozenset(others),
            frozenset(ports),
            tuple(spans),
        )

    def and_of(self, text: str) -> Around:
        """Return what these rules and those of `text` name."""
        return self.with_(LITERALS.findall(text), set(PORTS.findall(text)) - {"@"})

    def with_(self, literals: Iterable[str], ports: Iterable[str]) -> Around:
        """Return what these rules name, together with `literals` and `ports`."""
        found = Around.of(dict.fromkeys(literals), ports)
        return Around(
            self.hosts | found.hosts,
            (*self.networks, *found.networks),
            (*self.ranges, *found.ranges),
            self.others | found.others,
            self.ports | found.ports,
            (*self.spans, *found.spans),
        )

    @property
    def told(self) -> frozenset[str]:
        """The networks as they are printed."""
        return self.hosts.union(map(str, self.networks))

    def of_address(self, address: Address) -> Hashable:
        """Return what these rules can match on of an address."""
        if self.others or self.hosts:
            host = as_host(address)
            if self.others or host in self.hosts:
                return host
        number = int(address)
        return (
            tuple(
                [
                    at
                    for at, (version, low, high) in enumerate(self.spans)
                    if low <= number <= high and version == address.version
                ]
            ),
            tuple(
                [at for at, (a, z) in enumerate(self.ranges) if int(a) <= number <= int(z)]
                if self.ranges
                else ()
            ),
        )

    def of_port(self, port: int | None) -> Hashable:
        """Return what these rules can match on of a port."""
        if port is None or not self.ports:
            return port is None
        exact = str(port) in self.ports
        odd = any(not each.isdecimal() for each in self.ports)
        return port if exact or odd else None


def as_host(address: Address) -> str:
    """Return an address as rows match on it."""
    return f"{address_to_text(address)}/{address.max_prefixlen}"
