"""Chains that flows may come to once they have come to another, held against all ways."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.chain_order import ChainOrder

Chains = dict[str, list[frozenset[str]]]
#: Chains by number, each of which leads to later ones only.
CHAINS = st.lists(
    st.lists(st.frozensets(st.integers(1, 3), max_size=2), max_size=3), min_size=1, max_size=5
).map(
    lambda chains: {
        str(at): [
            frozenset(str(at + step) for step in row if at + step < len(chains)) for row in rows
        ]
        for at, rows in enumerate(chains)
    }
)


def follows(order: ChainOrder, first: str, later: str) -> bool:
    return bool(order.after(first) & order.chains([later]))


def pairs(chains: Chains, entries: tuple[str, ...]) -> set[tuple[str, str]]:
    """Return which chain comes behind which on some way, by following all of them.

    A way is made longer row by row, each of which sends the flow to one of its chains or to none.
    """
    found: set[tuple[str, str]] = set()
    # What was met so far, and the rows to come, the next one last.
    rest: list[tuple[tuple[str, ...], tuple[frozenset[str], ...]]] = [
        ((), tuple(frozenset({each}) for each in reversed(entries)))
    ]
    seen = set(rest)
    while rest:
        met, rows = rest.pop()
        if not rows:
            found.update((a, b) for at, a in enumerate(met) for b in met[at + 1 :])
            continue
        *later, row = rows
        ways = [(met, tuple(later))]
        ways += [((*met, to), (*later, *reversed(chains[to]))) for to in row]
        new = set(ways) - seen
        seen |= new
        rest += new
    return found


@given(CHAINS, st.data())
def test_a_chain_follows_where_some_way_leads_there_later(
    chains: Chains, data: st.DataObject
) -> None:
    entries = data.draw(st.lists(st.sampled_from(sorted(chains)), min_size=1, max_size=2))
    reached = set(entries)
    for name in sorted(chains):
        if name in reached:
            reached.update(to for row in chains[name] for to in row)
    known = {name: chains[name] for name in reached}
    order = ChainOrder(known, entries)
    met = {pair for each in permutations(entries) for pair in pairs(chains, each)}
    for first in reached:
        for later in reached:
            assert follows(order, first, later) == ((first, later) in met)


def test_of_chains_that_nobody_knows_each_may_follow_each() -> None:
    order = ChainOrder({"a": [["b"]], "b": []}, ["a"])
    assert not follows(order, "b", "a")
    assert follows(order, "b", "c")
    assert follows(order, "c", "b")


def test_of_chains_that_loop_each_may_follow_each() -> None:
    order = ChainOrder({"a": [["b"]], "b": [["a"]], "c": []}, ["a"])
    assert follows(order, "c", "a")
    assert follows(order, "a", "c")


def test_chains_as_deep_as_a_dump_is_long_are_followed() -> None:
    rows = {str(at): [[str(at + 1)]] for at in range(5000)} | {"5000": []}
    order = ChainOrder(rows, ["0"])
    assert follows(order, "0", "5000")
    assert not follows(order, "5000", "0")
