"""What becomes of flows behind nat is told of any two addresses as a walk between them tells it."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.routes.leaving import Leaving
from analyzer.model.intervals import Intervals, holds
from analyzer.model.packet import UNKNOWN_MARK, Mark, Packet
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.onward import Onward, OnwardBySource, asked_of_others
from analyzer.semantics.parts import at
from analyzer.semantics.situation import Situation
from tests.support.effort import examples
from tests.support.strategies import by_source

SENT = Packet(protocol="tcp", translated=True, from_node=False)
SITUATIONS = st.sampled_from([Situation(), Situation(local_addresses=frozenset({by_source.OWN}))])

#: Destinations to which most packets go.
WITHIN = st.sampled_from(
    [None, *(((int(by_source.FIRST) + a, int(by_source.FIRST) + b),) for a, b in ((0, 1), (2, 6)))]
)


def hooks_of(text: str, situation: Situation) -> Hooks:
    return Hooks([read_ruleset(text.encode(), "dump")], "ip", situation)


def sent_on(leaving: Leaving, packet: Packet) -> OnwardBySource:
    assert packet.destination is not None
    return leaving.towards(packet)(int(packet.destination), packet.destination_port)


def check(
    text: str, situation: Situation, *, asks_pairs: bool, within: Intervals | None = None
) -> None:
    """What is told of many packets is what a walk tells of each; whoever is told apart is asked."""
    hooks = hooks_of(text, situation)
    leaving = Leaving(hooks, "ip", asks_pairs=asks_pairs, within=lambda: within)
    asked = leaving.asked(replace(SENT, protocol=None, mark=UNKNOWN_MARK), 1_000)
    assert asked is not None
    for protocol, port, to in product(("tcp", "udp"), (80, 90), by_source.ADDRESSES):
        sent = replace(SENT, protocol=protocol, destination=to, destination_port=port)
        parts, _ = sent_on(leaving, sent)
        told = {}
        for source in by_source.ADDRESSES:
            one = replace(sent, source=source)
            ((_, alone),), _ = hooks.onward(one, made_here=False)
            (found,) = at(parts, source)
            assert found == alone, (source, to, protocol, port)
            told[source] = alone
        if within is None or holds(within, int(to)):
            for one_of, other in combinations([each for each in told if each != to], 2):
                if told[one_of] != told[other]:
                    apart = [holds(each, int(one_of)) != holds(each, int(other)) for each in asked]
                    assert any(apart), (one_of, other, to, protocol, port)


def check_spared(text: str, situation: Situation, first: int, last: int) -> None:
    """Whom one walk spares no walk of its own may lose."""
    hooks = hooks_of(text, situation)
    to = by_source.ADDRESSES[first : last + 1]
    if not Leaving(hooks, "ip").spares(SENT, ((int(to[0]), int(to[-1])),)):
        return
    for destination, port, source in product(to, (80, 90), by_source.ADDRESSES):
        one = replace(SENT, destination=destination, destination_port=port, source=source)
        ((_, alone),), _ = hooks.onward(one, made_here=False)
        assert not alone.lost, (source, destination, port)


@examples(30, 1_000)
@given(
    st.one_of(by_source.iptables(hook="POSTROUTING"), by_source.iptables(hook="FORWARD")),
    SITUATIONS,
    st.booleans(),
    WITHIN,
)
def test_flows_that_leave_through_iptables(
    text: str, situation: Situation, asks_pairs: bool, within: Intervals | None
) -> None:
    check(text, situation, asks_pairs=asks_pairs, within=within)


@examples(30, 1_000)
@given(
    st.one_of(by_source.nft(hook="postrouting"), by_source.nft(hook="forward")),
    SITUATIONS,
    st.booleans(),
    WITHIN,
)
def test_flows_that_leave_through_nft(
    text: str, situation: Situation, asks_pairs: bool, within: Intervals | None
) -> None:
    check(text, situation, asks_pairs=asks_pairs, within=within)


@examples(60, 2_000)
@given(
    st.one_of(by_source.nft(hook="forward"), by_source.iptables(hook="FORWARD")),
    SITUATIONS,
    st.integers(0, 3),
    st.integers(4, 7),
)
def test_what_one_walk_spares_is_not_lost(
    text: str, situation: Situation, first: int, last: int
) -> None:
    check_spared(text, situation, first, last)


@given(st.integers(2, 40))
def test_pairs_of_one_address_are_asked_for_at_once(number: int) -> None:
    pairs = ", ".join(f"10.0.0.{at} . 10.0.0.{at} . 80" for at in range(1, 2 * number, 2))
    text = f"""table ip t {{
set back {{ type ipv4_addr . ipv4_addr . inet_service; elements = {{ {pairs} }}; }}
chain postrouting {{ type nat hook postrouting priority 100;
ip saddr . ip daddr . th dport @back masquerade }}
}}"""
    hooks = Counting(hooks_of(text, Situation(local_addresses=frozenset())))
    leaving = Leaving(cast("Hooks", hooks), "ip", asks_pairs=True)
    assert leaving.asked(SENT, 4) == set()
    for at_ in range(2 * number):
        to = by_source.FIRST + at_
        parts, asked = sent_on(leaving, replace(SENT, destination=to, destination_port=80))
        comes_back = Ternary.of(at_ % 2 == 1)
        assert at(parts, to) == [Onward(comes_back)]
        assert at(parts, to + 1) == [Onward(Ternary.FALSE)]
        assert asked == (frozenset({alone(int(to))}) if at_ % 2 else frozenset())
    assert hooks.walks <= 20  # whatever the number of pairs


def masquerading(*rows: str) -> Leaving:
    text = "\n".join(["*nat", ":POSTROUTING ACCEPT [0:0]", *rows, "COMMIT", ""])
    return Leaving(hooks_of(text, Situation(local_addresses=frozenset())), "ip")


class Counting:
    """Hooks whose walks are counted."""

    def __init__(self, hooks: Hooks) -> None:
        self.walks = 0
        self._hooks = hooks

        self.most_ports: int | None = None

    @property
    def asked_fields(self) -> dict[str, int]:
        return self._hooks.asked_fields

    def asked_of(self, mark: Mark) -> Mark:
        return self._hooks.asked_of(mark)

    def onward(self, *given: Any, **more: Any) -> OnwardBySource:
        self.walks += 1
        return self._hooks.onward(*given, **more)

    def asked(self, *given: Any, **more: Any) -> frozenset[Intervals]:
        self.walks += 1
        return self._hooks.asked(*given, **more)


def alone(number: int) -> Intervals:
    return ((number, number),)


def test_what_is_asked_of_sources_is_told_for_all_destinations() -> None:
    leaving = masquerading(
        "-A POSTROUTING -s 10.0.0.2/32 -d 10.0.0.3/32 -j MASQUERADE",
        "-A POSTROUTING -s 10.0.0.7/32 -d 10.0.0.7/32 -j MASQUERADE",
    )
    first = int(by_source.FIRST)
    assert leaving.asked(SENT, 10) == {alone(first + 2)}  # 10.0.0.7 is told from others to itself


def test_too_many_destinations_are_not_told() -> None:
    rows = [f"-A POSTROUTING -d 10.0.0.{2 * at}/32 -j MASQUERADE" for at in range(20)]
    leaving = masquerading(*rows)
    assert leaving.asked(SENT, 10) is None
    assert leaving.asked(SENT, 100) == set()
    for at_, want in ((4, Ternary.TRUE), (5, Ternary.FALSE), (38, Ternary.TRUE)):
        sent = replace(SENT, destination=by_source.FIRST + at_)
        assert at(sent_on(leaving, sent)[0], None) == [Onward(want)]


def test_where_addresses_may_change_on_the_way_nothing_is_told_of_them() -> None:
    text = """table ip t {
chain forward { type filter hook forward priority 0; ip saddr set 192.0.2.1 }
chain postrouting { type nat hook postrouting priority 100; ip saddr 10.0.0.0/8 masquerade }
}"""
    leaving = Leaving(hooks_of(text, Situation(local_addresses=frozenset())), "ip")
    sent = replace(SENT, destination=by_source.FIRST)
    (found,) = at(sent_on(leaving, sent)[0], by_source.FIRST)
    assert found.masquerade is not Ternary.TRUE


def test_one_set_may_be_asked_for_pairs_in_two_ways() -> None:
    keys = (
        "ip saddr . ip daddr . ct original ip daddr",
        "ip saddr . ct original ip daddr . ip daddr",
    )
    elements = "10.0.0.1 . 10.0.0.6 . 10.0.0.1"
    for first, second in (keys, reversed(keys)):
        text = f"""table ip t {{
set three {{ type ipv4_addr . ipv4_addr . ipv4_addr; elements = {{ {elements} }}; }}
chain forward {{ type filter hook forward priority 0;
{first} @three counter accept
{second} @three counter drop }}
}}"""
        check(text, Situation(local_addresses=frozenset()), asks_pairs=True)


def test_what_comes_back_and_is_lost_is_asked_for() -> None:
    text = """table ip t {
map back { type ipv4_addr . ipv4_addr : verdict; elements = { 10.0.0.3 . 10.0.0.3 : drop }; }
chain forward { type filter hook forward priority 0; ip saddr . ip daddr vmap @back }
}"""
    leaving = Leaving(hooks_of(text, Situation(local_addresses=frozenset())), "ip", asks_pairs=True)
    to = by_source.FIRST + 3
    told = sent_on(leaving, replace(SENT, destination=to))
    assert asked_of_others(told, int(to)) == {alone(int(to))}
    other = sent_on(leaving, replace(SENT, destination=to + 1))
    assert asked_of_others(other, int(to) + 1) == set()
    assert leaving.asked(SENT, 10, loses=True) == {alone(int(to))}
