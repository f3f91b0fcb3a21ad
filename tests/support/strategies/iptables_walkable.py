"""Hypothesis strategies for small tables of iptables, which a naive interpreter can walk."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Final

from hypothesis import strategies as st

from analyzer.model.diagnostics import Location
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import options as o
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Chain, Rule, Table
from analyzer.model.probability import XT_STATISTIC_BITS
from tests.support.strategies.iptables_rules import HERE

#: Chains of the tables that are walked. Each jumps to later ones only, so that no walk loops.
CHAINS: Final = ("A", "B", "C")
DEAD: Final = t.Dnat(t.NatRange(IPv4Address("10.0.0.1"), None, 80))
_ALIVE: Final = t.Dnat(t.NatRange(IPv4Address("10.0.0.2"), None, 80))
#: Quarters, so that every probability has few digits; 0 and 1 among them.
quarters = st.integers(0, 4).map(lambda n: m.MatchRandom(n << (XT_STATISTIC_BITS - 2)))
_marks = st.builds(m.MatchMark, st.builds(o.Masked, st.integers(0, 3), st.integers(0, 3)))
known_matches: Final[st.SearchStrategy[m.Match]] = st.one_of(
    quarters, quarters.map(m.MatchNot), _marks, _marks.map(m.MatchNot)
)
unknown_matches: Final[st.SearchStrategy[m.Match]] = st.sampled_from(
    [m.MatchUnknown("-m u32"), m.MatchNot(m.MatchUnknown("-m u32"))]
)


#: What asks for the node, of which the rules tell nothing.
node_matches: Final[st.SearchStrategy[m.Match]] = st.sampled_from(
    [
        m.MatchRpfilter(),
        m.MatchRpfilter(invert=True, valid_mark=True),
        m.MatchPolicy(direction="in", policy="none"),
        m.MatchNot(m.MatchPolicy(direction="in", policy="none")),
        m.MatchPolicy(direction="out", policy="ipsec"),
        m.MatchSocket(),
        m.MatchNot(m.MatchSocket(transparent=True)),
        m.MatchLimit(100),
        m.MatchNot(m.MatchLimit(100)),
        m.MatchHashlimit(name="x", up_to="1/sec"),
        m.MatchHashlimit(name="x", above="1/sec"),
        m.MatchConnlimit(up_to=3),
        m.MatchConnlimit(above=3),
    ]
)


def _decisions(later: tuple[str, ...], *, unknown: bool) -> st.SearchStrategy[t.Target | None]:
    marks = st.builds(t.SetMark, st.integers(0, 3), st.integers(0, 3) | st.just(0xFFFFFFFF))
    kinds: list[st.SearchStrategy[t.Target | None]] = [
        st.sampled_from(
            [None, DEAD, _ALIVE, t.Accept(), t.Drop(), t.Reject(), t.Masquerade(), t.Return()]
        ),
        marks,
    ]
    if later:
        kinds += [st.sampled_from(later).map(t.Jump), st.sampled_from(later).map(t.Goto)]
    if unknown:
        kinds.append(st.just(t.TargetUnknown("-j TPROXY")))
    return st.one_of(kinds)


@st.composite
def walked_tables(
    draw: st.DrawFn,
    *,
    unknown_match: bool = True,
    node_match: bool = False,
    unknown_target: bool = True,
    chains: int = len(CHAINS),
    most_rules: int = 3,
    most_matches: int = 2,
) -> Table:
    """Small tables whose walk has every turn in it: jumps, gotos, marks, chance, the unknown."""
    asked = known_matches | unknown_matches if unknown_match else known_matches
    asked = asked | node_matches if node_match else asked
    built: dict[str, Chain] = {}
    for depth, name in enumerate(CHAINS[:chains]):
        decisions = _decisions(CHAINS[depth + 1 : chains], unknown=unknown_target)
        drawn = draw(
            st.lists(
                st.tuples(st.lists(asked, max_size=most_matches).map(tuple), decisions),
                min_size=1,
                max_size=most_rules,
            )
        )
        built[name] = Chain(
            name,
            tuple(
                Rule(held, target, Location(name, line), f"-A {name} #{line}")
                for line, (held, target) in enumerate(drawn, 1)
            ),
        )
    return Table("ip", "nat", built)


@st.composite
def looping_tables(draw: st.DrawFn) -> Table:
    """Tables whose chains lead anywhere: back, to themselves, to chains that do not exist."""
    anywhere = st.sampled_from([*CHAINS, "MISSING"])
    decision: st.SearchStrategy[t.Target] = st.one_of(
        anywhere.map(t.Jump),
        anywhere.map(t.Goto),
        st.builds(t.SetMark, st.integers(0, 3), st.integers(0, 3)),
        st.sampled_from([DEAD, t.Return()]),
    )
    asked: st.SearchStrategy[tuple[m.Match, ...]] = st.sampled_from(
        [(), (m.MatchRandom(1 << 30),), (m.MatchUnknown("-m u32"),)]
    )
    built = {}
    for name in CHAINS:
        drawn = draw(st.lists(st.tuples(asked, decision), max_size=3))
        held = tuple(Rule(each, target, HERE, "") for each, target in drawn)
        built[name] = Chain(name, held)
    return Table("ip", "nat", built)
