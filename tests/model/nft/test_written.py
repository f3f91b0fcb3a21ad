"""Elements that are found by columns are those that are found when all are parsed."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.model.bits import ANY, Bits
from analyzer.model.nft import names
from analyzer.model.nft.expressions import Concat, Element
from analyzer.model.nft.ruleset import Set
from analyzer.model.nft.written import WrittenElements
from analyzer.model.ternary import Ternary
from analyzer.parsers.nft.definitions import read_set
from analyzer.semantics.nft.fading import networks_of
from analyzer.semantics.nft.index import Index
from analyzer.semantics.nft.values import Evaluated
from tests.support.effort import examples

#: What nft writes for single values, and what it does not, or what is more than one.
ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.0.255", "192.168.0.1")
OTHERS = (
    "10.0.0.0/24",
    "10.0.0.1-10.0.0.9",
    "010.0.0.1",
    "10.0.0.256",
    "*",
    "10.0.0",
    "\u0661.2.3.4",
)
PROTOCOLS, OTHER_PROTOCOLS = ("tcp", "udp", "sctp"), ("17", "icmp", "nonesuch", "*")
PORTS = ("80", "443", "0")
OTHER_PORTS = ("080", "http", "80-90", "\u0668\u0660", "-1", "9" * 5_000)
TAILS = ("", " timeout 5s", ' comment "a, b : goto c"', "\n", " ")

Texts = Sequence[str]


def words(plain: Texts, others: Texts) -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(plain), st.sampled_from(plain), st.sampled_from(others))


def listed(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    """Draw keys, most often all of them single values."""
    tails = st.one_of(st.just(""), st.just(""), st.sampled_from(TAILS))
    keys = st.tuples(*parts).map(" . ".join)
    return st.lists(st.tuples(keys, tails).map("".join), min_size=1, max_size=6)


plain_keys = listed(*map(st.sampled_from, (ADDRESSES, PROTOCOLS, PORTS)))
keys = st.one_of(
    plain_keys,
    listed(words(ADDRESSES, OTHERS), words(PROTOCOLS, OTHER_PROTOCOLS), words(PORTS, OTHER_PORTS)),
)
TYPES = "ipv4_addr . inet_proto . inet_service"


def held(types: str, texts: Texts, value: str = "") -> Set:
    """Return the set of these keys, or the map from them to a verdict."""
    elements = ", ".join(f"{text} : {value}" if value else text for text in texts)
    declared = f"type {types} : verdict" if value else f"type {types}"
    return read_set("s", "ip", [declared, f"elements = {{ {elements} }}"])


def found(elements: Sequence[Element], key: Evaluated) -> list[Element]:
    index = Index(elements)
    return [index.element(at) for at in index.candidates(key)]


@examples(60, 3_000)
@given(keys, st.sampled_from(["", "goto service-1", "drop"]))
@example(["10.0.0.1 . tcp . 80", "10.0.0.1 . tcp . 80"], "")
@example(["10.0.0.1 . tcp . 80 . 10.0.0.2 . udp . 53"], "drop")
@example(["10.0.0.1 . tcp", "80 . 10.0.0.2 . udp . 53"], "")
def test_lookups_find_what_they_find_when_all_elements_are_parsed(texts: Texts, value: str) -> None:
    numbers = [int(IPv4Address("10.0.0.1")), int(IPv4Address("10.0.0.255"))]
    for address in (*map(Bits, numbers), ANY):
        for protocol in (Bits(6), Bits(17), ANY):
            for port in (Bits(80), Bits(0), ANY):
                of = address, protocol, port
                key = Evaluated(Ternary.TRUE, of, ({}, names.PROTOCOLS, {}))
                # Each time anew: what was parsed once stays parsed.
                lazy = held(TYPES, texts, value).elements
                every = tuple(held(TYPES, texts, value).elements)
                assert found(lazy, key) == found(every, key)


@given(plain_keys)
def test_columns_are_the_parts_of_all_keys(texts: Texts) -> None:
    elements = held(TYPES, texts, "goto a").elements
    assert isinstance(elements, WrittenElements)
    columns = elements.columns()
    if any('"' in text or "timeout" in text for text in texts):
        assert columns is None
    else:
        assert columns is not None
        parsed = [each.key.parts for each in elements if isinstance(each.key, Concat)]
        numbers = [(int(a), b, c) for a, b, c in parsed if isinstance(a, IPv4Address)]
        assert list(zip(*columns, strict=True)) == numbers
    assert elements.numbers() is None


@examples(60, 3_000)
@given(st.one_of(listed(st.sampled_from(ADDRESSES)), listed(words(ADDRESSES, OTHERS))))
def test_networks_of_a_set_are_those_of_its_parsed_elements(texts: Texts) -> None:
    lazy, parsed = (held("ipv4_addr", texts).elements for _ in range(2))
    assert networks_of(lazy) == networks_of(tuple(parsed))


@pytest.mark.parametrize(
    "text", [*OTHERS, "10.0.0.1 timeout 5s", '10.0.0.1 comment "x"', "", "10.0.0.1 . tcp"]
)
def test_a_set_with_anything_else_has_no_columns(text: str) -> None:
    elements = held("ipv4_addr", ["10.0.0.9", text]).elements
    assert isinstance(elements, WrittenElements)
    assert elements.columns() is None
    assert elements.numbers() is None


def test_types_that_are_not_known_have_no_columns() -> None:
    elements = held("ipv6_addr", ["fd00::1"]).elements
    assert isinstance(elements, WrittenElements)
    assert elements.columns() is None
    assert elements.one(0) == elements[0]
