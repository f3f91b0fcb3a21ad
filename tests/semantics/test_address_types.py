"""Types of addresses are those that the kernel gives them before it looks at routes, or assumed."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.model.intervals import joined
from analyzer.model.nft.names import ADDRESS_TYPES
from analyzer.model.region import Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.address_types import ALL, has_type
from analyzer.semantics.assumed import ADDRESS_TYPE, Assumed

TRUE, FALSE, UNKNOWN = Ternary.TRUE, Ternary.FALSE, Ternary.UNKNOWN


@pytest.mark.parametrize(
    ("wanted", "local", "of", "alone", "assuming"),
    [
        ({"unicast"}, FALSE, "10.0.0.1", UNKNOWN, TRUE),
        ({"broadcast"}, FALSE, "10.0.0.1", UNKNOWN, FALSE),
        ({"broadcast"}, UNKNOWN, "10.0.0.1", UNKNOWN, FALSE),
        ({"unicast"}, UNKNOWN, "10.0.0.1", UNKNOWN, UNKNOWN),
        ({"unicast", "local"}, UNKNOWN, "10.0.0.1", UNKNOWN, TRUE),
        ({"unicast"}, TRUE, "10.0.0.1", FALSE, FALSE),
        ({"local"}, FALSE, "10.0.0.1", FALSE, FALSE),
        ({"multicast"}, UNKNOWN, "10.0.0.1", FALSE, FALSE),
        ({"multicast"}, FALSE, "239.0.0.1", TRUE, TRUE),
        ({"unicast"}, FALSE, "239.0.0.1", FALSE, FALSE),
        ({"broadcast"}, FALSE, "255.255.255.255", TRUE, TRUE),
        ({"broadcast"}, FALSE, str(IPv4Address(0)), TRUE, TRUE),
        ({"broadcast"}, FALSE, "0.1.2.3", UNKNOWN, UNKNOWN),
        ({"unicast"}, FALSE, "fd00::1", UNKNOWN, UNKNOWN),
        ({"local"}, TRUE, "fd00::1", TRUE, TRUE),
        ({"local"}, FALSE, None, FALSE, FALSE),
        ({"unicast"}, FALSE, None, UNKNOWN, UNKNOWN),
    ],
)
def test_an_address_has_a_type(
    wanted: set[str], local: Ternary, of: str | None, alone: Ternary, assuming: Ternary
) -> None:
    address = None if of is None else ip_address(of)
    assumed = Assumed({ADDRESS_TYPE: "unicast"})
    assert has_type(wanted, local, address, lambda _: None) is alone
    assert has_type(wanted, local, address, assumed.take) is assuming
    # An answer says that it depends on the assumption only where that decides.
    assert assumed.used == (set() if alone is assuming else {ADDRESS_TYPE})


@given(
    st.frozensets(st.sampled_from(sorted(ADDRESS_TYPES)), min_size=1),
    st.sampled_from(list(Ternary)),
    st.lists(st.ip_addresses(v=4), min_size=1, max_size=3),
)
@example(frozenset({"anycast", "broadcast"}), TRUE, [IPv4Address(0), IPv4Address(0x0A000000)])
def test_what_is_known_of_many_addresses_holds_for_each(
    wanted: frozenset[str], local: Ternary, given_: list[IPv4Address]
) -> None:
    numbers = sorted({int(each) for each in given_})
    region = Region(4, joined((n, n) for n in numbers))
    found = has_type(wanted, local, region, lambda _: None)
    for each in given_:
        assert found in {UNKNOWN, has_type(wanted, local, each, lambda _: None)}


def test_types_are_those_that_nft_names() -> None:
    assert frozenset(ADDRESS_TYPES) == ALL
