"""More addresses for the node, so that it acts as many clients under session affinity.

An endpoint is drawn once per client, so a node with one address would have to be forgotten after
each flow. To the rules, another address of the node is the same source as long as no network or
range named anywhere contains one address and not the other. Rules that name just the node's own
address concern destinations, or a route of their own, so each route is evaluated from both
addresses (`alike`). If the results differ, or cannot be determined, the node stays one client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import Final

from analyzer.errors import ParseError
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.addresses import VERSIONS, Address, Network, network_of
from analyzer.model.cluster import Cluster
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.packet import Packet
from analyzer.model.value import replace
from analyzer.parsers import iptables_save
from analyzer.parsers.nft import rendering
from analyzer.semantics.base_chains import Rules
from netns_lab.plan import WORLD, LabPlan
from netns_lab.sources import AFFINE_CLIENTS

#: What may be an address, a network or a range, in rules of either kind.
_NAMED: Final = re.compile(
    r"(?<![\w.:])(\d+(?:\.\d+){3}|[0-9a-f]*:[0-9a-f:.]*)(?:/([\d.]+|[0-9a-f:]+)|-([0-9a-f.:]+))?"
)
#: Matches on sources other than by networks in the text: on parts of their bits, or ipsets.
_OTHERWISE: Final = re.compile(r"saddr (?:&|and )|--match-set|-j SET|jhash|symhash|-m u32|-m bpf")
#: Bits of the network around the node's address that the others are taken from.
_NEIGHBOURHOOD: Final = 9


@dataclass(frozen=True, slots=True)
class _AddressSpan:
    """Addresses from the first to the last."""

    version: int
    first: int
    last: int

    def tells_apart(self, one: Address, other: Address) -> bool:
        """Return whether it contains one of them and not the other."""
        return one.version == self.version and (
            (self.first <= int(one) <= self.last) != (self.first <= int(other) <= self.last)
        )


def needed(routes: Iterable[tuple[ServicePort, Route]]) -> bool:
    """Return whether any flows from the node itself go to a Service with session affinity."""
    return any(s.affinity is not None and r.source is Source.NODE for s, r in routes)


def own_clients(
    plan: LabPlan,
    cluster: Cluster,
    rulesets: Iterable[Rules],
    elsewhere: Iterable[Rules] = (),
    most: int = AFFINE_CLIENTS,
) -> tuple[Address, ...]:
    """Return, for each IP version, fewer than `most` addresses equivalent to the node's own.

    `rulesets` are the node's, and may name its address; those `elsewhere` may not.
    """
    here, there = ([_text(each) for each in some] for some in (rulesets, elsewhere))
    if any(_OTHERWISE.search(each) for each in (*here, *there)):
        return ()
    try:
        spans = {span for text in here for span in _spans(text)}
        spans -= {_span(ip_network(own)) for own in plan.node_addresses}
        spans |= {span for text in there for span in _spans(text)}
    except ValueError:  # a mask that is no network's
        return ()
    networks = [n for node in cluster.nodes.values() for n in node.pod_networks]
    networks += [n for host in (plan.own_pods, *plan.others) for n in host.networks]
    spans |= {_span(each) for each in networks}
    taken = {*cluster.placements, *WORLD.values(), *plan.node_addresses}
    taken.update(a for node in cluster.nodes.values() for a in node.addresses)
    taken.update(a for host in plan.others for a in host.addresses)
    taken.update(a for each in plan.clients.values() for a in each)
    found: list[Address] = []
    for own in plan.node_addresses:
        of_version = [each for each in spans if each.version == own.version]
        free = (
            each
            for each in _neighbours(own)
            if each not in taken and not any(s.tells_apart(own, each) for s in of_version)
        )
        found += islice(free, most - 1)
    return tuple(found)


def alike(
    rulesets: Sequence[Rules], packet: Packet, other: Address, own: Sequence[Address]
) -> bool:
    """Return whether a packet that the node sends ends in the same ways from another address."""
    family = next(name for name, version in VERSIONS.items() if version == other.version)

    def found(source: Address) -> list[tuple[object, ...]]:
        question = Question(packet=replace(packet, source=source), addresses=tuple(own))
        told = trace(rulesets, question, family).ends
        return [(each.fate, each.probability, each.masquerade, each.rules) for each in told]

    assert packet.source is not None
    try:
        return found(packet.source) == found(other)
    except ParseError:  # a rule on the way is malformed
        return False


def _neighbours(own: Address) -> Iterator[Address]:
    around = network_of(own.version, int(own), own.max_prefixlen - _NEIGHBOURHOOD)
    return iter(around.hosts())


def _text(ruleset: Rules) -> str:
    if isinstance(ruleset, NftRuleset):
        return rendering.render(ruleset)
    return iptables_save.render(ruleset)


def _spans(text: str) -> Iterator[_AddressSpan]:
    """Yield all networks and ranges that a text names.

    Raises:
        ValueError: a mask is not a network's.
    """
    for address, mask, last in set(_NAMED.findall(text)):
        try:
            first = ip_address(address)
        except ValueError:  # a MAC, or a time
            continue
        if mask:
            yield _span(ip_network(f"{address}/{mask}", strict=False))
        else:
            yield _AddressSpan(
                first.version, int(first), int(ip_address(last)) if last else int(first)
            )


def _span(network: Network) -> _AddressSpan:
    ends = network.network_address, network.broadcast_address
    return _AddressSpan(network.version, int(ends[0]), int(ends[1]))
