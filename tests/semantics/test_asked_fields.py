"""What rests on a field that a traversal may leave open says that a rule asked for it.

What was found without that is kept for all ports and protocols, and for answers to masqueraded
flows and to others (`Hooks.asked_fields`): a match that does not say so would give packets to one
port the answer of another.
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
    MatchIcmp,
    MatchIcmp6,
    MatchMultiport,
    MatchNot,
    MatchProtocol,
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
from analyzer.semantics.iptables.matching import evaluate_match
from analyzer.semantics.nft.fields import read
from analyzer.semantics.situation import MASQUERADED, PORT, PROTOCOL, Situation
from tests.support.ipset_packets import match, packet_of
from tests.support.match_cases import CASES
from tests.support.naive.ipset import Sent
from tests.support.nft import packets as nft
from tests.support.strategies.ipsets import FLAGS, saved
from tests.support.strategies.ipsets import packets as sent
from tests.support.strategies.iptables_rules import matches
from tests.support.strategies.nft_rules import leaves

#: Values of the fields that may be left open.
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    PORT: (0, 1, 53, 80, 8080, 65535),
    PROTOCOL: ("tcp", "udp", "icmp", "ipv6-icmp", "47"),
    MASQUERADED: (False, True),
}


def rests_on(
    ask: Callable[[Packet, Situation], Any], packet: Packet, situation: Situation
) -> set[str]:
    """Return the fields on which the answer rests; fail if one, left open, was not asked for.

    The port is the one that the flow is sent to: the source port of an answer. Whether it is
    masqueraded is left open only for an answer.
    """
    found = set()
    for field, values in VALUES.items():
        if field == MASQUERADED and not packet.is_answer:
            continue
        name = "source_port" if field == PORT and packet.is_answer else field
        noted: list[str] = []
        asking = replace(situation, noted_field=noted.append)
        answers: list[Any] = []
        asked = False
        for value in (None, *values):
            try:
                answers.append(ask(replace(packet, **{name: value}), asking))
            except Parted as by:
                answers.append(repr(by))
            asked = asked or (value is None and field in noted)
        if any(each != answers[0] for each in answers):
            assert asked
            found.add(field)
    return found


def kinds_that_rest_on(field: str) -> set[type]:
    return {
        type(case.match if isinstance(case, MatchNot) else case)
        for case, packet, situation, _ in CASES
        for given in (packet, replace(packet, is_answer=True))
        if field in rests_on(partial(evaluate_match, case), given, situation)
    }


def test_matches_say_which_field_they_ask_for() -> None:
    with_ports = {MatchTcp, MatchUdp, MatchSctp}
    assert kinds_that_rest_on(PORT) == {*with_ports, MatchMultiport, MatchConntrack}
    assert kinds_that_rest_on(PROTOCOL) == {*with_ports, MatchProtocol, MatchIcmp, MatchIcmp6}
    assert kinds_that_rest_on(MASQUERADED) == {MatchConntrack}


@given(
    matches,
    st.sampled_from([(packet, situation) for _, packet, situation, _ in CASES]),
    st.booleans(),
)
def test_any_match_that_asks_for_a_field_says_so(
    asked: Match, of: tuple[Packet, Situation], is_answer: bool
) -> None:
    packet, situation = of
    rests_on(partial(evaluate_match, asked), replace(packet, is_answer=is_answer), situation)


@given(saved(), st.sampled_from(FLAGS), sent)
def test_a_set_that_holds_ports_says_so(text: str, sides: str, packet: Sent) -> None:
    sets = NodeIpsets(parse_ipsets(text.encode(), "sets"))
    asked = match("all", sides)
    rests_on(
        partial(evaluate_match, asked),
        packet_of(packet),
        Situation(ipsets=sets),
    )


def test_a_set_of_ports_rests_on_them() -> None:
    sets = parse_ipsets(b"create web bitmap:port range 0-1024\nadd web 80\n", "sets")
    asked: MatchSet = match("web", "dst")
    packet = Packet(protocol="tcp", destination_port=80)
    asking = Situation(ipsets=NodeIpsets(sets))
    assert PORT in rests_on(partial(evaluate_match, asked), packet, asking)


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


def rests(given: e.Expression, packet: Packet, situation: Situation) -> set[str]:
    family = "ip6" if packet is nft.SIX else "ip"
    return rests_on(lambda each, asked: read(given, each, family, asked), packet, situation)


def test_fields_of_nft_say_that_they_ask_for_the_port() -> None:
    for each in OF_PORTS:
        assert any(PORT in rests(each, *of) for of in NFT), each


#: Each reads the protocol.
OF_PROTOCOLS: Final = (
    e.Payload("tcp", "sport"),
    e.Payload("tcp", "flags"),
    e.Payload("ip", "protocol"),
    e.Payload("icmp", "type"),
    e.RawPayload("nh", 72, 8),
    e.RawPayload("th", 16, 16),
    e.Meta("l4proto"),
    e.Ct("protocol"),
)


def test_fields_of_nft_say_that_they_ask_for_the_protocol() -> None:
    for each in OF_PROTOCOLS:
        assert any(PROTOCOL in rests(each, *of) for of in NFT), each


#: Each depends on whether a flow is masqueraded.
OF_SOURCES: Final = (e.Ct("status"), e.Ct("ip daddr", direction="reply"))


def test_fields_of_nft_say_that_they_ask_whether_a_flow_is_masqueraded() -> None:
    answers = [(replace(packet, is_answer=True), situation) for packet, situation in NFT]
    for each in OF_SOURCES:
        assert any(MASQUERADED in rests(each, *of) for of in answers), each


@given(leaves, st.sampled_from(NFT), st.booleans())
def test_any_nft_expression_that_asks_for_a_field_says_so(
    asked: e.Expression, of: tuple[Packet, Situation], is_answer: bool
) -> None:
    packet, situation = of
    family = "ip6" if packet is nft.SIX else "ip"
    given = replace(packet, is_answer=is_answer)
    rests_on(lambda each, asking: read(asked, each, family, asking), given, situation)
