"""Whether a packet is in an ipset: as the manual page says, of all addresses at once too."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.region import Parted, Region
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.parsers.ipset_save import parse_ipsets
from analyzer.semantics.ipsets import NodeIpsets
from analyzer.semantics.iptables.matching import evaluate_match
from analyzer.semantics.situation import Situation
from tests.support.ipset_packets import match, packet_of
from tests.support.naive.ipset import Sent, is_in
from tests.support.strategies.ipsets import FLAGS, packets, saved

TRUE, FALSE, UNKNOWN = Ternary.TRUE, Ternary.FALSE, Ternary.UNKNOWN
flags = st.sampled_from(FLAGS)


def node(text: str, *changed: str) -> Situation:
    sets = parse_ipsets(text.encode(), "sets")
    return Situation(ipsets=NodeIpsets(sets, lambda: frozenset(changed)))


@given(saved(), flags, packets, st.booleans())
def test_a_packet_is_in_a_set_as_the_manual_says(
    text: str, sides: str, sent: Sent, negated: bool
) -> None:
    for name in ("s0", "all"):
        found = evaluate_match(
            match(name, sides, negated=negated), packet_of(sent), node(text)
        ).known
        assert found is Ternary.of(is_in(text, name, sides, sent) is not negated)


@given(saved(), flags, packets, st.sampled_from(["source", "destination", "both"]))
def test_what_is_told_of_many_addresses_holds_for_each(
    text: str, sides: str, sent: Sent, wide: str
) -> None:
    """Parts of a region are asked about as long as a rule tells them apart."""
    lowest = int(ip_address("10.0.0.0"))
    whole = ((lowest, lowest + 0x1FF),)
    packet = packet_of(sent)
    if wide != "destination":
        packet = replace(packet, source=None, sources=Region(4, whole))
    if wide != "source":
        packet = replace(packet, destination=None, destinations=Region(4, whole))
    situation, rest, parts = node(text), [packet], 0
    while rest:
        one = rest.pop()
        parts += 1
        try:
            found = evaluate_match(match("s0", sides), one, situation).known
        except Parted as by:
            rest += one.parted(by)
            continue
        assert found is not UNKNOWN
        for source in ends(one.sources, sent.source):
            for destination in ends(one.destinations, sent.destination):
                known = Sent(
                    source,
                    destination,
                    *(sent.protocol, sent.source_port, sent.destination_port, sent.device),
                )
                assert found is Ternary.of(is_in(text, "s0", sides, known))
    assert parts < 200


def ends(region: Region | None, known: str) -> list[str]:
    """Return addresses at the ends of a region, and some within."""
    if region is None:
        return [known]
    found = {at for a, b in region.intervals for at in (a, b, (a + b) // 2)}
    return [str(ip_address(each)) for each in found]


SETS = """\
create gone hash:ip family inet hashsize 1024 maxelem 65536 timeout 300
add gone 10.0.0.1 timeout 299
add gone 10.0.0.2 timeout 0
create nets hash:net family inet
add nets 10.0.0.0/16
add nets 10.0.1.0/24 nomatch
create six hash:net family inet6
add six fd00::/8
create macs hash:mac
add macs 00:11:22:33:44:55
create mark hash:ip,mark family inet markmask 0x000000ff
add mark 10.0.0.1,0x00000012
create half hash:ip family inet bitmask 255.0.255.0
add half 10.0.1.0
create odd hash:ip,colour family inet
add odd 10.0.0.1,red
create of24 hash:ip family inet netmask 24
add of24 10.0.7.0
create any bitmap:ip,mac range 10.0.0.0-10.0.0.255
add any 10.0.0.9
"""


@pytest.mark.parametrize(
    ("name", "sides", "source", "want"),
    [
        ("gone", "src", "10.0.0.1", UNKNOWN),
        ("gone", "src", "10.0.0.2", TRUE),
        ("gone", "src", "10.0.0.3", FALSE),
        ("nets", "src", "10.0.0.1", TRUE),
        ("nets", "src", "10.0.1.1", FALSE),
        ("nets", "src,dst", "10.0.0.1", TRUE),
        ("six", "src", "10.0.0.1", FALSE),
        ("macs", "src", "10.0.0.1", UNKNOWN),
        ("mark", "src,src", "10.0.0.1", TRUE),
        ("mark", "src", "10.0.0.1", FALSE),
        ("mark", "src,src", "10.0.0.2", FALSE),
        ("half", "src", "10.0.1.1", UNKNOWN),
        ("odd", "src,src", "10.0.0.1", UNKNOWN),
        ("of24", "src", "10.0.7.99", TRUE),
        ("of24", "src", "10.0.8.99", FALSE),
        ("any", "src,src", "10.0.0.9", UNKNOWN),
        ("any", "src,src", "10.0.0.8", FALSE),
        ("none", "src", "10.0.0.1", UNKNOWN),
    ],
)
def test_what_a_set_does_not_tell_is_unknown(
    name: str, sides: str, source: str, want: Ternary
) -> None:
    sent = Sent(source, "10.9.9.9", "tcp", 1, 2)
    packet = packet_of(sent)
    packet = replace(packet, mark=packet.mark.with_bits(0xF12, 0xFFFF))
    situation = node(SETS)
    assert evaluate_match(match(name, sides), packet, situation).known is want
    assert situation.ipsets is not None
    assert list(situation.ipsets.missed) == (["none"] if name == "none" else [])
    assert evaluate_match(match(name, sides), packet, Situation()).known is UNKNOWN


def test_what_rules_put_into_a_set_is_not_known() -> None:
    packet = packet_of(Sent("10.0.0.1", "10.9.9.9", "tcp", 1, 2))
    assert evaluate_match(match("nets", "src"), packet, node(SETS, "nets")).known is UNKNOWN


def test_a_counter_of_an_entry_may_say_no() -> None:
    packet = packet_of(Sent("10.0.0.1", "10.9.9.9", "tcp", 1, 2))
    counted = replace(match("nets", "src"), packets_above=5)
    assert evaluate_match(counted, packet, node(SETS)).known is UNKNOWN
    outside = replace(packet, source=ip_address("192.0.2.1"))
    assert evaluate_match(counted, outside, node(SETS)).known is FALSE


def test_an_entry_that_takes_out_can_be_what_is_asked_for() -> None:
    wanted = replace(match("nets", "src"), return_nomatch=True)
    for source, want in (("10.0.1.1", TRUE), ("10.0.0.1", FALSE), ("192.0.2.1", FALSE)):
        packet = packet_of(Sent(source, "10.9.9.9", "tcp", 1, 2))
        assert evaluate_match(wanted, packet, node(SETS)).known is want


def test_sets_tell_the_addresses_of_endpoints_apart() -> None:
    sets = NodeIpsets(parse_ipsets(SETS.encode(), "sets"))
    alike = [
        {sets.tells(ip_address(a)) for a in pair}
        for pair in (
            ("10.0.0.77", "10.0.0.78"),
            ("10.0.0.77", "10.0.1.77"),
            ("10.0.0.1", "10.0.0.2"),
        )
    ]
    assert [len(each) for each in alike] == [1, 2, 2]
