"""The node's addresses at which NodePorts answer, as far as the rules name them.

Source: Kubernetes, pkg/proxy/nftables/proxier.go, ``nodePortIPsSet``: by default the node's first
address of each IP version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from analyzer.inputs.recognised import Input
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.semantics.base_chains import Rules

_SET: Final = "nodeport-ips"


def taken_at(rulesets: Iterable[Rules]) -> Iterator[Address]:
    """Yield the NodePort addresses in kube-proxy's nftables rules; iptables rules name none."""
    for ruleset in rulesets:
        if not isinstance(ruleset, NftRuleset):
            continue
        for (_, table), each in ruleset.tables.items():
            if table == "kube-proxy" and _SET in each.sets:
                keys = (element.key for element in each.sets[_SET].elements)
                yield from (key for key in keys if isinstance(key, Address))


def accepting(given: Input) -> frozenset[Address]:
    """Return an address of each IP version at which the rules accept NodePorts, if one is known."""
    found = {
        part.recogniser.node_port_address(version)  # type: ignore[union-attr]  # one part's
        for part in given.parts or (given,)
        for version in part.versions
    }
    return frozenset(each for each in found if each is not None)


def own_first(given: Input) -> tuple[Address, ...]:
    """Return the node's addresses, first those at which the rules accept NodePorts."""
    first = accepting(given)
    return tuple(sorted(given.own, key=lambda each: each not in first))


def of_another(rulesets: Iterable[Rules], cluster: Cluster, node: str | None) -> str | None:
    """Return the node whose addresses the NodePort rules name, unless that is `node`.

    The rules handle no flows to NodePorts at the addresses of other nodes.
    """
    for address in taken_at(rulesets):
        for name, known in cluster.nodes.items():
            if address in known.addresses and name != node:
                return name
    return None
