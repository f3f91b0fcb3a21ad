"""A lookup in a set finds whether there is an element; one in a map finds the elements."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address

import pytest

from analyzer.model.bits import ANY, Bits
from analyzer.model.devices import Devices
from analyzer.model.nft import names
from analyzer.model.nft.expressions import (
    Concat,
    Element,
    Expression,
    Goto,
    Prefix,
    Wildcard,
)
from analyzer.model.region import AnyOf, Parted, Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.nft.index import Index
from analyzer.semantics.nft.lookup import lookup, misses
from analyzer.semantics.nft.values import Evaluated, Value

ONE, TWO, THREE = (IPv4Address(f"10.0.0.{last}") for last in (1, 2, 3))
BOTH = ((int(ONE), int(TWO)),)
WORDS: tuple[Mapping[str, int], ...] = ({}, names.PROTOCOLS)
KEYS = [Concat((each, protocol)) for each in (ONE, TWO) for protocol in ("tcp", "udp")]


def key(*held: Value) -> Evaluated:
    return Evaluated(Ternary.TRUE, held, WORDS)


@pytest.mark.parametrize(
    ("held", "known"),
    [
        ((Bits(int(ONE)), Bits(6)), Ternary.TRUE),
        ((Bits(int(ONE)), Bits(132)), Ternary.FALSE),
        ((Bits(int(ONE)), ANY), Ternary.UNKNOWN),
        ((Bits(int(THREE)), ANY), Ternary.FALSE),
        ((ANY, Bits(6)), Ternary.UNKNOWN),
        ((AnyOf(4, BOTH), Bits(6)), Ternary.UNKNOWN),
        ((AnyOf(4, BOTH), Bits(132)), Ternary.FALSE),
        ((Region(4, ((int(TWO), int(TWO)),)), Bits(17)), Ternary.TRUE),
    ],
)
def test_of_a_set_only_that_there_is_an_element_counts(
    held: tuple[Value, ...], known: Ternary
) -> None:
    found = lookup(key(*held), Index([Element(key=each) for each in KEYS]))
    assert (bool(found.hits), found.is_sure) == (known is not Ternary.FALSE, known is Ternary.TRUE)
    assert all(isinstance(hit.element.key, Wildcard) for hit in found.hits)


def test_of_a_map_each_element_that_may_be_found_counts() -> None:
    elements = [Element(key=each, value=Goto(str(at))) for at, each in enumerate(KEYS)]
    found = lookup(key(ANY, Bits(6)), Index(elements))
    assert [hit.element for hit in found.hits] == elements[::2]
    assert not found.is_sure
    found = lookup(key(Bits(int(TWO)), Bits(17)), Index(elements))
    assert [hit.element for hit in found.hits] == elements[3:]
    assert found.is_sure


def test_a_region_is_split_where_only_some_of_it_is_in_the_set() -> None:
    index = Index([Element(key=each) for each in KEYS])
    wide = Region(4, ((int(ONE), int(THREE)),))
    with pytest.raises(Parted) as caught:
        lookup(key(wide, ANY), index)
    assert caught.value.within == BOTH


def test_devices_are_all_known_where_each_has_an_element() -> None:
    index = Index([Element(key="eth0"), Element(key="eth1")])
    for given, is_sure in ((("eth0", "eth1"), True), (("eth0", "eth2"), False)):
        one = Devices(given, inside=True, names=frozenset(given))
        found = lookup(Evaluated(Ternary.TRUE, one), index)
        assert found.is_sure is is_sure


@pytest.mark.parametrize(
    ("keys", "missed"),
    [
        (KEYS, True),
        ([], True),
        ([Concat((Prefix(TWO, 31), "tcp"))], False),
        ([Concat((Prefix(IPv4Address("10.0.0.4"), 30), "tcp"))], True),
        ([*KEYS, Wildcard()], False),
        ([Concat(("name", "tcp"))], False),
        ([THREE], False),
    ],
)
def test_many_addresses_are_missed_if_no_element_has_any(
    keys: list[Expression], *, missed: bool
) -> None:
    index = Index([Element(key=each) for each in keys])
    three = Region(4, ((int(THREE), int(THREE)),))
    assert misses(Evaluated(Ternary.TRUE, three), index, 0, 2) is missed
    assert not misses(Evaluated(Ternary.UNKNOWN, three), index, 0, 2)
    assert not misses(Evaluated(Ternary.TRUE, Bits(int(THREE))), index, 0, 2)
    either = AnyOf(4, ((int(TWO), int(THREE)),))
    assert misses(Evaluated(Ternary.TRUE, either), index, 0, 2) is (missed and keys != KEYS)
    assert not either.asked
