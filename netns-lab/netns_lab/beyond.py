"""What the rules of other nodes do with flows that come for their pods."""

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
from netns_lab.arriving import Beyond

if TYPE_CHECKING:
    from netns_lab.experiment import Lab


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherNode:
    """What is known of a node beside the one whose rules are asked about."""

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
    """Return what tells the part of the flows to an endpoint that the rules of its node end.

    There a flow comes from the node whose rules sent it, if these masqueraded it, else from the
    `client`; None: the node itself is the client. Where rules there do anything else but let it
    pass, drop or reject it, nothing is told. A `silent` node asks its rules no more: flows are
    counted before it.
    """
    if not others:  # nor need anybody look at all endpoints
        return lambda _: Bounds(NEVER, NEVER)
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
            return Bounds(NEVER, NEVER)
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
    """Return the part of flows from somewhere to a pod that a node's rules drop or reject."""
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
    # What else may become of them is neither.
    return Bounds(
        capped_sum(each.lower for each in lost), ~capped_sum(each.lower for each in pass_)
    )
