"""Matches on the node's state, which no dump contains: assumptions decide them.

Source: Linux, net/ipv4/netfilter/ipt_rpfilter.c, ``rpfilter_mt``; net/netfilter/xt_physdev.c,
``physdev_mt``; xt_policy.c, ``policy_mt``; xt_socket.c, ``socket_match``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import (
    MatchPhysdev,
    MatchPkttype,
    MatchPolicy,
    MatchRpfilter,
    MatchSocket,
    MatchTcpmss,
)
from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.model.routing import LOOPBACK
from analyzer.model.ternary import Ternary
from analyzer.semantics.assumed import (
    ADDRESS_TYPE,
    BRIDGE_PORT,
    POLICY,
    REVERSE_PATH,
    SEGMENT_SIZE,
    SOCKET,
)
from analyzer.semantics.situation import LEAST_MSS, MOST_MSS, SIDE, Situation

_PASSES: Final = {"pass": Ternary.TRUE, "fail": Ternary.FALSE}


def passes_reverse_path(packet: Packet, situation: Situation) -> Ternary:
    """Return whether a reply would leave by the device that the packet came in by.

    The kernel does not check packets that come back by loopback.
    """
    if packet.in_interface == LOOPBACK:
        return Ternary.TRUE
    return _PASSES.get(situation.assume(REVERSE_PATH) or "", Ternary.UNKNOWN)


def rpfilter(match: MatchRpfilter, packet: Packet, situation: Situation) -> Ternary:
    """Evaluate ``-m rpfilter``."""
    passes = passes_reverse_path(packet, situation)
    return ~passes if match.invert else passes


def physdev(match: MatchPhysdev, packet: Packet, situation: Situation) -> Ternary:
    """Evaluate the bridge ports that the packet passes; if there are none, ``!`` is true."""
    if packet.in_interface != NO_DEVICE:
        situation.ask(SIDE)
        if packet.bridge_port is not False:
            situation.want(BRIDGE_PORT)
            return Ternary.UNKNOWN
        situation.assume(BRIDGE_PORT)
    asked = (match.in_device, match.is_in, match.out_device, match.is_out, match.is_bridged)
    return Ternary.of(all(option is None or option.negated for option in asked))


def policy(match: MatchPolicy, situation: Situation) -> Ternary:
    """Evaluate ``-m policy``: without IPsec only ``--pol none`` matches."""
    if situation.assume(POLICY) is None:
        return Ternary.UNKNOWN
    return Ternary.of(match.policy == "none")


def packet_type(match: MatchPkttype, situation: Situation) -> Ternary:
    """Evaluate ``-m pkttype``: flows between hosts are sent to one, and others not forwarded.

    Source: Linux, net/netfilter/xt_pkttype.c, ``pkttype_mt``; net/ipv4/ip_forward.c.
    """
    if situation.assume(ADDRESS_TYPE) is None:
        return Ternary.UNKNOWN
    return Ternary.of(match.packet_type == "unicast")


def socket(_: MatchSocket, packet: Packet, situation: Situation) -> Ternary:
    """Evaluate ``-m socket``."""
    return has_socket(packet, situation)


def has_socket(packet: Packet, situation: Situation) -> Ternary:
    """Return whether a local socket would receive the packet.

    If the packet is for the node itself there may well be one, so nothing is assumed.
    """
    if situation.is_local(packet) is not Ternary.FALSE or situation.assume(SOCKET) is None:
        return Ternary.UNKNOWN
    return Ternary.FALSE


def segment_size(match: MatchTcpmss, packet: Packet, situation: Situation) -> Ternary:
    """Evaluate ``-m tcpmss``: a SYN and the answer to it have an MSS, at least the assumed one.

    Source: Linux, net/netfilter/xt_tcpmss.c, ``tcpmss_mt``.
    """
    begins = situation.begins_connection(packet)
    is_all = match.mss.first <= LEAST_MSS and match.mss.last == MOST_MSS
    is_told = is_all or match.mss.last < LEAST_MSS
    if packet.protocol != "tcp" or not begins or not is_told:
        return Ternary.UNKNOWN
    if situation.assume(SEGMENT_SIZE) is None:
        return Ternary.UNKNOWN
    return Ternary.of(is_all)
