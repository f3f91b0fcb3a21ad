"""Deliberate faults, each with the property that has to notice it, and where questions come from.

Each row of SUITES is one property. That a fault is noticed is shown in two ways: by a stored
question, the smallest that was ever found (tests/semantics/seeded, the quick check), and by a new
search among random ones (``make soak``). ``python -m tests.support.seeded.search --write`` stores
a question for each fault that has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from analyzer.model.addresses import Address
from analyzer.model.iptables.matches import MatchNot, MatchUnknown
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.model.nft.ruleset import Table as NftTable
from tests.support.agreement import nft_node, nft_table
from tests.support.agreement.iptables_hooks import check_exactly
from tests.support.agreement.iptables_table import (
    agrees_with_the_naive_interpreter,
    bounds_are_the_extremes_of_an_adversary,
)
from tests.support.naive.nft import Flow
from tests.support.nft.asked import FORGOTTEN
from tests.support.nft.nodes import Question
from tests.support.nft.nodes import questions as nodes
from tests.support.seeded import (
    hook_faults,
    nft_bound_faults,
    nft_hook_faults,
    nft_table_faults,
    stored,
    table_faults,
)
from tests.support.seeded.fault import Fault
from tests.support.strategies import iptables_tables
from tests.support.strategies.iptables_walkable import walked_tables
from tests.support.strategies.nft_tables import single_tables
from tests.support.strategies.nft_walkable import Kinds

STORED: Final = Path(__file__).parents[2] / "semantics" / "seeded"
#: What may be forgotten of a packet and its node.
forgotten: Final = st.frozensets(st.sampled_from(FORGOTTEN), min_size=1, max_size=4)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A property and the faults that it has to notice.

    Attributes:
        name: of the file of stored questions, without its ending.
        questions: by the name of the fault, among which one that notices it is soon found.
        check: the property; AssertionError or ValueError where it does not hold.
    """

    name: str
    faults: Mapping[str, Fault]
    questions: Callable[[str], st.SearchStrategy[Any]]
    check: Callable[[Any], None]
    write: Callable[[Any], str]
    read: Callable[[str], Any]

    @property
    def file(self) -> Path:
        """Where its questions are stored."""
        return STORED / f"{self.name}.txt"

    def is_broken_by(self, text: str) -> bool:
        """Whether the property does not hold for a stored question."""
        question = self.read(text)
        try:
            self.check(question)
        except (AssertionError, ValueError):
            return True
        return False


def _table(table: Table) -> None:
    if not any(map(_is_unknown, _matches(table))):
        agrees_with_the_naive_interpreter(table)
    bounds_are_the_extremes_of_an_adversary(table)


def _matches(table: Table) -> list[Any]:
    return [m for chain in table.chains.values() for rule in chain.rules for m in rule.matches]


def _is_unknown(match: Any) -> bool:
    return isinstance(match.match if isinstance(match, MatchNot) else match, MatchUnknown)


def _way(question: tuple[Ruleset, Address, bool]) -> None:
    ruleset, destination, made_here = question
    check_exactly(ruleset, destination, made_here=made_here)


def _forgetful(question: tuple[tuple[NftTable, Flow], frozenset[str]]) -> None:
    nft_table.holds(*question)


def _node(question: Question) -> None:
    if question.iptables is None:
        nft_node.agrees_exactly(question)
    else:  # in which order the two registered their chains is not known
        nft_node.holds_on_all_hooks(question, frozenset())


def _forgetful_questions(name: str) -> st.SearchStrategy[Any]:
    about, lost = nft_bound_faults.ABOUT.get(name, ("", None))
    unknown = forgotten if lost is None else st.just(frozenset({lost}))
    return st.tuples(single_tables(Kinds(counts=True, about=about)), unknown)


SUITES: Final = {
    suite.name: suite
    for suite in (
        Suite(
            name="iptables-table",
            faults=table_faults.FAULTS,
            # Unknown targets are left out, so that a fault shows which is not theirs.
            questions=lambda _: (
                walked_tables(unknown_match=False, unknown_target=False)
                | walked_tables(unknown_target=False)
            ),
            check=_table,
            write=stored.write_table,
            read=stored.read_table,
        ),
        Suite(
            name="iptables-hooks",
            faults=hook_faults.FAULTS,
            questions=lambda _: iptables_tables.questions,
            check=_way,
            write=stored.write_way,
            read=stored.read_way,
        ),
        Suite(
            name="nft-table",
            faults=nft_table_faults.FAULTS,
            questions=lambda name: single_tables(Kinds(about=nft_table_faults.ABOUT.get(name, ""))),
            check=nft_table.agrees,
            write=stored.write_nft_table,
            read=stored.read_nft_table,
        ),
        Suite(
            name="nft-bounds",
            faults=nft_bound_faults.FAULTS,
            questions=_forgetful_questions,
            check=_forgetful,
            write=stored.write_forgetful,
            read=stored.read_forgetful,
        ),
        Suite(
            name="nft-hooks",
            faults=nft_hook_faults.FAULTS,
            questions=lambda name: nft_hook_faults.ABOUT.get(name, nodes()),
            check=_node,
            write=stored.write_node,
            read=stored.read_node,
        ),
    )
}
