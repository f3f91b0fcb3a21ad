"""One walk from many sources tells of each what a walk from it alone tells."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.addresses import Address
from analyzer.model.intervals import Intervals, holds, is_one, joined
from analyzer.model.packet import Packet
from analyzer.model.region import Parted
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics import parts
from analyzer.semantics.conditions import Label, telling
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.parts import Parts, at, of_all
from analyzer.semantics.shares import Shares, shares, shares_by_source
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Leaf
from tests.support.effort import examples
from tests.support.strategies import by_source

KNOWN = Situation(local_addresses=frozenset({by_source.OWN}))
UNKNOWN = Situation()
CAME = Packet(protocol="tcp", destination=by_source.FIRST, destination_port=80, out_interface="")


def key(leaf: Leaf) -> tuple[object, ...]:
    """Return what becomes of a packet, but for its source."""
    return type(leaf.outcome), replace(leaf.packet, source=None, sources=None)


def told(found: Shares[tuple[object, ...]]) -> dict[object, object]:
    """Return what may happen, and how often."""
    return {**{k: b for k, b in found.items() if b.upper}, None: found.unresolved}


def hooks_of(text: str, situation: Situation) -> Hooks:
    return Hooks([read_ruleset(text.encode(), "dump")], "ip", situation)


def check_walk(text: str, hook: str, situation: Situation) -> int:
    """Hold one walk from all addresses against one from each; return how many parts there are."""
    hooks = hooks_of(text, situation)
    region = by_source.everywhere()
    found_parts = shares_by_source(hooks.to_nat(hook, replace(CAME, sources=region)), key)
    for address in by_source.ADDRESSES:
        alone = shares(hooks.to_nat(hook, replace(CAME, source=address)), key)
        (found,) = at(found_parts, address)
        assert told(found) == told(alone), address
    return len(found_parts)


SITUATIONS = st.sampled_from([KNOWN, UNKNOWN])


@examples(60, 2_000)
@given(by_source.iptables(hook="PREROUTING"), SITUATIONS)
def test_a_walk_of_iptables_tells_of_each_source(text: str, situation: Situation) -> None:
    check_walk(text, "PREROUTING", situation)


@examples(60, 2_000)
@given(by_source.nft(hook="prerouting"), SITUATIONS)
def test_a_walk_of_nft_tells_of_each_source(text: str, situation: Situation) -> None:
    check_walk(text, "PREROUTING", situation)


def test_matches_of_one_rule_are_on_the_same_sources() -> None:
    rules = (
        "ip saddr 10.0.0.1 ip saddr 10.0.0.0 meta mark set meta mark | 0x1",  # of no source
        'xt match "made-up" meta mark set meta mark ^ 0x2',
    )
    text = "\n".join(
        ["table ip nat {", "chain main {", "type nat hook prerouting priority 0; policy accept;"]
        + ["jump C"] * 4
        + ["}", "chain C {", *rules, "}", "}", ""]
    )
    assert check_walk(text, "PREROUTING", KNOWN) == 1


def test_sources_are_parted_where_a_rule_asks() -> None:
    rows = ["-A PREROUTING -s 10.0.0.2/31 -j DNAT --to-destination 10.0.0.9:80"]
    text = "\n".join(["*nat", ":PREROUTING ACCEPT [0:0]", *rows, "COMMIT", ""])
    assert check_walk(text, "PREROUTING", KNOWN) == 2


def test_what_makes_no_difference_parts_nobody() -> None:
    rows = [
        "-A PREROUTING -s 10.0.0.2/31 -j ACCEPT",
        "-A PREROUTING -s 10.0.0.4 -d 10.9.9.9 -j DROP",
    ]
    text = "\n".join(["*nat", ":PREROUTING ACCEPT [0:0]", *rows, "COMMIT", ""])
    hooks = hooks_of(text, KNOWN)
    came = replace(CAME, sources=by_source.everywhere())
    parts = shares_by_source(hooks.to_nat("PREROUTING", came), lambda leaf: leaf.packet.mark)
    assert len(parts) == 1


# --- both ends of what leaves ---


def check_onward(text: str, situation: Situation) -> None:
    hooks = hooks_of(text, situation)
    whole = replace(
        CAME,
        destination=None,
        translated=True,
        sources=by_source.everywhere(),
        destinations=by_source.everywhere(),
    )
    rest, boxes = [whole], []
    while rest:
        packet = rest.pop()
        try:
            boxes.append((packet, hooks.onward(packet, made_here=False)[0]))
        except Parted as by:
            rest += packet.parted(by)
    for to in by_source.ADDRESSES:
        for source in by_source.ADDRESSES:
            (parts,) = (
                p for packet, p in boxes if packet.destinations and to in packet.destinations
            )
            one = replace(CAME, translated=True, source=source, destination=to)
            alone, _ = hooks.onward(one, made_here=False)
            assert at(parts, source) == at(alone, source), (source, to)


@examples(40, 1_000)
@given(
    st.one_of(by_source.iptables(hook="POSTROUTING"), by_source.iptables(hook="FORWARD")),
    SITUATIONS,
)
def test_what_iptables_does_behind_nat_is_told_of_each_end(text: str, situation: Situation) -> None:
    check_onward(text, situation)


@examples(40, 1_000)
@given(st.one_of(by_source.nft(hook="postrouting"), by_source.nft(hook="forward")), SITUATIONS)
def test_what_nft_does_behind_nat_is_told_of_each_end(text: str, situation: Situation) -> None:
    check_onward(text, situation)


def test_a_part_is_told_by_an_address() -> None:
    address: Address = by_source.FIRST
    assert at(of_all(Ternary.TRUE), address) == [Ternary.TRUE]
    assert at(((((0, 1),), 1), (((2, 3),), 2)), None) == [1, 2]  # not known which


@pytest.mark.parametrize("source", [by_source.FIRST + 1, by_source.FIRST + 6])
def test_a_prefix_of_nft_may_be_written_with_bits_of_the_host(source: Address) -> None:
    text = (
        "table ip t {\nchain c {\ntype filter hook prerouting priority 0; policy accept;\n"
        "ip saddr != 10.0.0.2/30 drop\n}\n}\n"
    )
    hooks = hooks_of(text, KNOWN)
    alone = hooks.to_nat("PREROUTING", replace(CAME, source=source))
    every = hooks.to_nat("PREROUTING", replace(CAME, sources=by_source.everywhere()))
    (found,) = at(shares_by_source(every, _outcome), source)
    assert found == shares(alone, _outcome)


def _outcome(leaf: Leaf) -> str:
    return type(leaf.outcome).__name__


LAST = 30


@st.composite
def divisions(draw: st.DrawFn) -> Parts[str]:
    """Draw what holds for parts of some sources, which need not be all."""
    if draw(st.booleans()):
        return of_all("all")
    cuts = draw(st.lists(st.sampled_from("abcdefghijkl-"), min_size=LAST, max_size=LAST))
    told = {name: joined((n, n) for n, c in enumerate(cuts) if c == name) for name in sorted(cuts)}
    return tuple([(where, name) for name, where in told.items() if name != "-"])


@examples(60, 2_000)
@given(st.lists(divisions(), min_size=1, max_size=3))
def test_divisions_are_crossed_at_once_as_part_by_part(given_: list[Parts[str]]) -> None:
    found = []
    for few in (0, LAST + 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parts, "_FEW", few)
            found.append(parts.combined(given_, "".join))
    assert found[0] == found[1]


@examples(60, 2_000)
@given(divisions())
def test_an_address_is_looked_up_as_each_part_is_asked(given_: Parts[str]) -> None:
    lookup = parts.Lookup(given_)
    for number in range(LAST + 2):
        assert list(lookup.at(number)) == at(given_, IPv4Address(number))


SETS = st.sets(st.integers(0, LAST), min_size=1).map(lambda of: joined((n, n) for n in of))


@examples(60, 2_000)
@given(
    st.sets(SETS | st.integers(0, LAST).map(lambda n: ((n, n),)), max_size=6),
    SETS,
    st.lists(st.tuples(SETS, st.none() | st.integers(0, LAST)), max_size=4),
)
def test_a_match_on_one_address_tells_it_where_a_label_does(
    asked: set[Intervals], region: Intervals, labels: list[Label]
) -> None:
    alone = {each[0][0] for each in asked if is_one(each)}
    wide = [each for each in asked if not is_one(each)]

    def piece(number: int) -> object:
        return [holds(each, number) for each in wide]

    wanted = set(wide)
    within = [n for n in range(LAST + 1) if holds(region, n)]
    for number in alone.intersection(within):
        others = [n for n in within if n not in alone and piece(n) == piece(number)]
        differs = [
            label
            for label in labels
            if label[1] != number
            and holds(label[0], number) is not holds(label[0], min(others, default=0))
        ]
        if not others or differs:
            wanted.add(((number, number),))
    assert telling(asked, region, labels) == wanted
