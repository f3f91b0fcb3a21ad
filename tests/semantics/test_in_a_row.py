"""Addresses of no client that rules in a row match are split from the rest at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.packet import Packet
from analyzer.model.region import Parted, Region
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.parsers.iptables_save import parse
from analyzer.semantics.in_a_row import together
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.positions import Walks
from analyzer.semantics.shares import shares
from tests.support.effort import examples
from tests.support.strategies import by_source
from tests.support.strategies.by_source import SITUATION

#: What endpoints answer to one client.
ANSWER = Packet(
    protocol="tcp",
    sources=by_source.everywhere(),
    source_port=80,
    destination=by_source.FIRST,
    translated=True,
    is_answer=True,
)
_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["10.0.0.1", "10.0.0.2/31", "10.0.0.4/30", "10.0.0.6", "10.0.0.0/29"]),
        st.sampled_from(["", "tcp", "udp"]),
        st.sampled_from(["DROP", "DROP", "ACCEPT", "RETURN", "A"]),
    ),
    max_size=8,
)
_Row = tuple[str, str, str]


def iptables(rows: list[_Row]) -> Walks:
    head = ["*filter", ":FORWARD ACCEPT [0:0]", ":A - [0:0]"]
    rules = [
        f"-A FORWARD -s {address} {f'-p {protocol}' if protocol else ''} -j {target}"
        for address, protocol, target in rows
    ]
    table = parse("\n".join([*head, *rules, "-A A -s 10.0.0.3 -j DROP", "COMMIT", ""]), "dump")
    return Traversal(table.tables["filter"], SITUATION)


def nft(rows: list[_Row]) -> Walks:
    rules = [
        f"{f'meta l4proto {protocol}' if protocol else ''} ip saddr {address} "
        f"{'jump A' if target == 'A' else target.lower()}"
        for address, protocol, target in rows
    ]
    chains = ["chain FORWARD {", *rules, "}", "chain A {", "ip saddr 10.0.0.3 drop", "}"]
    ruleset = read_ruleset("\n".join(["table inet t {", *chains, "}", ""]).encode(), "dump")
    assert isinstance(ruleset, NftRuleset)
    return NftTraversal(ruleset.tables["inet", "t"], "ip", SITUATION)


def outcomes(walks: Walks, packet: Packet) -> Iterator[tuple[int, object]]:
    """Yield each source of a packet, and what happens to what comes from there."""
    try:
        tree = walks.tree("FORWARD", packet)
    except Parted as by:
        for part in packet.parted(by):
            yield from outcomes(walks, part)
        return
    assert packet.sources is not None
    found = shares(tree, lambda leaf: str(leaf.outcome))
    for first, last in packet.sources.intervals:
        yield from ((number, dict(found.bounds)) for number in range(first, last + 1))


@pytest.mark.parametrize("made", [iptables, nft])
@examples(60, 2_000)
@given(_ROWS)
def test_answers_end_as_those_of_each_endpoint_alone(made: object, rows: list[_Row]) -> None:
    assert callable(made)
    found = dict(outcomes(made(rows), ANSWER))
    for address in by_source.ADDRESSES:
        alone = replace(ANSWER, sources=None, source=address)
        tree = made(rows).tree("FORWARD", alone)
        assert found[int(address)] == dict(shares(tree, lambda leaf: str(leaf.outcome)).bounds)


def test_a_row_is_split_off_at_once() -> None:
    asks = [((at, at),) for at in (3, 5, 7)] + [((0, 20),), ((9, 9),)]
    region = Region(4, ((0, 20),))
    by = Parted(region, ((5, 5),), ((5, 5),))
    found = together(by, 1, lambda at: asks[at] if at < len(asks) else None)
    assert found.asked == found.within == ((5, 5), (7, 7))
    assert found.without == ((0, 4), (6, 6), (8, 20))
    assert together(by, 3, lambda _: None) is by


def test_a_row_that_takes_all_is_split_one_by_one() -> None:
    region = Region(4, ((0, 5),))
    by = Parted(region, ((5, 5),), ((5, 5),))
    asks = [((0, 2),), ((3, 4),), None]
    assert together(by, 0, lambda at: asks[at]) is by


@pytest.mark.parametrize("made", [iptables, nft])
def test_thousands_of_bans_take_one_split(made: object) -> None:
    assert callable(made)
    rows = [(f"10.9.{at >> 8}.{at & 255}", "", "DROP") for at in range(1_000)]
    everywhere = Region(4, ((0, (1 << 32) - 1),))
    with pytest.raises(Parted) as caught:
        made(rows).tree("FORWARD", replace(ANSWER, sources=everywhere))
    first, last = 0x0A090000, 0x0A090000 + 999
    assert caught.value.within == ((first, last),)
