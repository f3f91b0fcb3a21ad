"""Bounds on work: what lies beyond them widens answers, which still hold the truth."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from analyzer.kubeproxy.matched.bits import asked_bits
from analyzer.model.addresses import Address
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.model.nft.ruleset import Table as NftTable
from analyzer.model.packet import Packet
from analyzer.semantics import effort, positions
from analyzer.semantics.iptables.traverse import Traversal
from tests.support.agreement import nft_table
from tests.support.agreement.iptables_hooks import bounds_of, check_bounds, way
from tests.support.agreement.iptables_table import is_dead
from tests.support.naive.nft import Flow
from tests.support.naive.table import extremes
from tests.support.odds import bounds
from tests.support.strategies.iptables_tables import (
    open_questions,
    questions,
)
from tests.support.strategies.iptables_walkable import DEAD, walked_tables
from tests.support.strategies.nft_tables import single_tables
from tests.support.strategies.nft_walkable import Kinds

#: The fixture that patches is the same for all examples.
patched = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["forks", "branches", "nested"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the bounds is met at once."""
    match request.param:
        case "forks":
            monkeypatch.setattr(effort, "MOST_FORKS", {False: 0, True: 0})
        case "branches":
            monkeypatch.setattr(effort, "MOST_BRANCHES", 1)
        case _:
            monkeypatch.setattr(positions, "MOST_NESTED", 1)


@pytest.mark.usefixtures("small")
@patched
@given(questions | open_questions)
def test_what_is_cut_off_or_joined_lies_within_the_bounds(
    question: tuple[Ruleset, Address, bool],
) -> None:
    ruleset, destination, made_here = question
    check_bounds(ruleset, destination, made_here=made_here)


@given(questions | open_questions)
def test_bits_that_no_rule_matches_on_make_no_difference(
    question: tuple[Ruleset, Address, bool],
) -> None:
    ruleset, destination, made_here = question
    forgetting = way(ruleset, destination, made_here=made_here, bits=asked_bits([ruleset]))
    remembering = way(ruleset, destination, made_here=made_here)
    assert bounds_of(forgetting) == bounds_of(remembering)


@pytest.mark.usefixtures("small")
@patched
@given(walked_tables())
def test_tables_of_iptables_lie_within_the_bounds(made: Table) -> None:
    share = bounds(Traversal(made).tree("A", Packet()), is_dead)
    least, most = extremes(made, "A", lambda end: end.target == DEAD)
    assert share.lower.as_fraction() <= least
    assert most <= share.upper.as_fraction()


@pytest.mark.usefixtures("small")
@patched
@given(single_tables(Kinds(counts=True)))
def test_tables_of_nft_lie_within_the_bounds(question: tuple[NftTable, Flow]) -> None:
    nft_table.holds(question, frozenset())
