"""What one kube-proxy is told besides the Services: its version, node and flags."""

from __future__ import annotations

import enum

from analyzer.model.addresses import Address, Network
from analyzer.model.value import value

IPV4 = 4
IPV6 = 6


@enum.unique
class Layout(enum.Enum):
    """The versions of kube-proxy whose chains and rules can be written."""

    V1_20 = "1.20"
    V1_25 = "1.25"
    V1_30 = "1.30"
    V1_36 = "1.36"


@value(kw_only=True)
class ProxyConfig:
    """One kube-proxy, and one of its two families.

    Attributes:
        family: 4 or 6: of the dump and of all ServicePorts in it.
        node: its own name: endpoints there are local.
        node_address: of the node, of that family; matters where loadBalancerSourceRanges hold it.
        zone: of the node, ``topology.kubernetes.io/zone``.
        cluster_cidr: of that family; None as without ``--cluster-cidr``.
        service_cidrs: of that family, of the ServiceCIDRs; nftables mode of 1.36 asks for them.
        masquerade_all: ``--masquerade-all``; nftables mode of 1.30 does not look at it.
        localhost_node_ports: ``--iptables-localhost-nodeports``; 1.20 has no such flag. False
            is written after the source of 1.30, as no capture has it.
        kubelet: whether the kubelet has put its rules in place; 1.20 alone leaves it to those to
            drop what it marks.
        nfacct: whether counters of nfnetlink_acct were to be had; 1.36 alone looks for them.
    """

    layout: Layout
    family: int = IPV4
    node: str
    node_address: Address | None = None
    zone: str | None = None
    cluster_cidr: Network | None = None
    service_cidrs: tuple[Network, ...] = ()
    masquerade_all: bool = False
    localhost_node_ports: bool = True
    kubelet: bool = False
    nfacct: bool = True
