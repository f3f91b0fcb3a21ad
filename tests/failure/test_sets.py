"""Sets of three nodes and more that are looked at: all, or the worst for some Service."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given

from analyzer.failure import sets
from analyzer.failure.costs import cost
from analyzer.failure.incidence import rank
from analyzer.failure.sets import sets_to_look_at
from tests.support.incidences import NODES, Placed, placed

TRIPLES = [*itertools.combinations(range(len(NODES)), 3)]


def test_few_sets_are_all_looked_at() -> None:
    found, is_complete = sets_to_look_at(Placed((), {}).nodes, 3, (), range(5))
    assert ([*found], is_complete) == (TRIPLES, True)


@given(placed(known=True))
def test_of_many_the_worst_loss_is_among_those_looked_at(given_: Placed) -> None:
    nodes = given_.nodes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sets, "_ALL", 1)
        found, is_complete = sets_to_look_at(nodes, 3, (4,), range(5))
        looked_at = [*found]
    assert not is_complete
    assert len(set(looked_at)) == len(looked_at)
    assert {*looked_at} <= {*TRIPLES}
    assert any(4 in each for each in looked_at)
    worst = max(rank(cost(nodes, each).worst) for each in TRIPLES)
    assert max(rank(cost(nodes, each).worst) for each in looked_at) == worst
