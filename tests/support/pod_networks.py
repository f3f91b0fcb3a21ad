"""The networks of pods of a generated cluster, and what nodes say of them."""

from __future__ import annotations

from enum import Enum
from ipaddress import ip_network
from typing import Final

from analyzer.model.addresses import Network

NODES: Final = ("node-0", "node-1", "node-2")
#: The network of all pods by family.
PODS: Final = {4: ip_network("10.244.0.0/16"), 6: ip_network("fd00:244::/48")}
#: Prefix lengths of the network of one node's pods.
_LENGTHS: Final = {4: 24, 6: 120}


class PodNetworks(Enum):
    """What podCIDRs of nodes say of their pods' addresses."""

    OWN = "each node has a network, of which its pods have addresses"
    SHARED = "all nodes have the same network"
    UNUSED = "no pod has an address of a node's network"
    OTHERS = "pods have addresses of another node's network"


def pod_network(number: int, family: int) -> Network:
    """Return the network that has the addresses of a node's pods."""
    return ip_network((PODS[family][256 * number], _LENGTHS[family]))


def pod_cidr(number: int, family: int, pods: PodNetworks) -> str:
    """Return the podCIDR of a node."""
    match pods:
        case PodNetworks.OWN:
            return str(pod_network(number, family))
        case PodNetworks.SHARED:
            return str(PODS[family])
        case PodNetworks.UNUSED:
            return str(pod_network(128 + number, family))
        case PodNetworks.OTHERS:
            return str(pod_network((number + 1) % len(NODES), family))
