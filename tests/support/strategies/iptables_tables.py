"""Small rulesets whose packets go every way: all tables and hooks, marks, chance, the unknown."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Final

from hypothesis import strategies as st

from analyzer.model.diagnostics import Location
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import options as o
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Chain, Rule, Ruleset, Table
from tests.support.strategies.iptables_walkable import quarters

SERVICE, POD, NODE = map(IPv4Address, ("10.2.3.4", "10.1.0.9", "172.16.0.1"))
PORT: Final = 80

HOOKS: Final = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
    "security": ("INPUT", "FORWARD", "OUTPUT"),
}

_small = st.integers(0, 3)
_states = st.sampled_from(["NEW", "INVALID", "UNTRACKED", "DNAT", "ESTABLISHED"])
_destinations = st.sampled_from([SERVICE, POD, NODE]).map(
    lambda a: m.MatchDestination(IPv4Network(a))
)
_marks = st.builds(m.MatchMark, st.builds(o.Masked, _small, _small))
_flow_marks = st.builds(m.MatchConnmark, st.builds(o.Masked, _small, _small))
_conntrack = st.builds(
    lambda states, negated: m.MatchConntrack(state=o.Option(tuple(states), negated)),
    st.lists(_states, min_size=1, max_size=2, unique=True),
    st.booleans(),
)
_known: st.SearchStrategy[m.Match] = st.one_of(
    quarters,
    _destinations,
    _destinations.map(m.MatchNot),
    _marks,
    _marks.map(m.MatchNot),
    _flow_marks,
    _flow_marks.map(m.MatchNot),
    _conntrack,
)
_unknown: st.SearchStrategy[m.Match] = st.sampled_from(
    [m.MatchUnknown("-m u32"), m.MatchNot(m.MatchUnknown("-m u32"))]
)
_dnats = st.sampled_from([POD, NODE]).map(lambda a: t.Dnat(t.NatRange(a, None, PORT)))
_changes: st.SearchStrategy[t.Target | None] = st.one_of(
    st.none(),
    st.builds(t.SetMark, _small, _small),
    st.builds(t.SetConnmark, _small, _small),
    st.builds(t.CopyConnmark, st.sampled_from(["save", "restore"]), _small, _small),
)


def _targets(table: str, hook: str | None, *, unknown: bool) -> st.SearchStrategy[t.Target | None]:
    decisions: list[t.Target] = [t.Accept(), t.Accept(), t.Drop(), t.Return()]
    kinds: list[st.SearchStrategy[t.Target | None]] = [_changes, _changes]
    if hook is not None:
        kinds.append(st.sampled_from([t.Jump("U"), t.Goto("U")]))
    if table == "raw":
        decisions += [t.NoTrack(), t.NoTrack(), t.NoTrack()]
    if table == "filter":
        decisions.append(t.Reject())
    if table == "nat" and hook in {"PREROUTING", "OUTPUT"}:
        kinds.append(_dnats)
    if table == "nat" and hook == "POSTROUTING":
        decisions.append(t.Masquerade())
    if unknown:
        decisions.append(t.TargetUnknown("-j MADEUP"))
    return st.one_of(st.sampled_from(decisions), *kinds)


#: The hooks on a packet's way, by whether the node made it.
WAYS: Final = {
    False: ("PREROUTING", "INPUT", "FORWARD", "POSTROUTING"),
    True: ("OUTPUT", "POSTROUTING", "PREROUTING", "INPUT"),
}


@st.composite
def whole_rulesets(draw: st.DrawFn, made_here: bool, *, unknown: bool = True) -> Ruleset:
    """Rulesets of all tables; with `unknown` some matches and targets nobody can read.

    Rules stand where a packet comes by that the node makes, or that comes in.
    """
    asked = st.one_of(_known, _unknown) if unknown else _known
    tables = {}
    line = 0
    for table in draw(st.sets(st.sampled_from(list(HOOKS)), min_size=2)):
        chains = {}
        for name in (*HOOKS[table], "U"):
            hook = None if name == "U" else name
            most = 2 if hook is None or hook in WAYS[made_here] else 0
            held = st.lists(asked, max_size=1).map(tuple)
            drawn = draw(
                st.lists(st.tuples(held, _targets(table, hook, unknown=unknown)), max_size=most)
            )
            rules = []
            for matches, target in drawn:
                line += 1
                place = Location("made", line, table)
                rules.append(Rule(matches, target, place, f"-A {name} #{line}"))
            accepts = hook is None or table == "nat" or draw(st.integers(0, 5))
            policy = None if hook is None else "ACCEPT" if accepts else "DROP"
            chains[name] = Chain(name, tuple(rules), policy)
        tables[table] = Table("ip", table, chains)
    return Ruleset(tables=tables, family="ip", input_format="iptables-save", file="made")


#: A ruleset, where the packet is sent, and whether the node makes it.
questions: Final = st.booleans().flatmap(
    lambda made_here: st.tuples(
        whole_rulesets(made_here, unknown=False),
        st.sampled_from([SERVICE, POD, NODE]),
        st.just(made_here),
    )
)
open_questions: Final = st.booleans().flatmap(
    lambda made_here: st.tuples(
        whole_rulesets(made_here), st.sampled_from([SERVICE, POD, NODE]), st.just(made_here)
    )
)
