"""Small rulesets of nft whose packets go every way, the kernel's or what it prints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from analyzer.model.diagnostics import Location
from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import Chain, Rule, Table
from tests.support.naive.nft import Flow
from tests.support.strategies import nft_walkable as r

#: Families of the packets that tables of a family meet.
MEETS: Final = {"ip": ("ip",), "ip6": ("ip6",), "inet": ("ip", "ip6")}
_ENDS: Final = (e.Accept(), e.Drop(), e.Return(), e.Continue())
_HOOKS: Final = ("PREROUTING", "OUTPUT", "INPUT", "POSTROUTING")


@cache
def _ending(
    families: tuple[str, ...], hook: str, kind: str, chains: tuple[str, ...], kinds: r.Kinds
) -> st.SearchStrategy[s.Statement]:
    jumps = [to(chain) for chain in chains for to in (e.Jump, e.Goto)]
    found: list[st.SearchStrategy[Any]] = [
        st.sampled_from([*_ENDS, *jumps]),
        r.vmaps(families, chains, kinds),
    ]
    if kind == "nat":
        # As often as all else, since most of what is asked of nat is what it translates.
        entering = hook in {"PREROUTING", "OUTPUT"}
        found += [st.sampled_from((r.destinations if entering else r.sources)(families, kinds))] * 2
        if entering and kinds.all:
            found.append(st.builds(s.Redirect, port=st.sampled_from([None, 80])))
    else:
        found.append(st.sampled_from(r.rejects(families)))
    return st.one_of(*found)


@cache
def _parts(
    families: tuple[str, ...], kinds: r.Kinds, *, early: bool
) -> st.SearchStrategy[list[s.Statement]]:
    matched = r.matches(families, kinds)
    changed = r.changes(families, kinds, early=early)
    return st.lists(st.one_of(matched, matched, changed), max_size=2)


@st.composite
def _rules(
    draw: st.DrawFn,
    families: tuple[str, ...],
    base: tuple[str, str],
    place: tuple[str, str],
    chains: tuple[str, ...],
    kinds: r.Kinds,
    early: bool,
) -> tuple[Rule, ...]:
    """Rules of a chain `place` (table, name) that a hook of a type, `base`, leads to."""
    changed = r.changes(families, kinds, early=early)
    ends = _ending(families, *base, chains, kinds)
    held = _parts(families, kinds, early=early)
    found = []
    for at in range(draw(st.integers(1, 4))):
        statements = draw(held)
        if draw(st.integers(0, 3)):
            statements = [*statements, draw(ends)]
            if draw(st.integers(0, 5)) == 0:
                statements.append(draw(changed))
        line = Location("made", at + 1, place[0])
        if statements:
            found.append(Rule(tuple(statements), line, f"{' '.join(place)} #{at}", None, place[1]))
    return tuple(found)


@st.composite
def tables(
    draw: st.DrawFn,
    family: str,
    name: str,
    bases: Sequence[tuple[str, str, int]],
    kinds: r.Kinds,
) -> Table:
    """Tables with base chains of these hooks, types and priorities, ``base0`` and so on.

    Each leads on to two others of its own kind.
    """
    families = MEETS[family]
    chains: list[Chain] = []
    for at, (hook, kind, priority) in enumerate(bases):
        early = priority < -200 and hook in {"PREROUTING", "OUTPUT"}
        names = [f"base{at}", f"user{at}", "last"]
        for number, each in enumerate(names):
            if each == "last" and at:
                continue
            held = draw(
                _rules(
                    families,
                    # All chains of a table may come to its last one.
                    (hook, "filter" if each == "last" else kind),
                    (name, each),
                    tuple(names[number + 1 :]),
                    kinds,
                    early,
                )
            )
            base: dict[str, Any] = {}
            if number == 0:
                dropping = draw(st.integers(0, 5)) == 0
                base = {"type": kind, "hook": hook.lower(), "priority": priority}
                base["policy"] = "drop" if dropping else "accept"
            chains.append(Chain(name=each, rules=held, **base))
    return Table(
        family=family,
        name=name,
        chains={chain.name: chain for chain in chains},
        sets=r.sets(families),
        objects={},
        flowtables={},
    )


@st.composite
def flows(draw: st.DrawFn, family: str, *, made_here: bool = False) -> Flow:
    """A packet of which everything is known, and its node."""
    service, pod, node = r.ADDRESSES[family]
    return Flow(
        family=family,
        protocol=draw(st.sampled_from(["tcp", "udp"])),
        source=node if made_here else draw(st.sampled_from([pod, pod, node])),
        source_port=draw(st.sampled_from([40_000, 40_001])),
        destination=draw(st.sampled_from([service, pod, node])),
        destination_port=draw(st.sampled_from(r.PORTS)),
        mark=draw(st.sampled_from([0, 0, 1, 3])),
        iif="" if made_here else draw(st.sampled_from(["eth0", "eth1"])),
        own=frozenset({node}),
        lists=frozenset(draw(st.sampled_from([(), (r.AFFINITY,)]))),
        under_limits=draw(st.booleans()),
        counter=draw(st.integers(0, 2)),
    )


@st.composite
def single_tables(draw: st.DrawFn, kinds: r.Kinds) -> tuple[Table, Flow]:
    """One table with one base chain, and a packet that has come as far as that."""
    family, packets = draw(
        st.sampled_from([("ip", "ip"), ("ip6", "ip6"), ("inet", "ip"), ("inet", "ip6")])
    )
    hook, kind = draw(st.sampled_from([(h, k) for h in _HOOKS for k in ("filter", "nat", "nat")]))
    early = kind == "filter" and draw(st.integers(0, 3)) == 0
    table = draw(tables(family, "t", [(hook, kind, -300 if early else 0)], kinds))
    flow = draw(flows(packets))
    if not (early and hook in {"PREROUTING", "OUTPUT"}):
        flow.flow_mark = draw(st.sampled_from([0, 0, 1, 2]))
        flow.untracked = kind != "nat" and draw(st.integers(0, 5)) == 0
        flow.track()
    return table, flow
