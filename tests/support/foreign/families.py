"""What rules of others ask for of one IP version, and what only that version has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from analyzer.model.addresses import IPV4, IPV6, WIDTHS, Address


@dataclass(frozen=True, kw_only=True)
class Family:
    """One IP version.

    Attributes:
        name: of tables and header fields of nft.
        networks: that hold pods, endpoints, nodes and clients, whole and in part.
        outside: clients outside the cluster, among them those that rules ask for.
        clients: the network of a few clients, up to its last part.
        lone: what rules change sources to.
        odd: the mask of the last bit, which all odd addresses have.
        refusal: how a packet is rejected.
        matches: of iptables, that only this version has. Most of them match no packet of a flow to
            a Service: it is of another protocol, or has no header of that kind.
        nft_matches: the same of nft.
    """

    version: int
    name: str
    networks: tuple[str, ...]
    outside: tuple[str, ...]
    clients: str
    lone: tuple[str, ...]
    odd: str
    refusal: str
    matches: tuple[str, ...]
    nft_matches: tuple[str, ...]
    host: re.Pattern[str]

    @property
    def width(self) -> int:
        return WIDTHS[self.version]

    @property
    def set_type(self) -> str:
        """The type of an address in a set of nft."""
        return f"ipv{self.version}_addr"

    def range(self, low: int, high: int) -> str:
        """Return a range of clients of which the last part is from `low` to `high`."""
        parts = (f"{each:x}" if self.version == IPV6 else str(each) for each in (low, high))
        return "-".join(f"{self.clients}{part}" for part in parts)

    def hosts(self, text: str) -> list[str]:
        """Return the addresses of Services and endpoints that a dump names."""
        return [str(each) for each in sorted({*self._hosts(text)}, key=int)]

    def _hosts(self, text: str) -> Iterator[Address]:
        for found in self.host.findall(text):
            try:
                yield ip_address(found.rstrip(":") if found.endswith(":::") else found)
            except ValueError:  # a part of something else
                continue


FAMILIES: Final = {
    IPV4: Family(
        version=IPV4,
        name="ip",
        networks=(
            "192.0.2.0/24",
            "198.51.100.0/25",
            "203.0.113.0/30",
            "10.0.0.0/8",
            "0.0.0.0/1",
            "192.168.0.0/24",
            "192.168.0.10/32",
        ),
        outside=(
            "203.0.113.1",
            "203.0.113.77",
            "192.0.2.7",
            "192.0.2.5",
            "198.51.100.9",
            "10.7.7.7",
        ),
        clients="192.0.2.",
        lone=("192.168.0.200", "192.0.2.7", "198.51.100.9"),
        odd="0.0.0.1",
        refusal="icmp-port-unreachable",
        matches=("-p icmp -m icmp --icmp-type 8 ", "-m ttl --ttl-gt 5 ", "-m ttl --ttl-eq 255 "),
        nft_matches=(
            "icmp type echo-request ",
            "ip ttl > 5 ",
            "ip ttl 255 ",
            "ip protocol tcp ",
            "ip protocol icmp ",
            "meta nfproto ipv4 ",
        ),
        host=re.compile(r"\b10\.\d+\.\d+\.\d+\b"),
    ),
    IPV6: Family(
        version=IPV6,
        name="ip6",
        networks=(
            "2001:db8:1::/48",
            "2001:db8:2::/65",
            "2001:db8:3::/126",
            "fd00::/8",
            "::/1",
            "fd00:192:168:10::/64",
            "fd00:192:168:10::11/128",
        ),
        outside=(
            "2001:db8:3::1",
            "2001:db8:3::77",
            "2001:db8:1::7",
            "2001:db8:1::5",
            "2001:db8:2::9",
            "fd07:7:7::7",
        ),
        clients="2001:db8:1::",
        lone=("fd00:192:168:10::200", "2001:db8:1::7", "2001:db8:2::9"),
        odd="::1",
        refusal="icmp6-port-unreachable",
        matches=(
            "-p ipv6-icmp -m icmp6 --icmpv6-type 128 ",
            "-m hl --hl-gt 5 ",
            "-m hl --hl-eq 255 ",
            "-m ipv6header --header frag --soft ",
            "-m frag --fragid 1:2 ",
            "-m rt --rt-type 0 ",
            "-m dst --dst-len 8 ",
        ),
        nft_matches=(
            "icmpv6 type echo-request ",
            "meta l4proto ipv6-icmp ",
            "ip6 hoplimit > 5 ",
            "ip6 hoplimit 255 ",
            "ip6 nexthdr tcp ",
            "ip6 nexthdr ipv6-icmp ",
            "exthdr frag exists ",
            "exthdr hbh missing ",
            "rt type 0 ",
            "frag id 1 ",
            "meta nfproto ipv6 ",
        ),
        host=re.compile(r"(?<![\da-f:])fd00:10:[\da-f:]+"),
    ),
}
