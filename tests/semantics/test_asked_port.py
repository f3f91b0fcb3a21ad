"""What rests on the port that a packet is sent to says that a rule asked for it.

What was found without that is kept for all ports (`Hooks.asked_ports`): a match that does not say
so would give packets to one port the answer of another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.iptables.matches import (
    Match,
    MatchConntrack,
    MatchMultiport,
    MatchSctp,
    MatchSet,
    MatchTcp,
    MatchUdp,
)
from analyzer.model.nft import expressions as e
from analyzer.model.packet import Packet
from analyzer.model.region import Parted
from analyzer.model.value import replace
from analyzer.parsers.ipset_save import parse_ipsets
from analyzer.semantics.ipsets import NodeIpsets
from analyzer.semantics.iptables.matching import judge
from analyzer.semantics.nft.fields import read
from analyzer.semantics.situation import Situation
from tests.support.ipset_packets import match, packet_of
from tests.support.match_cases import CASES
from tests.support.naive.ipset import Sent
from tests.support.nft import packets as nft
from tests.support.strategies.ipsets import FLAGS, saved
from tests.support.strategies.ipsets import packets as sent
from tests.support.strategies.iptables_rules import matches
from tests.support.strategies.nft_rules import leaves

PORTS: Final = (0, 1, 53, 80, 8080, 65535)


def rests_on_port(
    ask: Callable[[Packet, Situation], Any], packet: Packet, situation: Situation
) -> bool:
    """Tell whether the answer rests on the port; fail if it does and no port was asked for."""
    noted: list[bool] = []
    asking = replace(situation, noted_port=lambda: noted.append(True))
    every = [replace(packet, destination_port=port) for port in (packet.destination_port, *PORTS)]
    answers: list[Any] = []
    for each in every:
        try:
            answers.append(ask(each, asking))
        except Parted as by:
            answers.append(repr(by))
    rests = any(each != answers[0] for each in answers)
    assert not rests or noted
    return rests


def test_matches_say_that_they_ask_for_the_port() -> None:
    found = {
        type(case)
        for case, packet, situation, _ in CASES
        if rests_on_port(partial(judge, case), packet, situation)
    }
    assert found == {MatchTcp, MatchUdp, MatchSctp, MatchMultiport, MatchConntrack}


@given(matches, st.sampled_from([(packet, situation) for _, packet, situation, _ in CASES]))
def test_any_match_that_asks_for_the_port_says_so(
    asked: Match, of: tuple[Packet, Situation]
) -> None:
    rests_on_port(partial(judge, asked), *of)


@given(saved(), st.sampled_from(FLAGS), sent)
def test_a_set_that_holds_ports_says_so(text: str, sides: str, packet: Sent) -> None:
    sets = NodeIpsets(parse_ipsets(text.encode(), "sets"))
    asked = match("all", sides)
    rests_on_port(
        partial(judge, asked),
        packet_of(packet),
        Situation(ipsets=sets),
    )


def test_a_set_of_ports_rests_on_them() -> None:
    sets = parse_ipsets(b"create web bitmap:port range 0-1024\nadd web 80\n", "sets")
    asked: MatchSet = match("web", "dst")
    packet = Packet(protocol="tcp", destination_port=80)
    asking = Situation(ipsets=NodeIpsets(sets))
    assert rests_on_port(partial(judge, asked), packet, asking)


#: Each reads a port, of one of these packets at least.
OF_PORTS: Final = (
    e.Payload("tcp", "dport"),
    e.Payload("th", "dport"),
    e.RawPayload("th", 16, 16),
    e.Ct("proto-src", direction="reply"),
)
NFT: Final = [
    (packet, situation)
    for packet in (nft.PACKET, nft.UDP, nft.SENT, nft.PING, nft.SIX, nft.BLANK, nft.LOST)
    for situation in (nft.HERE, nft.LATER, nft.BEFORE)
]


def rests(given: e.Expression, packet: Packet, situation: Situation) -> bool:
    family = "ip6" if packet is nft.SIX else "ip"
    return rests_on_port(lambda each, asked: read(given, each, family, asked), packet, situation)


def test_fields_of_nft_say_that_they_ask_for_the_port() -> None:
    for each in OF_PORTS:
        assert any(rests(each, *of) for of in NFT), each


@given(leaves, st.sampled_from(NFT))
def test_any_field_of_nft_that_asks_for_the_port_says_so(
    asked: e.Expression, of: tuple[Packet, Situation]
) -> None:
    rests(asked, *of)
