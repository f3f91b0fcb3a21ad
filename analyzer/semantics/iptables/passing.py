"""Targets after which the traversal continues, and how they change a packet."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import (
    Audit,
    ChangeHops,
    ChangeSet,
    ChangeTtl,
    Classify,
    ConnectionTracking,
    CopyConnmark,
    FillChecksum,
    Log,
    NfLog,
    NoTrack,
    RemoveEcn,
    SetConnmark,
    SetDscp,
    SetMark,
    SetMss,
    SetTos,
    StripOptions,
    Tee,
    Trace,
)
from analyzer.model.packet import UNKNOWN_MARK, Packet
from analyzer.model.value import replace
from analyzer.semantics.situation import Situation

#: Hops that are enough to any endpoint of a cluster: traceroute looks no further, either.
_MANY_HOPS: Final = 30


def passed_by(packet: Packet, rule: Rule, situation: Situation) -> Packet | None:
    """Return the packet after a target that lets the traversal continue; None for others."""
    match rule.target:
        case SetMark(value, mask):
            if packet.marks is not None:
                marks = packet.marks.with_bits(value, mask)
                return replace(packet, mark=marks.mark, marks=marks)
            mark = packet.mark.with_bits(value, mask)
            return packet if mark == packet.mark else replace(packet, mark=mark)
        case SetConnmark() | CopyConnmark():
            return _flow_marked(packet, rule.target) if situation.has_entry else packet
        case ChangeSet(map_mark=True):
            # Nor is it known what the set holds.
            return replace(packet.with_one_mark(), mark=UNKNOWN_MARK)
        case NoTrack() | ConnectionTracking(no_track=True):
            # A packet with an entry, or a template in place of it, stays as it is.
            has_one = situation.has_entry or packet.template
            return packet if has_one else replace(packet, tracked=False)
        case ConnectionTracking() as target:
            has_one = situation.has_entry or packet.template or packet.tracked is False
            return packet if has_one else replace(packet, template=True, zones=zones_of(target))
        case ChangeSet() | Log() | NfLog() | SetMss() | Trace() | FillChecksum() | None:
            return packet
        case SetDscp() | SetTos() | RemoveEcn() | StripOptions() | Classify() | Audit() | Tee():
            return packet
        case ChangeTtl() | ChangeHops():
            return None if may_expire(rule.target) else packet
        case _:
            return None


def zones_of(target: ConnectionTracking) -> tuple[int, int] | None:
    """Return the zones of a flow and of answers to it; None: that of the packet's mark.

    Source: Linux, net/netfilter/xt_CT.c, ``xt_ct_set_helper``; nf_conntrack_zones.h.
    """
    given = [target.zone or target.zone_original, target.zone or target.zone_reply]
    if not all(zone is None or zone.isdecimal() for zone in given):
        return None
    flow, answer = (int(zone or 0) for zone in given)
    return flow, answer


def may_expire(target: ChangeTtl | ChangeHops) -> bool:
    """Return whether a packet may be left with too few hops to reach an endpoint.

    It may be forwarded by other hosts, and by the endpoint's node, after this one.

    Source: Linux, net/ipv4/ip_forward.c, ``ip_forward``: what has one left is dropped there.
    """
    if target.to is not None:
        return target.to < _MANY_HOPS
    return target.less is not None and target.less > 1


def _flow_marked(packet: Packet, target: SetConnmark | CopyConnmark) -> Packet:
    """Return the packet after ``-j CONNMARK``, which does nothing to a flow without an entry.

    Source: Linux, net/netfilter/xt_connmark.c, ``connmark_tg_shift``.
    """
    if packet.tracked is False:
        return packet
    packet = packet.with_one_mark()
    mark, flow_mark = packet.mark, packet.flow_mark
    match target:
        case SetConnmark(value, mask):
            flow_mark = flow_mark.with_bits(value, mask)
        case CopyConnmark("restore", packet_mask, flow_mask):
            mark = mark.with_mark(flow_mark, packet_mask, flow_mask)
        case CopyConnmark(_, packet_mask, flow_mask):
            flow_mark = flow_mark.with_mark(mark, flow_mask, packet_mask)
    if packet.tracked is None:  # so it may have done nothing
        mark = mark.joined(packet.mark)
        flow_mark = flow_mark.joined(packet.flow_mark)
    return replace(packet, mark=mark, flow_mark=flow_mark)
