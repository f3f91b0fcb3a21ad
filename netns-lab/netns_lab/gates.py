"""Other nodes that have rules of their own: what comes for their pods goes through these first.

    fabric --- node (its dump is loaded here) --- its pods

Where another node's rules are not known, it is one namespace that owns its pods' addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from analyzer.errors import ParseError
from analyzer.kubeproxy.trace import Question, trace
from analyzer.kubeproxy.view import Share
from analyzer.model.addresses import VERSIONS, Address
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, capped_sum
from analyzer.semantics.base_chains import Rules
from netns_lab.arriving import Beyond
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink

if TYPE_CHECKING:
    from analyzer.inputs import Input
    from netns_lab.experiment import Lab

#: Indexes of its devices: that to the fabric, that to its pods, a bridge of these.
UPLINK: Final = 2
PODS: Final = 13
BRIDGE: Final = 15
_LOOPBACK: Final = 1


@dataclass(frozen=True, slots=True)
class Gate:
    """A node with rules of its own, before its pods.

    Attributes:
        mac: of its device to the fabric.
        pods_mac: of that to its pods.
    """

    namespace: Namespace
    mac: str
    pods_mac: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherNode:
    """What is known of a node beside the one whose rules are asked about."""

    name: str
    given: Input
    rulesets: tuple[Rules, ...]
    pod_device: str


def wire(
    gate: Gate, pods: tuple[Namespace, str, int, str], device: str, bridge: str | None
) -> None:
    """Join a node to the namespace of its pods, by a device of that name."""
    asked = Netlink(gate.namespace)
    asked.up(_LOOPBACK)
    asked.up(UPLINK)
    asked.veth(device, PODS, gate.pods_mac, pods)
    if bridge is not None:
        asked.bridge(bridge, BRIDGE)
    asked.up(PODS, master=None if bridge is None else BRIDGE)
    if bridge is not None:
        asked.forward(PODS, pods[3])
    asked.send()
    asked.close()


def lost_beyond(lab: Lab, others: tuple[OtherNode, ...], client: Address | None) -> Beyond:
    """Return what tells the part of the flows to an endpoint that the rules of its node end.

    There a flow comes from the node whose rules sent it, if these masqueraded it, else from the
    `client`; None: the node itself is the client. Where rules there do anything else but let it
    pass, drop or reject it, nothing is told.
    """
    question = lab.question
    by_name = {each.name: each for each in others}

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


#: Called with a client's address, or with None for the node itself.
BeyondOf = Callable[[Address | None], Beyond]
