"""``-m physdev``: of a packet that passes no port of a bridge only what is negated holds."""

from __future__ import annotations

import pytest

from analyzer.model.iptables.matches import MatchPhysdev
from analyzer.model.iptables.options import Option
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.semantics.iptables.matching import match_all
from analyzer.semantics.situation import Situation

NOT_IN = MatchPhysdev(is_in=Option(value=True, negated=True))
IN = MatchPhysdev(is_in=Option(value=True))
BOTH = MatchPhysdev(is_in=Option(value=True, negated=True), out_device=Option("eth0"))


@pytest.mark.parametrize("packet", [Packet(bridge_port=False), Packet(in_interface="")])
def test_a_packet_by_no_bridge_port_matches_what_is_negated(packet: Packet) -> None:
    answers = [match_all((m,), packet, Situation(), set()).known for m in (NOT_IN, IN, BOTH)]
    assert answers == [Ternary.TRUE, Ternary.FALSE, Ternary.FALSE]


@pytest.mark.parametrize("port", [None, True])
def test_which_port_a_packet_passes_is_not_known(port: bool | None) -> None:
    packet = Packet(bridge_port=port, in_interface="cni0")
    for match in (NOT_IN, IN, BOTH):
        assert match_all((match,), packet, Situation(), set()).known is Ternary.UNKNOWN
