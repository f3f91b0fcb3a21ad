"""Effect of other nodes' rules on flows to the pods there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from analyzer.errors import ParseError
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import Share
from analyzer.model.addresses import VERSIONS, Address
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, capped_sum
from analyzer.semantics.base_chains import Rules
from netns_lab.arriving import NOTHING, Beyond

if TYPE_CHECKING:
    from netns_lab.experiment import Lab


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherNode:
    """Another node, and the rules and objects read for it."""

    name: str
    given: Input
    rulesets: tuple[Rules, ...]
    pod_device: str


def lost_beyond(
    lab: Lab,
    others: tuple[OtherNode, ...],
    client: Address | None,
    silent: Collection[str] = (),
) -> Beyond:
    """Return a function that gives the part of the flows to an endpoint that its node's rules end.

    The node sees the flow's source as the address of the node that masqueraded it, or else as
    `client`; None means that the node itself is the client. Where the rules do anything but let the
    flow pass, drop or reject it, the bounds are wide. Nodes in `silent` are left out: their flows
    are counted before their rules.
    """
    if not others:  # saves a look at every endpoint
        return lambda _: NOTHING
    question = lab.question
    by_name = {each.name: each for each in others if each.name not in silent}

    @cache
    def ended(name: str, source: Address, to: tuple[Address, int], protocol: str) -> Bounds:
        return _ended(by_name[name], source, to, protocol)

    protocols: dict[object, set[str]] = {}
    for service in question.view.services:
        for endpoint in service.endpoints:
            protocols.setdefault(endpoint, set()).add(service.protocol)

    def beyond(share: Share) -> Bounds:
        endpoint = share.endpoint
        name = question.cluster.placement(endpoint.address).node
        if name not in by_name or endpoint.port is None:
            return NOTHING
        own = lab.topology.plan.node_address(endpoint.address.version)
        sources = {own} if client is None else set()
        if client is not None:
            sources |= {own} if share.masquerade is not False else set()
            sources |= {client} if share.masquerade is not True else set()
        found = [
            ended(name, source, (endpoint.address, endpoint.port), protocol)
            for source in sources
            for protocol in protocols[endpoint]
        ]
        return Bounds(min(b.lower for b in found), max(b.upper for b in found))

    return beyond


def _ended(node: OtherNode, source: Address, to: tuple[Address, int], protocol: str) -> Bounds:
    """Return the part of the flows from `source` to a pod that a node's rules drop or reject."""
    address, port = to
    packet = Packet(
        protocol=protocol,
        source=source,
        destination=address,
        destination_port=port,
        in_interface="eth0",
    )
    own = tuple(each for each in node.given.own if each.version == address.version)
    try:
        found = trace(
            node.rulesets,
            Question(packet=packet, assumed=node.given.assumed, addresses=own or None),
            next(family for family, each in VERSIONS.items() if each == address.version),
        )
    except ParseError:
        return Bounds(NEVER, ALWAYS)
    lost = [each.probability for each in found.ends if each.fate.kind in ("drop", "reject")]
    pass_ = [each.probability for each in found.ends if each.fate.kind in ("no-service", "local")]
    # Any other end is neither lost nor passed for certain.
    return Bounds(
        capped_sum(each.lower for each in lost), ~capped_sum(each.lower for each in pass_)
    )
