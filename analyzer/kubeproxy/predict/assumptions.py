"""What is assumed about kube-proxies when only API objects are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from analyzer.kubeproxy.generate.objects import pod_networks_of
from analyzer.kubeproxy.predict.settings import ClusterSettings, LocalMode
from analyzer.kubeproxy.predict.versions import (
    MENDED_IN,
    NEWEST,
    Version,
    counted_as,
    version_from_text,
)
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.model.addresses import Network
from analyzer.model.value import value
from analyzer.parsers.api_objects import Object, at, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_FAMILIES: Final = (4, 6)


@value(kw_only=True)
class GivenSettings:
    """Values of options; None, or empty: not given, to be assumed."""

    version: str | None = None
    mode: str | None = None
    local_mode: str | None = None
    cluster_cidrs: tuple[Network, ...] = ()


@value
class AssumedSettings:
    """Settings, and in words which of them are assumed."""

    settings: ClusterSettings
    words: tuple[str, ...]


def assumed(objects: Sequence[Object], said: GivenSettings) -> AssumedSettings:
    """Return the settings of all kube-proxies of a cluster.

    Raises:
        ValueError: a version is malformed, or its rules are not known, or it does not have that
            mode.
    """
    words: list[str] = []
    version = _version(objects, said, words)
    mode = ProxyMode(said.mode or ProxyMode.IPTABLES.value)
    if mode is ProxyMode.NFTABLES and not version.has_nftables:
        raise ValueError(f"kube-proxy {version.text} has no nftables mode, which came with 1.29")
    if version.is_mended and said.version is not None and said.version.count(".") == 1:
        words.append(f"kube-proxy {MENDED_IN} or a later patch release")
    if said.mode is None:
        words.append("iptables mode")
    local_mode = LocalMode(said.local_mode or LocalMode.CLUSTER_CIDR.value)
    cidrs = said.cluster_cidrs
    if not cidrs and local_mode is LocalMode.CLUSTER_CIDR:
        cidrs = _cluster_cidrs(objects)
        told = ", ".join(map(str, cidrs))
        words.append(
            f"--cluster-cidr {told} (around all podCIDRs)" if told else "no --cluster-cidr"
        )
    if not version.is_known:
        words.append(f"rules as {NEWEST.text} writes them, the newest known version")
    if version.layout.marks_drops:
        words.append("the kubelet's rules that drop what kube-proxy marks")
    words.append("all other flags and feature gates at their defaults")
    words.append("no other rules on the nodes")
    settings = ClusterSettings(
        version=version, mode=mode, local_mode=local_mode, cluster_cidrs=cidrs
    )
    return AssumedSettings(settings, tuple(words))


def _version(objects: Iterable[Object], said: GivenSettings, words: list[str]) -> Version:
    if said.version is not None:
        return version_from_text(said.version)
    nodes = [at(o, "status", "nodeInfo") for o in objects if o.get("kind") == "Node"]
    told = [
        found
        for info in nodes
        if (found := text(at(info, "kubeProxyVersion")) or text(at(info, "kubeletVersion")))
    ]
    minors = Counter(map(counted_as, told))
    if not minors:
        words.append(f"kube-proxy {NEWEST.text} (no node reports a version)")
        return NEWEST
    (most, number), *others = minors.most_common()
    version = version_from_text(most)
    of = f"; {sum(count for _, count in others):,} of {len(told):,} report others" if others else ""
    words.append(f"kube-proxy {version.text} (kubelet version on {number:,} nodes{of})")
    return version


def _cluster_cidrs(objects: Iterable[Object]) -> tuple[Network, ...]:
    """Return the smallest network around the podCIDRs of all nodes, for each IP version."""
    nodes = [o for o in objects if o.get("kind") == "Node"]
    found: list[Network] = []
    for family in _FAMILIES:
        around: Network | None = None
        for network in (each for node in nodes for each in pod_networks_of(node, family)):
            around = network if around is None else _around(around, network)
        if around is not None:
            found.append(around)
    return tuple(found)


def _around(one: Network, other: Network) -> Network:
    wider = one
    while other.network_address not in wider or other.prefixlen < wider.prefixlen:
        wider = wider.supernet()
    return wider
