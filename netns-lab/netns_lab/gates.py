"""Other nodes that have rules of their own: what comes for their pods goes through these first.

    fabric --- node (its dump is loaded here) --- its pods

Where another node's rules are not known, it is one namespace that owns its pods' addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink
from netns_lab.plan import HostPlan, Plan, bridge_of, device_name

#: Indexes of its devices: that to the fabric, that to its pods, a bridge of these.
UPLINK: Final = 2
PODS: Final = 13
BRIDGE: Final = 15
_LOOPBACK: Final = 1


@dataclass(frozen=True, slots=True)
class Gate:
    """A node with rules of its own, before its pods.

    Attributes:
        mac: of its device to the fabric.
        pods_mac: of that to its pods.
    """

    namespace: Namespace
    mac: str
    pods_mac: str


def set_up(
    gate: Gate, planned: HostPlan, pods: tuple[Namespace, str, int, str], mac: str, wanted: Plan
) -> None:
    """Make a node's devices and routes, and join it to the namespace of its pods.

    `pods` are that namespace, its device, this one's index and MAC; `mac` is that of the node whose
    rules are asked about.
    """
    assert planned.pod_device is not None
    bridge = bridge_of(planned.pod_device)
    asked = Netlink(gate.namespace)
    asked.up(_LOOPBACK)
    asked.up(UPLINK)
    asked.veth(device_name(planned.pod_device, "pods"), PODS, gate.pods_mac, pods)
    if bridge is not None:
        asked.bridge(bridge, BRIDGE)
    asked.up(PODS, master=None if bridge is None else BRIDGE)
    if bridge is not None:
        asked.forward(PODS, pods[3])
    for address in planned.addresses:
        asked.address(UPLINK, address)
    for address in planned.endpoints:
        asked.beside(PODS if bridge is None else BRIDGE, address, pods[3])
    for version in wanted.versions:
        asked.default_route(UPLINK, wanted.node_address(version), mac)
    asked.send()
    asked.close()
