"""``-m set`` and the packet of ``naive.ipset`` as the model has them."""

from __future__ import annotations

from ipaddress import ip_address

from analyzer.model.iptables.matches import MatchSet
from analyzer.model.iptables.options import Option
from analyzer.model.packet import Packet
from tests.support.naive.ipset import Sent


def packet_of(sent: Sent) -> Packet:
    return Packet(
        protocol=sent.protocol,
        source=ip_address(sent.source),
        source_port=sent.source_port,
        destination=ip_address(sent.destination),
        destination_port=sent.destination_port,
        in_interface=sent.device,
        out_interface="",
    )


def match(name: str, sides: str, *, negated: bool = False) -> MatchSet:
    return MatchSet(match_set=Option((name, sides), negated=negated))
