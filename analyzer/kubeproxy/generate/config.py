"""The settings of one kube-proxy: its version, node and flags."""

from __future__ import annotations

import enum

from analyzer.model.addresses import Address, Network
from analyzer.model.value import value

IPV4 = 4
IPV6 = 6
_LAST_OF_ENDPOINTS = 18
_DECLARES_MARKS = 20
_DROPS_ITSELF = 25
_DUAL_STACK = 21
_LAST_OF_FEWER_DIGITS = 16
_DIGITS = 10
_FEWER_DIGITS = 5
_KNOWS_BOTH_ADDRESSES = 28


@enum.unique
class RulesLayout(enum.Enum):
    """The versions of kube-proxy whose chains and rules can be generated."""

    V1_14 = "1.14"
    V1_16 = "1.16"
    V1_17 = "1.17"
    V1_18 = "1.18"
    V1_20 = "1.20"
    V1_21 = "1.21"
    V1_22 = "1.22"
    V1_23 = "1.23"
    V1_24 = "1.24"
    V1_25 = "1.25"
    V1_26 = "1.26"
    V1_27 = "1.27"
    V1_28 = "1.28"
    V1_30 = "1.30"
    V1_36 = "1.36"

    @property
    def minor(self) -> int:
        """36 for 1.36."""
        return int(self.value.partition(".")[2])

    @property
    def reads_slices(self) -> bool:
        """Whether it reads EndpointSlices (KEP-752); before 1.19 kube-proxy reads Endpoints."""
        return self.minor > _LAST_OF_ENDPOINTS

    @property
    def declares_marks(self) -> bool:
        """Whether it declares KUBE-MARK-DROP itself if the kubelet has not done so."""
        return _DECLARES_MARKS <= self.minor < _DROPS_ITSELF

    @property
    def digits(self) -> int:
        """Digits of the probabilities that it writes: five before 1.17 (#83599), then ten."""
        return _DIGITS if self.minor > _LAST_OF_FEWER_DIGITS else _FEWER_DIGITS

    @property
    def knows_node_address(self) -> bool:
        """Whether it knows the node's own address, which counts if source ranges contain it.

        In dual-stack mode, the default since 1.21, kube-proxy takes 0.0.0.0 for it up to 1.27:
        cmd/kube-proxy/app/server_others.go, ``nodeIPTuple``.
        """
        return not _DUAL_STACK <= self.minor < _KNOWS_BOTH_ADDRESSES

    @property
    def marks_drops(self) -> bool:
        """Whether it only marks packets that are to be dropped, by the kubelet's rules."""
        return self.minor < _DROPS_ITSELF


@value(kw_only=True)
class ProxyConfig:
    """One kube-proxy, and one of its two families.

    Attributes:
        family: 4 or 6: of the dump and of all ServicePorts in it.
        node: its own name: endpoints there are local.
        node_address: of the node, of that family; matters if loadBalancerSourceRanges contain it.
        zone: of the node, ``topology.kubernetes.io/zone``.
        cluster_cidr: of that family; None as without ``--cluster-cidr``.
        service_cidrs: of that family, of the ServiceCIDRs; nftables mode of 1.36 matches on them.
        masquerade_all: ``--masquerade-all``; nftables mode of 1.30 ignores it.
        localhost_node_ports: ``--iptables-localhost-nodeports``; up to 1.25 there is no such flag.
            False is written according to the source of 1.30: no capture has it.
        kubelet: whether the kubelet has put its rules in place; up to 1.24 they drop what
            kube-proxy marks.
        nfacct: whether counters of nfnetlink_acct were available; only 1.36 uses them.
    """

    layout: RulesLayout
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
