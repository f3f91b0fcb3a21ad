"""Chains at devices: netdev's ingress and egress, and inet's ingress.

A packet passes more devices than the one that IP names: the ports of a bridge or a bond, the parent
of a VLAN. So that a device has another name shows only of a pod's device, or of loopback, that it
is not passed.

Source: Linux, net/core/dev.c, ``nf_ingress``, ``nf_hook_egress``; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.model.devices import Devices, as_pattern, meets
from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.model.routing import LOOPBACK
from analyzer.model.ternary import Ternary
from analyzer.semantics.devices import SHARED, USUAL
from analyzer.semantics.situation import Situation


def passes_any(
    devices: Iterable[str], packet: Packet, situation: Situation, *, comes: bool
) -> Ternary:
    """Return whether a packet comes in by one of some devices, or else leaves by one.

    Unknown if there are no names. Those that end in ``*`` are patterns.

    Raises:
        Parted: that depends on its destination.
    """
    names = [*map(as_pattern, devices)]
    device = situation.came_by(packet) if comes else situation.leaves_by(packet)
    if device == NO_DEVICE:
        return Ternary.FALSE  # the node has made it
    if device is None or not names:
        return Ternary.UNKNOWN
    found = Ternary.FALSE
    for name in names:
        found |= _is_passed(name, device)
    if isinstance(device, Devices):
        situation.told_by_devices(device, found)
    return found


def _is_passed(name: str, device: str | Devices) -> Ternary:
    if isinstance(device, str):
        if meets(name, device):
            return Ternary.TRUE
        return Ternary.FALSE if LOOPBACK in {name, device} else Ternary.UNKNOWN
    known = device.is_named(name)
    if known is not Ternary.FALSE or not device.inside:
        return known
    may_be_pods = any(meets(name, each) for each in (*USUAL, *SHARED))
    return Ternary.UNKNOWN if may_be_pods else known
