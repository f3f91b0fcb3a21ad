"""Original destinations that no rule distinguishes have one that represents them."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.matched.originals import Originals, originals_of
from analyzer.parsers.iptables_save import parse as parse_save
from analyzer.parsers.nft_text import parse as parse_nft

ADDRESSES = st.integers(0, 7).map(lambda low: IPv4Address(0x0A600000 + low))
PORTS = st.integers(78, 84)
NETWORKS = st.builds(
    lambda low, length: str(ip_network((0x0A600000 + low, length), strict=False)),
    st.integers(0, 7),
    st.integers(29, 32),
)
RANGES = st.builds(
    lambda one, other: str(one) if one == other else f"{min(one, other)}:{max(one, other)}",
    PORTS,
    PORTS,
)


def matches(networks: list[str], ports: list[str], to: tuple[IPv4Address, int]) -> list[bool]:
    """Return which of the rules match a flow's original destination, one by one."""
    address, port = to
    ends = [[int(each) for each in text.split(":")] for text in ports]
    return [address in ip_network(each) for each in networks] + [
        each[0] <= port <= each[-1] for each in ends
    ]


@given(
    st.lists(NETWORKS, max_size=3),
    st.lists(RANGES, max_size=3),
    st.lists(st.tuples(ADDRESSES, PORTS), min_size=1, max_size=8),
)
def test_what_represents_a_destination_is_matched_by_the_same_rules(
    networks: list[str], ports: list[str], asked: list[tuple[IPv4Address, int]]
) -> None:
    found = Originals(networks, ports)
    likes = [found.like(*to) for to in asked]
    for to, like in zip(asked, likes, strict=True):
        assert like in asked
        assert matches(networks, ports, like) == matches(networks, ports, to)
    told = {tuple(matches(networks, ports, to)) for to in asked}
    assert len({*likes}) == len(told)  # no more of them than rules distinguish


@pytest.mark.parametrize(("networks", "ports"), [(None, []), (["10.96.0.0/x"], []), ([], ["http"])])
def test_each_destination_counts_where_rules_are_not_understood(
    networks: list[str] | None, ports: list[str]
) -> None:
    found = Originals(networks, ports)
    for low in range(4):
        assert found.like(IPv4Address(low), 80) == (IPv4Address(low), 80)


SAVED = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m conntrack {} -j DROP\nCOMMIT\n"
LISTED = (
    "table ip t {{\n\tchain c {{\n\t\ttype filter hook forward priority 0;\n\t\t{} drop\n\t}}\n}}\n"
)


@pytest.mark.parametrize(
    ("says", "asks"),
    [
        ("--ctorigdst 10.96.0.1", True),
        ("! --ctorigdst 10.96.0.0/16", True),
        ("--ctorigdstport 80", True),
        ("--ctorigsrc 10.96.0.1", False),
        ("--ctstate NEW", False),
    ],
)
def test_rules_of_iptables_that_match_on_original_destinations(says: str, asks: bool) -> None:
    assert (originals_of([parse_save(SAVED.format(says), "dump")]) is not None) is asks


@pytest.mark.parametrize(
    ("says", "asks"),
    [("ct original ip daddr 10.96.0.1", True), ("ct state new", False)],
)
def test_rules_of_nft_that_match_on_original_destinations(says: str, asks: bool) -> None:
    assert (originals_of([parse_nft(LISTED.format(says), "dump")]) is not None) is asks
