"""Keys compared column by column cover what they cover compared element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.bits import ANY, Bits
from analyzer.model.intervals import everything
from analyzer.model.nft import names
from analyzer.model.nft.expressions import (
    Concat,
    Element,
    Expression,
    Prefix,
    Range,
    Unknown,
    Wildcard,
)
from analyzer.model.region import AnyOf, Parted, Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.nft.covered import by_columns, covering, has_columns
from analyzer.semantics.nft.covering import covers
from analyzer.semantics.nft.index import Index
from analyzer.semantics.nft.values import Evaluated, Value
from tests.support.effort import examples

#: An element, by its index, and whether it covers a key.
Covered: TypeAlias = tuple[int, Ternary]

ONE, TWO = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
WORDS: tuple[Mapping[str, int], ...] = ({}, names.PROTOCOLS, {})
#: What the parts of an element may be, and what is looked up.
ADDRESSES: list[Expression] = [ONE, TWO, Prefix(IPv4Address("10.0.0.0"), 30), Range(ONE, TWO)]
PROTOCOLS: list[Expression] = ["tcp", 17, "no protocol", Unknown("?")]
PORTS: list[Expression] = [80, 90, Range(80, 90)]

elements = st.lists(
    st.tuples(*map(st.sampled_from, (ADDRESSES, PROTOCOLS, PORTS))), max_size=6, unique=True
).map(lambda keys: [Element(key=Concat(key)) for key in keys])


def regions() -> Iterator[Value]:
    for intervals in ((everything(4),), ((int(ONE), int(ONE)),), ((int(ONE), int(TWO)),)):
        yield Region(4, intervals)
        yield AnyOf(4, intervals)


looked_up = st.tuples(
    st.sampled_from([Bits(int(ONE)), ANY, *regions()]),
    st.sampled_from([Bits(6), Bits(17), ANY, Bits(0, 1)]),
    st.sampled_from([Bits(80), Bits(85), ANY]),
)


def one_by_one(given: Sequence[Element], held: tuple[Value, ...], first: int = 0) -> list[Covered]:
    parts = ((at, each.key) for at, each in enumerate(given) if isinstance(each.key, Concat))
    every = ((at, covers(Concat(key.parts[first:]), held, WORDS[first:])) for at, key in parts)
    return [(at, known) for at, known in every if known is not Ternary.FALSE]


def told(asked: Callable[[], Iterable[Covered]]) -> object:
    """What is found, or of what it splits which part."""
    try:
        return list(asked())
    except Parted as parted:
        return parted.asked, parted.within


@examples(200, 5_000)
@given(elements, looked_up)
def test_columns_cover_a_key_as_their_elements_do(
    given: Sequence[Element], held: tuple[Value, ...]
) -> None:
    index, key = Index(given), Evaluated(Ternary.TRUE, held, WORDS)
    every = range(len(given))
    assert has_columns(key, index)
    assert told(lambda: covering(key, index, every)) == told(lambda: one_by_one(given, held))
    rest = Evaluated(Ternary.TRUE, (ANY, *held[1:]), WORDS)
    found = list(by_columns(rest, index, every, but=(0,)))
    assert found == one_by_one(given, held[1:], 1)


def test_keys_of_other_lengths_have_no_columns() -> None:
    pair = Element(key=Concat((ONE, "tcp")))
    key = Evaluated(Ternary.TRUE, (Bits(int(ONE)), Bits(6)), WORDS[:2])
    assert has_columns(key, Index([pair]))
    for other in (Element(key=ONE), Element(key=Unknown("?")), Element(key=Wildcard())):
        index = Index([pair, other])
        assert not has_columns(key, index)
        found = [at for at, _ in covering(key, index, range(2))]
        assert found == ([0] if isinstance(other.key, Wildcard) else [0, 1])
    # Without words for each part it is not known what they are compared with.
    alone = Evaluated(Ternary.TRUE, (Bits(int(ONE)), Bits(6)))
    assert not has_columns(alone, Index([pair]))
    assert list(covering(alone, Index([pair]), [0])) == [(0, Ternary.UNKNOWN)]


def test_the_wildcard_covers_only_what_no_other_element_does() -> None:
    index = Index([Element(key=ONE), Element(key=Wildcard())])
    key = Evaluated(Ternary.TRUE, Bits(int(ONE)))
    assert list(covering(key, index, range(2))) == [(0, Ternary.TRUE)]
    assert list(index.wildcards) == [Element(key=Wildcard())]
