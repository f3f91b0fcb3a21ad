from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Final

import pytest

from analyzer.model.iptables.matches import MatchConntrack, MatchHashlimit, MatchLimit, MatchRecent
from analyzer.model.iptables.options import Masked, Option, Range
from analyzer.model.packet import Mark, Packet
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.flow_matching import (
    conntrack,
    flow_mark,
    limit,
    recent,
    state_is,
    state_of,
)
from analyzer.semantics.situation import Situation

TRUE, FALSE, UNKNOWN = Ternary.TRUE, Ternary.FALSE, Ternary.UNKNOWN
CLIENT, SERVICE, POD = map(ip_address, ("203.0.113.7", "10.96.0.1", "10.1.0.1"))

FLOW: Final = Packet(
    protocol="tcp", source=CLIENT, source_port=40_000, destination=SERVICE, destination_port=80
)
#: The same packet behind DNAT.
SENT: Final = replace(FLOW, destination=POD, destination_port=8080, translated=True)
LOST: Final = replace(FLOW, tracked=False)
EITHER: Final = replace(FLOW, tracked=None)
FIRST: Final = Situation(flow=FLOW)
LATER: Final = replace(FIRST, state="ESTABLISHED")
BEFORE: Final = Situation(state="INVALID", has_entry=False)


@pytest.mark.parametrize(
    ("packet", "situation", "state"),
    [
        (FLOW, FIRST, "NEW"),
        (FLOW, LATER, "ESTABLISHED"),
        (FLOW, BEFORE, "INVALID"),
        (LOST, FIRST, "UNTRACKED"),
        (LOST, BEFORE, "UNTRACKED"),
        (EITHER, FIRST, None),
        # What CT puts in the place of an entry counts as one, even before conntrack.
        (replace(FLOW, template=True), BEFORE, "NEW"),
    ],
)
def test_conntrack_has_one_state_for_a_packet(
    packet: Packet, situation: Situation, state: str | None
) -> None:
    assert state_of(packet, situation) == state


def test_a_state_that_is_not_known_may_be_any() -> None:
    assert state_is(("NEW", "ESTABLISHED"), FLOW, FIRST) is TRUE
    assert state_is(("ESTABLISHED",), FLOW, FIRST) is FALSE
    assert state_is(("NEW",), EITHER, FIRST) is UNKNOWN


def states(*words: str, negated: bool = False) -> MatchConntrack:
    return MatchConntrack(state=Option(words, negated))


@pytest.mark.parametrize(
    ("match", "packet", "situation", "want"),
    [
        (states("DNAT"), FLOW, FIRST, FALSE),
        (states("DNAT"), SENT, FIRST, TRUE),
        (states("DNAT", negated=True), SENT, FIRST, FALSE),
        (states("DNAT"), replace(FLOW, translated=None), FIRST, UNKNOWN),
        # Of a later packet the dump does not tell what became of the first.
        (states("DNAT"), FLOW, LATER, UNKNOWN),
        (states("DNAT"), LOST, FIRST, FALSE),
        (states("DNAT"), SENT, BEFORE, FALSE),
        (states("SNAT"), FLOW, FIRST, FALSE),
        # A source masqueraded as what it was is not changed.
        (states("SNAT"), replace(FLOW, masqueraded=True), FIRST, UNKNOWN),
        (states("NEW", "DNAT"), FLOW, FIRST, TRUE),
        (states("ESTABLISHED", "DNAT"), FLOW, FIRST, FALSE),
    ],
)
def test_the_virtual_states_ask_what_nat_has_changed(
    match: MatchConntrack, packet: Packet, situation: Situation, want: Ternary
) -> None:
    assert conntrack(match, packet, situation) is want


NETWORK: Final = {each: Option(ip_network(each)) for each in (CLIENT, SERVICE, POD)}


@pytest.mark.parametrize(
    ("match", "want"),
    [
        (MatchConntrack(original_source=NETWORK[CLIENT]), TRUE),
        (MatchConntrack(original_destination=NETWORK[SERVICE]), TRUE),
        (MatchConntrack(original_destination=NETWORK[POD]), FALSE),
        (MatchConntrack(original_destination=Option(ip_network(POD), negated=True)), TRUE),
        (MatchConntrack(reply_source=NETWORK[POD]), TRUE),
        (MatchConntrack(reply_source=NETWORK[SERVICE]), FALSE),
        (MatchConntrack(reply_destination=NETWORK[CLIENT]), TRUE),
        (MatchConntrack(original_source_port=Option(Range(40_000, 40_000))), TRUE),
        (MatchConntrack(original_destination_port=Option(Range(80, 80))), TRUE),
        (MatchConntrack(reply_source_port=Option(Range(8080, 8080))), TRUE),
        (MatchConntrack(reply_destination_port=Option(Range(1, 39_999))), FALSE),
        (MatchConntrack(direction="ORIGINAL"), TRUE),
        (MatchConntrack(direction="REPLY"), FALSE),
        (MatchConntrack(status=Option(("SEEN_REPLY",))), UNKNOWN),
        (MatchConntrack(expire=Option(Range(1, 2))), UNKNOWN),
        (MatchConntrack(protocol=Option("tcp")), UNKNOWN),
        # One part that does not hold decides, whatever the unknown ones do.
        (MatchConntrack(protocol=Option("tcp"), direction="REPLY"), FALSE),
        (replace(states("ESTABLISHED"), original_source=NETWORK[CLIENT]), FALSE),
    ],
)
def test_a_flow_keeps_its_original_addresses_and_replies_from_the_pod(
    match: MatchConntrack, want: Ternary
) -> None:
    assert conntrack(match, SENT, FIRST) is want


def test_without_an_entry_only_the_state_is_compared() -> None:
    source = MatchConntrack(original_source=NETWORK[POD])
    assert conntrack(source, LOST, FIRST) is FALSE
    assert conntrack(replace(source, state=Option(("UNTRACKED",))), LOST, FIRST) is TRUE
    assert conntrack(replace(source, state=Option(("INVALID",))), FLOW, BEFORE) is TRUE


def test_addresses_of_a_later_packet_or_an_unknown_flow_are_not_known() -> None:
    source = MatchConntrack(original_source=NETWORK[CLIENT])
    assert conntrack(source, SENT, LATER) is UNKNOWN
    assert conntrack(source, SENT, Situation()) is UNKNOWN
    assert conntrack(source, EITHER, FIRST) is UNKNOWN


def test_the_direction_of_the_first_packet_is_known_without_its_flow() -> None:
    unknown = Situation()
    assert conntrack(MatchConntrack(direction="REPLY"), SENT, unknown) is FALSE
    assert conntrack(MatchConntrack(direction="ORIGINAL"), SENT, unknown) is TRUE
    with_source = MatchConntrack(direction="ORIGINAL", original_source=NETWORK[CLIENT])
    assert conntrack(with_source, SENT, unknown) is UNKNOWN
    assert conntrack(replace(with_source, direction="REPLY"), SENT, unknown) is FALSE


def in_list(name: str, *, negated: bool = False, hit_count: int | None = None) -> MatchRecent:
    return MatchRecent(action=Option("rcheck", negated), name=name, hit_count=hit_count)


HELD: Final = Situation(lists=frozenset({"KUBE-SEP-A"}), affinity_lists=("KUBE-SEP-",))


@pytest.mark.parametrize(
    ("match", "want"),
    [
        (in_list("KUBE-SEP-A"), TRUE),
        (in_list("KUBE-SEP-B"), FALSE),
        (in_list("KUBE-SEP-B", negated=True), TRUE),
        # A list that session affinity does not keep holds whom it likes.
        (in_list("SSH"), UNKNOWN),
        # How often a client came nobody says.
        (in_list("KUBE-SEP-A", hit_count=3), UNKNOWN),
        (MatchRecent(action=Option("set"), name="SSH"), TRUE),
        (MatchRecent(action=Option("set", negated=True), name="SSH"), FALSE),
    ],
)
def test_a_client_is_in_the_affinity_lists_that_are_assumed(
    match: MatchRecent, want: Ternary
) -> None:
    assert recent(match, HELD) is want


def test_lists_that_are_not_known_hold_a_client_or_not() -> None:
    assert recent(in_list("KUBE-SEP-A"), replace(HELD, lists=None)) is UNKNOWN


@pytest.mark.parametrize(
    ("limits", "wants"), [("under", (TRUE, TRUE, FALSE)), ("over", (FALSE, FALSE, TRUE))]
)
def test_traffic_under_a_limit_matches_unless_what_is_above_is_asked_for(
    limits: str, wants: tuple[Ternary, ...]
) -> None:
    situation = Situation(assumed=Assumed({"limits": limits}))
    matches = (MatchLimit(10), MatchHashlimit(up_to="5/sec", name="x"))
    above = MatchHashlimit(above="5/sec", name="x")
    assert tuple(limit(match, situation) for match in (*matches, above)) == wants
    assert limit(above, Situation()) is UNKNOWN


@pytest.mark.parametrize(
    ("packet", "situation", "want"),
    [
        (replace(FLOW, flow_mark=Mark(0x11)), FIRST, TRUE),
        (replace(FLOW, flow_mark=Mark(0x10)), FIRST, FALSE),
        (replace(FLOW, flow_mark=Mark(0x10, 1)), FIRST, UNKNOWN),
        (replace(LOST, flow_mark=Mark(0x11)), FIRST, FALSE),
        (replace(FLOW, flow_mark=Mark(0x11)), BEFORE, FALSE),
        (replace(EITHER, flow_mark=Mark(0x11)), FIRST, UNKNOWN),
        (replace(FLOW, flow_mark=Mark(0x11), template=True), FIRST, UNKNOWN),
    ],
)
def test_a_flow_without_an_entry_has_no_mark(
    packet: Packet, situation: Situation, want: Ternary
) -> None:
    assert flow_mark(Masked(1, 0x0F), packet, situation) is want
