from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.bits import ANY, Bits
from analyzer.model.nft import names
from analyzer.model.nft.expressions import Concat, Element, Expression, Prefix, Range, Wildcard
from analyzer.model.ternary import Ternary
from analyzer.semantics.nft.index import Index
from analyzer.semantics.nft.values import Evaluated, Type, Value
from tests.support.effort import examples
from tests.support.naive.values import covers

ONE, TWO = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
#: What a part of an element may be, and the values that are looked up.
ADDRESSES: list[Expression] = [ONE, TWO, Prefix(IPv4Address("10.0.0.0"), 24), Range(ONE, TWO)]
PROTOCOLS: list[Expression] = ["tcp", 6, 17]

keys = st.builds(
    lambda address, protocol: Concat((address, protocol)),
    st.sampled_from(ADDRESSES),
    st.sampled_from(PROTOCOLS),
)
sets = st.lists(keys, max_size=8, unique=True).map(lambda keys: [Element(key=k) for k in keys])


def looked_up(*held: Value) -> Evaluated:
    return Evaluated(Ternary.TRUE, held, ({}, names.PROTOCOLS))


def single(held: Value) -> Evaluated:
    return Evaluated(Ternary.TRUE, held)


def candidates(index: Index, key: Evaluated) -> list[Element]:
    return [index.elements[at] for at in index.candidates(key)]


def of(*found: Expression) -> list[Element]:
    return [Element(key=each) for each in found]


@examples(60, 2_000)
@given(sets, st.sampled_from([ONE, TWO, IPv4Address("10.9.0.1")]), st.sampled_from([6, 17]))
def test_every_element_that_covers_a_key_is_a_candidate_in_its_order(
    elements: Sequence[Element], address: IPv4Address, protocol: int
) -> None:
    index = Index(elements)
    for key in (
        looked_up(Bits(int(address)), Bits(protocol)),
        looked_up(ANY, Bits(protocol)),
        looked_up(Bits(int(address)), ANY),
    ):
        found = list(index.candidates(key))
        assert found == sorted(found)
        covering = {at for at, e in enumerate(elements) if covers(e.key, (address, protocol))}
        assert covering <= set(found)


def test_an_element_that_holds_another_value_is_no_candidate() -> None:
    index = Index(of(ONE, TWO))
    assert candidates(index, single(Bits(int(TWO)))) == of(TWO)
    assert candidates(index, single(Bits(1))) == []


def test_what_covers_more_than_one_value_is_always_a_candidate() -> None:
    elements = of(Prefix(IPv4Address("10.0.0.0"), 24), ONE, Wildcard())
    found = candidates(Index(elements), single(Bits(int(TWO))))
    assert found == [elements[0], elements[2]]


def test_of_an_unknown_key_all_elements_are_candidates() -> None:
    elements = of(ONE, TWO)
    for held in (ANY, Bits(0, 1), Type(Ternary.TRUE, None, lambda _: None), None):
        assert candidates(Index(elements), single(held)) == elements


def test_a_concatenation_is_found_by_the_parts_that_are_known() -> None:
    elements = of(Concat((ONE, "tcp")), Concat((TWO, "tcp")), Concat((ONE, "udp")))
    index = Index(elements)
    assert candidates(index, looked_up(ANY, Bits(6))) == elements[:2]
    assert candidates(index, looked_up(Bits(int(ONE)), ANY)) == [elements[0], elements[2]]
    assert candidates(index, looked_up(Bits(int(ONE)), Bits(17))) == [elements[2]]


def test_a_name_without_a_number_is_always_a_candidate() -> None:
    elements = of("eth0", "eth1", "eth*")
    assert candidates(Index(elements), single("eth1")) == elements


def test_a_word_is_looked_up_as_its_number() -> None:
    index = Index(of("tcp", "udp", 17))
    key = Evaluated(Ternary.TRUE, Bits(17), names.PROTOCOLS)
    assert candidates(index, key) == of("udp", 17)
