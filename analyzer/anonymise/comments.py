"""Comments: sentences of known programs keep their words; all others become a pseudonym.

A sentence is known by its words with names, endpoints, chains and numbers left out. The words of
no other comment are kept, however harmless each may look.

Source: kubernetes, pkg/proxy/iptables/proxier.go and pkg/proxy/nftables/proxier.go, 1.14 to 1.36;
pkg/kubelet/kubelet_network_linux.go; flannel, pkg/trafficmngr/iptables; kubernetes/dns,
cmd/node-cache/app; amazon-vpc-cni-k8s, pkg/networkutils.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from analyzer.anonymise.pseudonyms import Pseudonyms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What stands in a sentence for a name, an endpoint, a chain or a number.
_LEFT_OUT: Final = "{}"
_SENTENCES: Final = frozenset(
    """
    {}
    {} -> {}
    {} cluster IP
    {} external IP
    {} loadbalancer IP
    {} has no endpoints
    {} has no local endpoints
    {} health check node port
    {} traffic not accepted by {}
    Balancing rule {} for {}
    Redirect pods trying to reach external loadbalancer VIP to clusterIP
    masquerade LOCAL traffic for {} LB IP
    masquerade LOCAL traffic for {} external destinations
    masquerade traffic for {} external destinations
    other traffic to {} will be dropped by {}
    pod traffic for {} external destinations
    route LOCAL traffic for {} LB IP to service chain
    route LOCAL traffic for {} external destinations
    block incoming localnet connections
    kubernetes externally-visible service portals
    kubernetes firewall for dropping marked packets
    kubernetes forwarding conntrack pod destination rule
    kubernetes forwarding conntrack pod source rule
    kubernetes forwarding conntrack rule
    kubernetes forwarding rules
    kubernetes health check service ports
    kubernetes load balancer firewall
    kubernetes postrouting rules
    kubernetes service nodeports; NOTE: this must be the last rule in this chain
    kubernetes service portals
    kubernetes service traffic requiring SNAT
    Active ClusterIPs
    ClusterIP, ExternalIP and LoadBalancer IP traffic
    Drop traffic to unallocated ClusterIPs
    IPs that accept NodePort traffic
    NodePort traffic
    Reject traffic to invalid ports of ClusterIPs
    destinations that are subject to LoadBalancerSourceRanges
    helper for @no-endpoint-services / @no-endpoint-nodeports
    masquerade
    masquerade clusterIP traffic
    masquerade clusterIP traffic from outside cluster
    masquerade local traffic
    rules for kube-proxy
    service hairpin connections
    short-circuit local traffic
    short-circuit pod traffic
    vmap to drop or reject packets to service nodeports with no endpoints
    vmap to drop or reject packets to services with no endpoints
    flanneld masq
    flanneld forward
    NodeLocal DNS Cache: skip conntrack
    NodeLocal DNS Cache: allow DNS traffic
    AWS, CONNMARK
    AWS SNAT CHAIN
    AWS, primary ENI
    AWS, outbound connections
    AWS, SNAT
    AWS CONNMARK CHAIN, VPC CIDR
    Host endpoint policy accepted packet.
    CNI portfwd requiring masquerade
    CNI firewall plugin rules
    CNI firewall plugin admin overrides
    """.strip().split("\n    ")
)
#: How comments of programs begin that may end in any way.
_PROGRAMS: Final = (
    *("cali:", "kube-router ", "AWS, ", "flanneld ", "cilium: ", "cilium ", "cilium-"),
    *("CNI portfwd ", 'dnat name: "', 'name: "', "NodeLocal DNS Cache: ", "Antrea: "),
    *("ip-masq-agent: ", "generated for LXD ", "wg-quick(8) ", "proxy-init/"),
    "rule to jump traffic from POD name:",
)
_NUMBER: Final = re.compile(r"\d{1,6}")


class Comments:
    """New text of comments; `chain` gives the new name of a chain that kube-proxy hashes."""

    def __init__(self, names: Pseudonyms, chain: Callable[[str], str | None]) -> None:
        self._names = names
        self._chain = chain
        self._done: dict[str, str] = {}

    def renamed(self, text: str) -> str:
        """Return the new text of a comment."""
        found = self._done.get(text)
        if found is None:
            found = self._done[text] = self._names.note("comment", text, self._of(text))
        return found

    def _of(self, text: str) -> str:
        if text in _SENTENCES or not text:
            return text
        words = text.split(" ")
        renamed = [self._word(word) for word in words]
        sentence = " ".join(
            word if new is None else _LEFT_OUT for word, new in zip(words, renamed, strict=True)
        )
        if sentence in _SENTENCES:
            return " ".join(
                word if new is None else new for word, new in zip(words, renamed, strict=True)
            )
        begins = next((each for each in _PROGRAMS if text.startswith(each)), "")
        # The name of a ServicePort identifies it, whatever surrounds it.
        named = [new for word, new in zip(words, renamed, strict=True) if new and "/" in word]
        return " ".join([begins + self._names.name("text", text), *named])

    def _word(self, word: str) -> str | None:
        """Return the replacement of a word that names something; None if it may be any word."""
        if word == _LEFT_OUT:
            return self._names.name("text", word)
        if _NUMBER.fullmatch(word):
            return word
        if "/" in word:
            return self._names.service_port(word)
        return self._names.endpoint_text(word) or self._chain(word)


def names_in(text: str) -> list[str]:
    """Return the words of a comment that may name ServicePorts."""
    return [word for word in text.split(" ") if "/" in word]
