"""Other nodes with rules of their own, which packets to their pods pass first.

    fabric --- node (its dump is loaded here) --- its pods

A node whose rules are not known is a single namespace that owns its pods' addresses.

To silence such a node, a table of our own drops all packets it receives, before conntrack and all
of the dump's chains see them, and what the node's own programs send. Source: Linux,
include/uapi/linux/netfilter_ipv4.h, ``NF_IP_PRI_CONNTRACK_DEFRAG``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from netns_lab.command import run
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink
from netns_lab.plan import HostPlan, LabPlan, bridge_of, device_name

#: Indexes of its devices: the one to the fabric, the one to its pods, and their bridge.
UPLINK: Final = 2
PODS: Final = 13
BRIDGE: Final = 15
_LOOPBACK: Final = 1
#: Before defragmentation at -400, the first priority that the kernel itself uses.
_BEFORE_ALL: Final = -450
_TABLE: Final = "inet kubeodds-dead"


@dataclass(frozen=True, slots=True)
class Gate:
    """A node with rules of its own, in front of its pods.

    Attributes:
        mac: of its device to the fabric.
        pods_mac: of its device to its pods.
    """

    namespace: Namespace
    mac: str
    pods_mac: str


def set_up(
    gate: Gate, planned: HostPlan, pods: tuple[Namespace, str, int, str], mac: str, wanted: LabPlan
) -> None:
    """Create a node's devices and routes, and connect it to the namespace of its pods.

    `pods` are that namespace, the device's name there, its index and MAC address; `mac` is that of
    the node that the lab is about.
    """
    assert planned.pod_device is not None
    bridge = bridge_of(planned.pod_device)
    asked = Netlink(gate.namespace)
    asked.up(_LOOPBACK)
    asked.up(UPLINK)
    asked.veth(device_name(planned.pod_device, "pods"), PODS, gate.pods_mac, pods)
    if bridge is not None:
        asked.bridge(bridge, BRIDGE)
    asked.up(PODS, master=None if bridge is None else BRIDGE, of_pods=bridge is not None)
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


def silence(gate: Gate, *, sends: bool) -> None:
    """Drop everything that the node receives and, unless it `sends`, all that it sends itself.

    Raises:
        LabError: nft(8) is not installed, or fails.
    """
    chains = [("comes", "prerouting"), *([] if sends else [("goes", "output")])]
    lines = [
        f"chain {name} {{ type filter hook {hook} priority {_BEFORE_ALL}; policy drop; }}"
        for name, hook in chains
    ]
    text = "\n".join([f"table {_TABLE} {{", *lines, "}"]) + "\n"
    run(gate.namespace, ["nft", "-f", "-"], text)


def wake(gate: Gate) -> None:
    """Bring a silent node back to life, with its rules unchanged."""
    run(gate.namespace, ["nft", "delete", "table", *_TABLE.split()])
