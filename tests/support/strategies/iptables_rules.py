"""Hypothesis strategies for rules of iptables and whole rulesets, as iptables-save prints them."""

from __future__ import annotations

from typing import Any, Final, get_args

from hypothesis import strategies as st

from analyzer.model.diagnostics import Location
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Chain, Rule, Ruleset, Table
from analyzer.parsers.xt.known import XTABLES_TARGETS
from tests.support.strategies.iptables_matches import MATCHES
from tests.support.strategies.iptables_targets import TARGETS
from tests.support.strategies.iptables_values import names

HERE: Final = Location("made", 1)

matches: Final[st.SearchStrategy[m.Match]] = st.sampled_from(list(MATCHES)).flatmap(
    MATCHES.__getitem__
)
targets: Final[st.SearchStrategy[t.Target]] = st.sampled_from(list(TARGETS)).flatmap(
    TARGETS.__getitem__
)
rules: Final = st.builds(
    Rule,
    st.lists(matches, max_size=4).map(tuple),
    st.none() | targets,
    st.just(HERE),
    st.just(""),
)

chain_names = names.filter(lambda name: name not in XTABLES_TARGETS)


@st.composite
def _chains(draw: st.DrawFn) -> tuple[Chain, ...]:
    made = draw(st.lists(chain_names, min_size=1, max_size=4, unique=True))
    policies = st.sampled_from([None, "ACCEPT", "DROP"])
    held = st.lists(rules, max_size=4).map(tuple)
    return tuple(Chain(name, draw(held), draw(policies)) for name in made)


@st.composite
def _rulesets(draw: st.DrawFn) -> Ruleset:
    kept = draw(
        st.lists(
            st.sampled_from(["raw", "mangle", "nat", "filter"]), min_size=1, max_size=3, unique=True
        )
    )
    tables = {
        name: Table("ip", name, {chain.name: chain for chain in draw(_chains())}) for name in kept
    }
    return Ruleset(tables=tables, family="ip", input_format="iptables-save", file="made")


rulesets: Final = _rulesets()


def kinds_of(union: Any) -> set[type]:
    """The members of a union of types."""
    return set(get_args(union))
