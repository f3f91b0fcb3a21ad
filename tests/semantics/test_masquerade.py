"""MASQUERADE gives a flow some address of the node: which ones are possible, and which are not."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.intervals import Intervals, joined, span
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.semantics.masquerade import MasqueradeAddresses, is_from_masquerade, is_to_masquerade
from analyzer.semantics.situation import Situation
from analyzer.semantics.translation import masqueraded, with_source
from tests.support.effort import examples

NODE, BRIDGE = ip_address("192.168.0.10"), ip_network("10.244.0.0/30")


SPANS = (span(BRIDGE),)


def known(bridges: Intervals | None = SPANS) -> MasqueradeAddresses:
    return MasqueradeAddresses([NODE, ip_address("127.0.0.1")], lambda: bridges)


@pytest.mark.parametrize(
    ("network", "holds"),
    [
        ("203.0.113.0/24", Ternary.FALSE),
        ("127.0.0.0/8", Ternary.FALSE),
        ("192.168.0.0/16", Ternary.UNKNOWN),
        ("10.244.0.1/32", Ternary.UNKNOWN),
        ("10.244.0.4/32", Ternary.FALSE),
        ("128.0.0.0/1", Ternary.UNKNOWN),
        ("0.0.0.0/0", Ternary.TRUE),
    ],
)
def test_a_network_has_all_some_or_none_of_them(network: str, holds: Ternary) -> None:
    asked = ip_network(network)
    assert known().is_within((span(asked),)) is holds
    packet = masqueraded(Packet(source=ip_address("10.1.0.1")))
    assert Situation(masquerades=known()).comes_from(packet, asked) is holds
    answer = Packet(is_answer=True, is_masquerades=True, to_node=True)
    assert Situation(masquerades=known()).goes_to(answer, asked) is holds
    # Another program's SNAT may choose any.
    other = with_source(packet, None)
    assert Situation(masquerades=known()).comes_from(other, asked) is Ternary.UNKNOWN


def test_nothing_is_known_without_the_nodes_own_or_its_bridges() -> None:
    for none in (known(None), MasqueradeAddresses([], lambda: SPANS)):
        assert none.is_within(((0, 0),)) is Ternary.UNKNOWN
        assert none.bits.equals(0) is Ternary.UNKNOWN


def test_only_what_masquerade_chose_is_one_of_them() -> None:
    packet = masqueraded(Packet(source=NODE))
    assert (is_from_masquerade(packet), is_to_masquerade(packet)) == (True, False)
    answer = Packet(is_answer=True, is_masquerades=True)
    assert (is_from_masquerade(answer), is_to_masquerade(answer)) == (False, True)
    assert not is_from_masquerade(Packet())


@examples(60, 2_000)
@given(
    st.lists(st.tuples(st.integers(0, 255), st.integers(0, 255)), min_size=1, max_size=3),
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(0, 255),
)
def test_as_a_number_it_is_told_as_each_of_them_is(
    spans: list[tuple[int, int]], first: int, last: int, mask: int
) -> None:
    own = ip_address("0.0.0.77")
    of = MasqueradeAddresses([own], lambda: joined((min(s), max(s)) for s in spans))
    every = [77, *(n for one in spans for n in range(min(one), max(one) + 1))]
    first, last = sorted((first, last))

    def told(held: list[bool], found: Ternary) -> bool:
        return found is Ternary.UNKNOWN or {*held} == {found is Ternary.TRUE}

    within = of.bits.is_within(first, last)
    assert told([first <= n <= last for n in every], within)
    assert (within is Ternary.UNKNOWN) is (len({first <= n <= last for n in every}) > 1)
    high = mask | ((1 << 128) - 1) ^ 0xFF  # whole numbers, or their last bits left out
    for wanted, of_bits in (
        (first, mask),
        (first & mask, mask),
        (first & high, high),
        (first, high),
    ):
        assert told([n & of_bits == wanted for n in every], of.bits.equals(wanted, of_bits))
